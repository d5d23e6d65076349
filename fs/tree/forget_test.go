package tree

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
	"github.com/winkfs/winkfs/policy"
)

// check returns what is wrong with the node table.
func (g *rig) check() {
	g.Helper()
	g.t.mu.RLock()
	defer g.t.mu.RUnlock()
	kids := map[*node]uint32{}
	for id, n := range g.t.nodes {
		if n.id != id {
			g.Errorf("node %d is in the table as %d", n.id, id)
		}
		if n.up != g.t.state.Nodes[id] {
			g.Errorf("node %d (%s) has not the state that the state has", id, path(n))
		}
		if n.parent != nil {
			kids[n.parent]++
		}
		if n.lookups == 0 && n.kids == 0 && id != journal.RootID {
			g.Errorf("node %d (%s) is in the table although nobody needs it", id, path(n))
		}
	}
	for id, n := range g.t.nodes {
		if n.kids != kids[n] {
			g.Errorf("node %d (%s) counts %d children and has %d", id, path(n), n.kids, kids[n])
		}
	}
}

// forgetAll gives back every reference.
func (g *rig) forgetAll() {
	g.Helper()
	g.t.mu.RLock()
	held := map[journal.NodeID]uint64{}
	for id, n := range g.t.nodes {
		held[id] = n.lookups
	}
	g.t.mu.RUnlock()
	for id, n := range held {
		g.t.Forget(id, n)
	}
	g.check()
	if n := len(g.t.nodes); n != 1 {
		g.Errorf("%d nodes are in the table after all were forgotten, want the root alone", n)
	}
}

// decider is a Decider that lets a test do something between a look-up's two
// halves.
type decider func(*policy.Request)

func (d decider) Decide(r *policy.Request) policy.Decision {
	d(r)
	return policy.Decision{}
}

// TestLookupBesideRename has a directory renamed while it is being looked up,
// as a revalidation, which the kernel makes without the directory's lock, may.
// The old name must not come back with the first change below it.
func TestLookupBesideRename(t *testing.T) {
	g := newRig(t, map[string]string{"d/c": "one"})
	c := g.id("d/c")
	done := false
	g.t.decider = decider(func(r *policy.Request) {
		if r.Op == policy.OpLookup && r.Name == "d" && !done {
			done = true
			g.must(g.t.Rename(g.r, journal.RootID, "d", journal.RootID, "e", 0))
		}
	})
	if _, err := g.t.Lookup(g.r, journal.RootID, "d"); !errors.Is(err, ErrNotExist) {
		t.Errorf("look-up of the old name: got %v, want ErrNotExist", err)
	}
	_, err := g.t.Write(g.r, c, []byte("two"), 0)
	g.must(err)
	g.wantPaths("e", "e/c")
	g.check()
	g.reopen()
	g.wantPaths("e", "e/c")
	g.wantContent("e/c", "two")
}

// TestRemovedDirectoryGetsNothing asks for changes in a directory that was
// removed, which the kernel prevents only where it removed it itself.
func TestRemovedDirectoryGetsNothing(t *testing.T) {
	g := newRig(t, map[string]string{"lower/": "", "file": "one"})
	made, err := g.t.Mkdir(g.r, journal.RootID, "made", 0o755)
	g.must(err)
	for name, dir := range map[string]journal.NodeID{"made": made.ID, "lower": g.id("lower")} {
		g.must(g.t.Rmdir(g.r, journal.RootID, name))
		for what, fn := range map[string]func() error{
			"create": func() error { _, err := g.t.Create(g.r, dir, "x", 0o644); return err },
			"link":   func() error { _, err := g.t.Link(g.r, g.id("file"), dir, "x"); return err },
			"unlink": func() error { return g.t.Unlink(g.r, dir, "x") },
			"rename into it": func() error {
				return g.t.Rename(g.r, journal.RootID, "file", dir, "x", 0)
			},
			"rename out of it": func() error { return g.t.Rename(g.r, dir, "x", journal.RootID, "y", 0) },
		} {
			within1(t, name+": "+what, func() error {
				if err := fn(); !errors.Is(err, ErrNotExist) {
					t.Errorf("%s: %s: got %v, want ErrNotExist", name, what, err)
				}
				return nil
			})
		}
	}
	g.wantPaths("file")
}

// TestReusedInodeNumber has the host delete a file and make another that gets
// its inode number: the kernel gives back the references to the old one under
// the number of both.
func TestReusedInodeNumber(t *testing.T) {
	g := newRig(t, map[string]string{"a": "one", "d/b": "two"})
	a := g.id("a")
	g.id("d/b")
	p := g.t.nodes[journal.RootID]
	f, err := g.t.child(p, "a")
	g.must(err)
	f.btime++
	s, err := g.t.enter(p, "a", f)
	g.must(err)
	if s.ID != a || s.Gen == uint64(generation(f.btime-1)) {
		t.Fatalf("the new file has number %d and generation %d, want %d and another generation", s.ID, s.Gen, a)
	}
	g.check()
	g.t.Forget(a, 1) // the old one's
	if _, err := g.t.Getattr(g.r, a); err != nil {
		t.Errorf("the new file is forgotten with the old one: %v", err)
	}
	g.forgetAll()
}

// TestReusedInodeNumberOfLinks has a lower file of two names whose inode number
// is that of a deleted file with state. Both names lead to one node, which has a
// number of its own, also after a restart, and after its change was taken back
// and made again.
func TestReusedInodeNumberOfLinks(t *testing.T) {
	g := newRig(t, map[string]string{"a": "one"})
	g.must(os.Link(filepath.Join(g.lowerDir, "a"), filepath.Join(g.lowerDir, "b")))
	st, err := g.t.Getattr(g.r, g.id("a"))
	g.must(err)
	g.forgetAll()
	old := &journal.Node{Own: true, Attr: journal.Attr{Mode: unix.S_IFREG, Btime: st.Attr.Btime - 1}, Origin: journal.Origin{Source: 1, Path: "old", Ino: uint64(st.ID)}}
	commit := func(c ...journal.Change) {
		t.Helper()
		_, err := g.t.Commit(nil, func(*journal.State) (*journal.Record, error) {
			return &journal.Record{Op: journal.OpUndo, Changes: c}, nil
		})
		g.must(err)
	}
	commit(journal.Change{Node: &journal.NodeChange{ID: st.ID, After: old}})
	one := func(mode uint32) {
		t.Helper()
		a, b := g.id("a"), g.id("b")
		if a != b || a == st.ID {
			t.Errorf("the names lead to %d and %d, want one node other than %d", a, b, st.ID)
		}
		if s, err := g.t.Getattr(g.r, b); err != nil || s.Attr.Mode&0o777 != mode {
			t.Errorf("got mode %o, %v, want %o", s.Attr.Mode, err, mode)
		}
	}
	one(0o644)
	before := g.t.state.Seq
	_, err = g.t.Setattr(g.r, g.id("a"), SetAttr{Mask: SetMode, Mode: 0o600})
	g.must(err)
	one(0o600)
	g.reopen()
	one(0o600)
	changed, err := collect(g.store, before+1, g.t.state.Seq)
	g.must(err)
	commit(journal.Invert(changed)...)
	g.reopen()
	one(0o644)
	again, err := collect(g.store, g.t.state.Seq, g.t.state.Seq)
	g.must(err)
	g.id("a")
	commit(journal.Invert(again)...)
	one(0o600)
}

// TestHostMovesFile looks a lower file up by the name that the host gave it
// while the kernel knows it by another.
func TestHostMovesFile(t *testing.T) {
	g := newRig(t, map[string]string{"a": "one", "d/b": "two"})
	a, d := g.id("a"), g.id("d")
	g.must(os.Rename(filepath.Join(g.lowerDir, "a"), filepath.Join(g.lowerDir, "z")))
	g.must(os.Rename(filepath.Join(g.lowerDir, "d"), filepath.Join(g.lowerDir, "e")))
	if z, e := g.id("z"), g.id("e"); z != a || e != d {
		t.Fatalf("the numbers have changed from %d and %d to %d and %d", a, d, z, e)
	}
	_, err := g.t.Getattr(g.r, a)
	g.must(err)
	g.wantContent("z", "one")
	g.wantContent("e/b", "two")
	g.check()
}

// TestForget drops everything that nobody refers to, in memory at once and
// after a restart.
func TestForget(t *testing.T) {
	g := newRig(t, map[string]string{"d/a": "one", "d/b": "two", "d/e/c": "three"})
	g.id("d/e/c")
	g.must(g.t.Readdir(g.r, g.id("d"), 0, true, func(*Dirent) bool { return true }))
	g.write("d/new", "content")
	g.rename("d", "f")
	created := g.id("f/new")
	g.unlink("f/new")
	g.unlink("f/a")
	g.check()
	if g.t.state.Nodes[created] == nil {
		t.Error("the state of a file is dropped while the kernel has it")
	}
	before := g.dump()
	g.forgetAll()
	if g.t.state.Nodes[created] != nil || g.t.state.Contents[created] != nil {
		t.Error("the state of a dead file stays in memory")
	}
	g.reopen()
	if g.t.state.Nodes[created] != nil || g.t.state.Contents[created] != nil {
		t.Error("the state of a dead file comes back into memory after a restart")
	}
	if after := g.dump(); after != before {
		t.Errorf("after a restart:\n%s\nbefore:\n%s", after, before)
	}
}

// TestCommitBesideForget undoes the removal of a file that the kernel lets go
// of in the middle of it.
func TestCommitBesideForget(t *testing.T) {
	g := newRig(t, nil)
	g.write("a", "content")
	a := g.id("a")
	g.unlink("a")
	last := g.t.state.Seq
	recs, err := collect(g.store, last, last)
	g.must(err)
	_, err = g.t.Commit(NodesOf(recs), func(s *journal.State) (*journal.Record, error) {
		go g.t.Forget(a, 100) // waits for the lock
		return &journal.Record{Op: journal.OpUndo, Changes: journal.Invert(recs)}, nil
	})
	g.must(err)
	g.wantContent("a", "content")
	g.reopen()
	g.wantContent("a", "content")
}

// TestUndoneFileStillOpen asks for everything of a file whose creation was
// undone while a process has it open.
func TestUndoneFileStillOpen(t *testing.T) {
	g := newRig(t, nil)
	s, err := g.t.Create(g.r, journal.RootID, "a", 0o644)
	g.must(err)
	recs, err := collect(g.store, 1, 1)
	g.must(err)
	_, err = g.t.Commit(nil, func(*journal.State) (*journal.Record, error) {
		return &journal.Record{Op: journal.OpUndo, Changes: journal.Invert(recs)}, nil
	})
	g.must(err)
	for what, fn := range map[string]func() error{
		"getattr":  func() error { _, err := g.t.Getattr(g.r, s.ID); return err },
		"read":     func() error { _, err := g.t.Read(g.r, s.ID, make([]byte, 1), 0); return err },
		"write":    func() error { _, err := g.t.Write(g.r, s.ID, []byte("x"), 0); return err },
		"truncate": func() error { _, err := g.t.Setattr(g.r, s.ID, SetAttr{Mask: SetSize}); return err },
		"seek":     func() error { _, err := g.t.Lseek(g.r, s.ID, 0, unix.SEEK_DATA); return err },
		"getxattr": func() error { _, err := g.t.Getxattr(g.r, s.ID, "user.x"); return err },
		"setxattr": func() error { return g.t.Setxattr(g.r, s.ID, "user.x", nil, 0) },
		"link":     func() error { _, err := g.t.Link(g.r, s.ID, journal.RootID, "b"); return err },
		"copy":     func() error { _, err := g.t.CopyFileRange(g.r, s.ID, 0, s.ID, 10, 1); return err },
		"allocate": func() error { return g.t.Fallocate(g.r, s.ID, 0, 0, 1) },
	} {
		if err := fn(); !errors.Is(err, ErrNotExist) && !errors.Is(err, unix.ESTALE) {
			t.Errorf("%s: got %v, want that the file is gone", what, err)
		}
	}
	g.forgetAll()
}

// collect returns the records of a range.
func collect(store *journal.Store, from, to journal.Seq) (recs []*journal.Record, err error) {
	err = store.Records(from, to, func(r *journal.Record) error {
		recs = append(recs, r)
		return nil
	})
	return recs, err
}
