package tree

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
)

// TestStress has several callers do everything at once in the same few
// directories, each giving its references back, with views and groups of
// changes in between. Nothing may hang or be left behind, and the state in
// memory must be the one on disk. It is meant for the race detector.
func TestStress(t *testing.T) {
	const callers, rounds = 6, 400
	g := newRig(t, map[string]string{"a": "one", "d/b": "two", "d/e/c": "three", "f/": "", "large": string(make([]byte, 300_000))})
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			c := &caller{g: g, r: rand.New(rand.NewPCG(seed, uint64(i)))}
			for range rounds {
				if err := c.step(); err != nil && !expected(err) {
					t.Errorf("seed %d: %v", seed, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	before := g.dump()
	g.forgetAll()
	g.reopen()
	if after := g.dump(); after != before {
		t.Errorf("seed %d: after a restart:\n%s\nbefore:\n%s", seed, after, before)
	}
}

// expected reports whether an operation may fail so among others.
func expected(err error) bool {
	for _, e := range []error{ErrNotExist, ErrExist, ErrNotEmpty, ErrNotDir, ErrIsDir, ErrInvalid, ErrNoAttr, ErrNotPermitted, ErrNoData, unix.ESTALE} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// caller does random operations as the kernel would send them.
type caller struct {
	g *rig
	r *rand.Rand
}

func (c *caller) name() string { return string(rune('a' + c.r.IntN(6))) }

// dir looks a directory up and calls fn with it, while it holds references to
// all on the way.
func (c *caller) dir(fn func(dir journal.NodeID) error) error {
	return c.below(journal.RootID, c.r.IntN(3), fn)
}

func (c *caller) below(dir journal.NodeID, depth int, fn func(journal.NodeID) error) error {
	if depth == 0 {
		return fn(dir)
	}
	return c.with(dir, func(s Stat) error {
		if s.Attr.Mode&unix.S_IFMT != unix.S_IFDIR {
			return fn(dir)
		}
		return c.below(s.ID, depth-1, fn)
	})
}

// with looks a random name up.
func (c *caller) with(dir journal.NodeID, fn func(Stat) error) error {
	s, err := c.g.t.Lookup(c.g.r, dir, c.name())
	if err != nil {
		return err
	}
	defer c.g.t.Forget(s.ID, 1)
	return fn(s)
}

// made gives back the reference that making a node counted.
func (c *caller) made(s Stat, err error) error {
	if err == nil {
		c.g.t.Forget(s.ID, 1)
	}
	return err
}

func (c *caller) step() error {
	t, r := c.g.t, c.g.r
	return c.dir(func(dir journal.NodeID) error {
		switch c.r.IntN(12) {
		case 0:
			return c.made(t.Create(r, dir, c.name(), 0o644))
		case 1:
			return c.made(t.Mkdir(r, dir, c.name(), 0o755))
		case 2:
			return t.Unlink(r, dir, c.name())
		case 3:
			return t.Rmdir(r, dir, c.name())
		case 4:
			return c.list(dir)
		case 5, 6:
			return c.dir(func(to journal.NodeID) error {
				flags := []uint32{0, 0, RenameNoReplace, RenameExchange}[c.r.IntN(4)]
				return t.Rename(r, dir, c.name(), to, c.name(), flags)
			})
		case 7:
			return c.with(dir, func(s Stat) error { return c.made(t.Link(r, s.ID, dir, c.name())) })
		case 8:
			return c.whole()
		}
		return c.with(dir, c.file)
	})
}

func (c *caller) list(dir journal.NodeID) error {
	var ids []journal.NodeID
	err := c.g.t.Readdir(c.g.r, dir, 0, true, func(d *Dirent) bool {
		if d.Stat != nil {
			ids = append(ids, d.ID)
		}
		return true
	})
	for _, id := range ids {
		c.g.t.Forget(id, 1)
	}
	return err
}

// file changes or reads what was found.
func (c *caller) file(s Stat) error {
	t, r := c.g.t, c.g.r
	off := c.r.Int64N(400_000)
	switch c.r.IntN(9) {
	case 0:
		_, err := t.Write(r, s.ID, make([]byte, 1+c.r.IntN(10_000)), off)
		return err
	case 1:
		_, err := t.Read(r, s.ID, make([]byte, 5000), off)
		return err
	case 2:
		_, err := t.Setattr(r, s.ID, SetAttr{Mask: SetMode | SetMtimeNow, Mode: 0o700})
		return err
	case 3:
		_, err := t.Setattr(r, s.ID, SetAttr{Mask: SetSize, Size: uint64(off)})
		return err
	case 4:
		return t.Fallocate(r, s.ID, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, 1000)
	case 5:
		return t.Setxattr(r, s.ID, "user.x", fmt.Append(nil, off), 0)
	case 6:
		_, err := t.CopyFileRange(r, s.ID, 0, s.ID, off, 1000)
		return err
	case 7:
		_, err := t.Lseek(r, s.ID, off, unix.SEEK_DATA)
		return err
	}
	_, err := t.Getattr(r, s.ID)
	return err
}

// whole does what concerns the workspace as a whole.
func (c *caller) whole() error {
	t := c.g.t
	switch c.r.IntN(4) {
	case 0:
		return t.Fsync(c.g.r, journal.RootID, false)
	case 1:
		t.LowerOverflow()
		t.Snapshot()
		return nil
	case 2:
		return c.made(t.Tmpfile(c.g.r, journal.RootID, 0o600))
	}
	return c.undo()
}

// undo takes the last record back as a group.
func (c *caller) undo() error {
	t := c.g.t
	last := t.Snapshot().Seq()
	recs, err := collect(c.g.store, last, last)
	if err != nil || last < 2 || recs[0].Op == journal.OpUndo {
		return err
	}
	_, err = t.Commit(NodesOf(recs), func(s *journal.State) (*journal.Record, error) {
		if s.Seq != last {
			return nil, nil
		}
		return &journal.Record{Op: journal.OpUndo, Changes: journal.Invert(recs)}, nil
	})
	return err
}
