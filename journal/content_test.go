package journal

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// modelUnit is the granularity of the model: one cell of it.
const modelUnit = 1 << (chunkBits - 3)

// contentModel says for each cell of a file where its bytes are.
type contentModel []Extent

func newContentModel(cells int) contentModel { return make(contentModel, cells) }

func (m contentModel) splice(off, n uint64, es []Extent) {
	for i := off / modelUnit; i < (off+n)/modelUnit; i++ {
		m[i] = Extent{}
		for _, e := range es {
			if at := i * modelUnit; at >= e.Off && at < e.End() {
				m[i] = e.cut(at, at+modelUnit)
			}
		}
	}
}

func (m contentModel) extents() []Extent {
	var out []Extent
	for _, e := range m {
		out = appendJoined(out, e)
	}
	return out
}

// randomSplice returns a splice of whole cells.
func randomSplice(r *rand.Rand, cells int, pos *uint64) (off, n uint64, es []Extent) {
	size := []int{3, 30, cells}[r.IntN(3)]
	a := r.IntN(cells - 1)
	b := min(cells, a+1+r.IntN(size))
	off, n = uint64(a)*modelUnit, uint64(b-a)*modelUnit
	for at := a; at < b; {
		end := at + 1 + r.IntN(b-at)
		e := Extent{Off: uint64(at) * modelUnit, Len: uint64(end-at) * modelUnit}
		switch e.Kind = ExtentKind(r.IntN(4)); e.Kind {
		case 0:
		case ExtentData:
			e.Loc = Loc{File: 1, Pos: *pos}
			*pos += e.Len
			es = append(es, e)
		default:
			es = append(es, e)
		}
		at = end
	}
	return off, n, es
}

func TestContentAgainstModel(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 4))
		cells := 200 * 8 // several long runs
		m, c := newContentModel(cells), &Content{}
		var pos uint64
		for step := range 60 {
			what := fmt.Sprintf("seed %d, step %d", seed, step)
			old, before := c, c.Range(0, maxOffset)
			c = c.Clone()
			off, n, es := randomSplice(r, cells, &pos)
			c.Splice(off, n, es)
			m.splice(off, n, es)
			want := m.extents()
			if got := c.Range(0, maxOffset); !slices.Equal(got, want) {
				t.Fatalf("%s: splice %d+%d %v\n got %v\nwant %v", what, off, n, es, got, want)
			}
			if !slices.Equal(old.Range(0, maxOffset), before) {
				t.Fatalf("%s: the original of a clone has changed", what)
			}
			lo, ln := uint64(r.IntN(cells))*modelUnit, uint64(1+r.IntN(cells))*modelUnit
			if got := c.Range(lo, ln); !slices.Equal(got, cutExtents(want, lo, lo+ln)) {
				t.Fatalf("%s: range %d+%d is %v", what, lo, ln, got)
			}
			var bytes uint64
			for _, e := range want {
				bytes += e.Len
			}
			if c.Bytes() != bytes || c.Empty() != (bytes == 0) || !c.Equal(NewContent(want)) {
				t.Fatalf("%s: %d bytes, want %d", what, c.Bytes(), bytes)
			}
		}
	}
}

// An extent of any size costs little, and so does a change within it.
func TestContentOfHugeFile(t *testing.T) {
	const size = 1 << 60
	c := NewContent([]Extent{{Len: size, Kind: ExtentLower}})
	c.Splice(1<<50, 4096, []Extent{{Off: 1 << 50, Len: 4096, Kind: ExtentData, Loc: Loc{1, 0}}})
	if n := c.chunks.len(); n > 1 {
		t.Errorf("%d chunks", n)
	}
	if es := c.Range(0, size); len(es) != 3 || es[1].Len != 4096 || es[2].End() != size {
		t.Errorf("extents are %v", es)
	}
	c.Splice(1<<20, size-1<<20, nil)
	if es := c.Range(0, size); len(es) != 1 || es[0].Len != 1<<20 {
		t.Errorf("extents after truncation are %v", es)
	}
}

// Appending to a content and to its clone keeps them apart.
func TestContentAppendToClone(t *testing.T) {
	grow := func(c *Content, off, pos uint64) {
		c.Splice(off, 10, []Extent{{Off: off, Len: 10, Kind: ExtentData, Loc: Loc{1, pos}}})
	}
	a := &Content{}
	for i := range uint64(5) {
		grow(a, i*10, i*100)
	}
	b := a.Clone()
	grow(a, 50, 1000)
	grow(b, 50, 2000)
	grow(a, 60, 3000)
	if es := a.Range(50, 10); es[0].Loc.Pos != 1000 {
		t.Errorf("original has %v", es)
	}
	if es := b.Range(50, 20); len(es) != 1 || es[0].Loc.Pos != 2000 {
		t.Errorf("clone has %v", es)
	}
}

func BenchmarkContentAppend(b *testing.B) {
	c := &Content{}
	var off uint64
	for b.Loop() {
		c.Splice(off, 80, []Extent{{Off: off, Len: 80, Kind: ExtentData, Loc: Loc{1, off * 3}}})
		off += 80
	}
}
