package diffview

// LineOrigins tells for each line of text where it stands in old, counting from
// 0; -1 where it is not from there. Lines end behind "\n"; the last one may
// lack it. The caller checks that the texts are text (IsText).
func LineOrigins(old, text []byte) []int {
	a, b := splitLines(old), splitLines(text)
	out := make([]int, b.len())
	pos, i := 0, 0
	for _, e := range diffLines(a, b) {
		for ; i < e.B0; i, pos = i+1, pos+1 {
			out[i] = pos
		}
		for ; i < e.B1; i++ {
			out[i] = -1
		}
		pos = e.A1
	}
	for ; i < len(out); i, pos = i+1, pos+1 {
		out[i] = pos
	}
	return out
}

// Lines cuts a text into its lines, without the "\n" that ends them.
func Lines(text []byte) [][]byte {
	l := splitLines(text)
	out := make([][]byte, l.len())
	for i := range out {
		line := l.at(i)
		if n := len(line); n > 0 && line[n-1] == '\n' {
			line = line[:n-1]
		}
		out[i] = line
	}
	return out
}
