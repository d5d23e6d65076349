package diffview

import "bytes"

// maxLines is the number of lines of one side from which lines are not matched.
const maxLines = 1 << 20

// lines is a text cut behind each "\n"; the last line may lack it.
type lines struct {
	text []byte
	ends []int32 // ends[i] is the offset behind line i; texts are below MaxText
}

func splitLines(text []byte) lines {
	l := lines{text: text, ends: make([]int32, 0, bytes.Count(text, newline)+1)}
	for off := 0; off < len(text); {
		n := bytes.IndexByte(text[off:], '\n')
		if n < 0 {
			n = len(text) - off - 1
		}
		off += n + 1
		l.ends = append(l.ends, int32(off))
	}
	return l
}

var newline = []byte{'\n'}

func (l lines) len() int { return len(l.ends) }

// start returns the offset of line i, or the end of the text for the number of
// lines.
func (l lines) start(i int) int {
	if i == 0 {
		return 0
	}
	return int(l.ends[i-1])
}

// at returns line i with its terminator.
func (l lines) at(i int) []byte { return l.span(i, i+1) }

// span returns the bytes of the lines [i, j).
func (l lines) span(i, j int) []byte { return l.text[l.start(i):l.start(j)] }

// number gives equal lines of both texts equal numbers, from 0.
func number(a, b lines) (na, nb []int32) {
	seen := make(map[string]int32, a.len())
	one := func(l lines) []int32 {
		out := make([]int32, l.len())
		for i := range out {
			line := l.at(i)
			id, ok := seen[string(line)]
			if !ok {
				id = int32(len(seen))
				seen[string(line)] = id
			}
			out[i] = id
		}
		return out
	}
	return one(a), one(b)
}
