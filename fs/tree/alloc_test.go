//go:build !race

// The race detector makes pools forget at random.

package tree

import (
	"fmt"
	"strconv"
	"testing"
)

// hot lists the requests that a busy mount consists of, with how many
// allocations each may make: one more than each made when this was written,
// since a collection may empty a pool. Those of a write and a creation have the
// record's in them, which lives until it is in the database.
var hot = []struct {
	name   string
	allocs float64
	make   func(g *rig) func(i int)
}{
	{"lookup lower", 5, func(g *rig) func(int) { return g.lookups("d/lower") }},
	{"lookup own", 1, func(g *rig) func(int) { return g.lookups("d/own") }},
	{"lookup nothing", 2, func(g *rig) func(int) {
		d := g.id("d")
		return func(int) {
			if _, err := g.t.Lookup(g.r, d, "missing"); err == nil {
				g.Fatal("found what is missing")
			}
		}
	}},
	{"getattr lower", 4, func(g *rig) func(int) { return g.getattrs("d/lower") }},
	{"getattr own", 1, func(g *rig) func(int) { return g.getattrs("d/own") }},
	{"read lower", 2, func(g *rig) func(int) { return g.reads("d/lower") }},
	{"read own", 3, func(g *rig) func(int) { return g.reads("d/own") }},
	{"list 100 with attributes", 600, func(g *rig) func(int) {
		many := g.id("many")
		return func(int) {
			n := 0
			g.must(g.t.Readdir(g.r, many, 0, true, func(d *Dirent) bool {
				if d.Stat != nil {
					g.t.Forget(d.Stat.ID, 1)
					n++
				}
				return true
			}))
			if n != 100 {
				g.Fatalf("%d entries", n)
			}
		}
	}},
	{"write", 14, func(g *rig) func(int) {
		own, data := g.id("d/own"), make([]byte, 4096)
		return func(i int) {
			_, err := g.t.Write(g.r, own, data, int64(i)*4096)
			g.must(err)
		}
	}},
	{"create", 21, func(g *rig) func(int) {
		d := g.id("d")
		return func(i int) {
			s, err := g.t.Create(g.r, d, "new"+strconv.Itoa(i), 0o644)
			g.must(err)
			g.t.Forget(s.ID, 1)
		}
	}},
}

// TestAllocations bounds what the hot requests allocate.
func TestAllocations(t *testing.T) {
	files := map[string]string{"d/lower": "content of the lower"}
	for i := range 100 {
		files[fmt.Sprintf("many/file%d", i)] = ""
	}
	for _, c := range hot {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, files)
			g.write("d/own", "content of its own")
			do, i := c.make(g), 0
			got := testing.AllocsPerRun(200, func() { do(i); i++ })
			t.Logf("%v allocations", got)
			if got > c.allocs {
				t.Errorf("%v allocations, want at most %v", got, c.allocs)
			}
		})
	}
}

func (g *rig) lookups(path string) func(int) {
	dir, name := g.at(path)
	return func(int) {
		s, err := g.t.Lookup(g.r, dir, name)
		g.must(err)
		g.t.Forget(s.ID, 1)
	}
}

func (g *rig) getattrs(path string) func(int) {
	id := g.id(path)
	return func(int) {
		_, err := g.t.Getattr(g.r, id)
		g.must(err)
	}
}

func (g *rig) reads(path string) func(int) {
	id, buf := g.id(path), make([]byte, 4096)
	return func(int) {
		n, err := g.t.Read(g.r, id, buf, 0)
		g.must(err)
		if n == 0 {
			g.Fatal("read nothing")
		}
	}
}
