package workspace

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// Whatever the workspace and the host did, asking apply about the changes that
// are not sure finds drift if asking about all does, and status says what the
// latter says.
func TestDriftOfUnsureIsDriftOfAll(t *testing.T) {
	drifted, short := 0, 0
	for seed := range uint64(80) {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			d := newDriftCase(t, seed)
			now, changed, err := d.w.compared()
			d.must(err)
			all, err := d.w.driftOf(context.Background(), now, changed)
			d.must(err)
			unsure := d.w.unsure(now, changed)
			some, err := d.w.driftOf(context.Background(), now, unsure)
			d.must(err)
			if len(all) > 0 && len(some) == 0 {
				t.Errorf("drift of all: %v; none of the unsure", all)
			}
			if got, err := d.w.drift(context.Background(), now, changed); err != nil || !slices.Equal(got, all) {
				t.Errorf("status says %v (%v), apply %v", got, err, all)
			}
			if len(all) > 0 {
				drifted++
			}
			if len(unsure) < len(changed) {
				short++
			}
		})
	}
	if drifted < 10 || short < 10 {
		t.Errorf("%d cases with drift and %d with something sure: too few to show anything", drifted, short)
	}
}

// driftCase is a workspace with some random changes, over a source with some.
type driftCase struct {
	*testing.T
	r   *rand.Rand
	src string
	w   *Workspace
}

func newDriftCase(t *testing.T, seed uint64) *driftCase {
	d := &driftCase{T: t, r: rand.New(rand.NewPCG(seed, 1)), src: t.TempDir()}
	for _, dir := range []string{"", "d", "e", "d/s"} {
		d.must(os.MkdirAll(filepath.Join(d.src, dir), 0o755))
		for _, name := range []string{"a", "b", "c"} {
			d.must(os.WriteFile(filepath.Join(d.src, dir, name), []byte("lower "+dir+name), 0o644))
		}
	}
	cfg := DefaultConfig()
	cfg.Sources = []Source{{Host: d.src, At: "/", Mode: "rw"}}
	e, err := Create(NewRegistry(t.TempDir()), cfg)
	d.must(err)
	open := func() {
		d.w, err = Open(e, OpenOptions{Mode: ReadWrite})
		d.must(err)
	}
	open()
	for range 1 + d.r.IntN(12) {
		d.change()
	}
	d.must(d.w.Close())
	for range d.r.IntN(4) {
		d.edit()
	}
	open()
	t.Cleanup(func() { d.must(d.w.Close()) })
	return d
}

func (d *driftCase) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// path returns a path that may exist or not.
func (d *driftCase) path() string {
	dirs := []string{"", "d", "e", "d/s", "new"}
	names := []string{"a", "b", "c", "n", "s"}
	return filepath.Join(dirs[d.r.IntN(len(dirs))], names[d.r.IntN(len(names))])
}

// change makes a change in the workspace; one that can't be made is none.
func (d *driftCase) change() {
	t, req := d.w.tree, &tree.Request{TID: uint32(os.Getpid())}
	in := func(path string) (journal.NodeID, string) {
		id := journal.RootID
		parts := strings.Split(path, "/")
		for _, p := range parts[:len(parts)-1] {
			if s, err := t.Lookup(req, id, p); err == nil {
				id = s.ID
			}
		}
		return id, parts[len(parts)-1]
	}
	dir, name := in(d.path())
	switch d.r.IntN(8) {
	case 0, 1:
		if s, err := t.Create(req, dir, name, 0o644); err == nil {
			_, err = t.Write(req, s.ID, []byte(fmt.Sprint("made ", d.r.IntN(3))), 0)
			d.must(err)
		}
	case 2, 3:
		if s, err := t.Lookup(req, dir, name); err == nil && s.Attr.Mode&0o170000 == 0o100000 {
			_, err = t.Write(req, s.ID, []byte(fmt.Sprint("written ", d.r.IntN(3))), 0)
			d.must(err)
		}
	case 4:
		_ = t.Unlink(req, dir, name)
	case 5:
		to, as := in(d.path())
		_ = t.Rename(req, dir, name, to, as, 0)
	case 6:
		_, _ = t.Mkdir(req, journal.RootID, "new", 0o755)
	case 7:
		d.removeDir(in)
	}
}

// removeDir empties a directory and removes it.
func (d *driftCase) removeDir(in func(string) (journal.NodeID, string)) {
	t, req := d.w.tree, &tree.Request{TID: uint32(os.Getpid())}
	dir, _ := in("e/x")
	for _, name := range []string{"a", "b", "c", "n", "s"} {
		_ = t.Unlink(req, dir, name)
	}
	_ = t.Rmdir(req, journal.RootID, "e")
}

// edit changes something on the host.
func (d *driftCase) edit() {
	p := filepath.Join(d.src, d.path())
	switch d.r.IntN(6) {
	case 0:
		_ = os.WriteFile(p, []byte("host's"), 0o644)
	case 1:
		_ = os.Remove(p)
	case 2:
		_ = os.RemoveAll(filepath.Dir(p))
		_ = os.Mkdir(d.src, 0o755)
	case 3:
		if os.WriteFile(p+".tmp", []byte("host's other"), 0o600) == nil {
			_ = os.Rename(p+".tmp", p)
		}
	case 4:
		_ = os.Remove(p)
		_ = os.Mkdir(p, 0o755)
	case 5:
		_ = os.Chmod(p, 0o600)
	}
}
