package diffview

import (
	"bytes"
	"slices"
	"testing"
)

func TestLineOrigins(t *testing.T) {
	for _, c := range []struct {
		name, old, text string
		want            []int
	}{
		{"equal", "a\nb\n", "a\nb\n", []int{0, 1}},
		{"new file", "", "a\nb\n", []int{-1, -1}},
		{"emptied", "a\n", "", []int{}},
		{"inserted", "a\nc\n", "a\nb\nc\n", []int{0, -1, 1}},
		{"deleted", "a\nb\nc\n", "a\nc\n", []int{0, 2}},
		{"changed", "a\nb\nc\n", "a\nB\nc\n", []int{0, -1, 2}},
		{"last line without its end", "a\nb", "a\nb\n", []int{0, -1}},
	} {
		if got := LineOrigins([]byte(c.old), []byte(c.text)); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func FuzzLineOrigins(f *testing.F) {
	f.Add([]byte("a\nb\nc\n"), []byte("a\nx\nc"))
	f.Fuzz(func(t *testing.T, old, text []byte) {
		a, b := Lines(old), Lines(text)
		origins, last := LineOrigins(old, text), -1
		if len(origins) != len(b) {
			t.Fatalf("%d lines, %d origins", len(b), len(origins))
		}
		for i, o := range origins {
			if o < 0 {
				continue
			}
			if o <= last || !bytes.Equal(a[o], b[i]) {
				t.Fatalf("line %d comes from %d after %d", i, o, last)
			}
			last = o
		}
	})
}
