package diffview

import (
	"unicode/utf8"

	"github.com/sergi/go-diff/diffmatchpatch"
)

// small matches a block of at most smallBlock lines by go-diff, one rune a
// line. Runes are numbered anew for the block, from 1, and stay far below the
// surrogates, so that each becomes one character of go-diff's strings.
func (m *matcher) small(e edit) {
	runes := make(map[int32]rune)
	ra := blockRunes(runes, m.a[e.A0:e.A1])
	rb := blockRunes(runes, m.b[e.B0:e.B1])
	dmp := diffmatchpatch.New()
	dmp.DiffTimeout = 0
	a, b := e.A0, e.B0
	for _, d := range dmp.DiffMainRunes(ra, rb, false) {
		n := utf8.RuneCountInString(d.Text)
		switch d.Type {
		case diffmatchpatch.DiffEqual:
			a, b = a+n, b+n
		case diffmatchpatch.DiffDelete:
			m.emit(edit{a, a + n, b, b})
			a += n
		case diffmatchpatch.DiffInsert:
			m.emit(edit{a, a, b, b + n})
			b += n
		}
	}
}

func blockRunes(runes map[int32]rune, ids []int32) []rune {
	out := make([]rune, len(ids))
	for i, id := range ids {
		r, ok := runes[id]
		if !ok {
			r = rune(len(runes) + 1)
			runes[id] = r
		}
		out[i] = r
	}
	return out
}
