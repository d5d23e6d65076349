package journal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/winkfs/winkfs/tests/harness"
)

// cloned is the plan of a fork that takes the state as it is.
func cloned(p ForkPoint) (*Record, error) {
	return &Record{Op: OpClone, Note: &Note{Point: p.Seq, Text: `{"parent":"x"}`}}, nil
}

var smallFiles = Options{SegmentSize: 6 << 10, PackSize: 8 << 10, Clock: tick()}

func mustFork(t testing.TB, s *Store, dir string) ForkPoint {
	t.Helper()
	p, err := s.Fork(dir, cloned)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// goOn opens a fork and returns a history that goes on where it begins.
func goOn(t testing.TB, dir string, seed uint64, st *State) *history {
	t.Helper()
	s := mustOpen(t, dir, smallFiles)
	h := newHistory(seed, s)
	h.st, h.exec = s.State(), st.NextExec
	sameFiles(t, "fork", h.st, st)
	return h
}

func verified(t testing.TB, what, dir string) {
	t.Helper()
	if r, err := Verify(dir); err != nil || len(r.Problems) > 0 {
		t.Fatalf("%s: verify: %+v, %v", what, r, err)
	}
}

// sums returns the checksum of each segment and pack.
func sums(t testing.TB, dir string) map[string][32]byte {
	t.Helper()
	out := map[string][32]byte{}
	for _, sub := range []string{logDir, packDir} {
		names, err := os.ReadDir(filepath.Join(dir, sub))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			b, err := os.ReadFile(filepath.Join(dir, sub, n.Name()))
			if err != nil {
				t.Fatal(err)
			}
			out[filepath.Join(sub, n.Name())] = sha256.Sum256(b)
		}
	}
	return out
}

// unchanged fails the test unless all files of the fork are as they were when
// it was made.
func unchanged(t testing.TB, what, dir string, was map[string][32]byte) {
	t.Helper()
	now := sums(t, dir)
	for name, sum := range was {
		if now[name] != sum {
			t.Errorf("%s: %s has changed", what, name)
		}
	}
}

// A fork is taken at any moment of a parent's life; both go on, are closed,
// opened again and verified, and neither touches what both have.
func TestFork(t *testing.T) {
	for _, tc := range []struct {
		name   string
		before int // records
		commit bool
	}{
		{"of an empty journal", 0, false},
		{"of one record", 1, false},
		{"all in the log", 40, false},
		{"all in the database", 200, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			top := t.TempDir()
			parent, fork := filepath.Join(top, "parent"), filepath.Join(top, "fork")
			s := mustCreate(t, parent, smallFiles)
			h := newHistory(5, s)
			for range tc.before {
				h.next(t)
			}
			if tc.commit {
				if err := s.Commit(); err != nil {
					t.Fatal(err)
				}
			}
			point := mustFork(t, s, fork)
			if point.Seq != Seq(tc.before) || point.NextNode != h.st.NextNode {
				t.Fatalf("fork at %+v, want record %d, next node %d", point, tc.before, h.st.NextNode)
			}
			own := sums(t, fork)
			f := goOn(t, fork, 6, h.st)
			if f.st.Seq != point.Seq+1 {
				t.Fatalf("the fork's head is %d", f.st.Seq)
			}
			for range 150 {
				h.next(t)
			}
			unchanged(t, "after work in the parent", fork, own)
			mustClose(t, s)
			s = mustOpen(t, parent, smallFiles)
			h.store = s
			for range 150 {
				f.next(t)
				h.next(t)
			}
			mustClose(t, f.store)
			mustClose(t, s)
			for name := range own {
				if name == filepath.Join(logDir, filepath.Base(logName(point.Seq+1, point.FirstFile))) {
					delete(own, name) // the fork's own
				}
			}
			unchanged(t, "after work in both", fork, own)
			verified(t, "parent", parent)
			verified(t, "fork", fork)
			sameState(t, "fork", mustOpen(t, fork, smallFiles).State(), f.st)
			sameState(t, "parent", mustOpen(t, parent, smallFiles).State(), h.st)
		})
	}
}

// A fork outlives its parent.
func TestForkOutlivesParent(t *testing.T) {
	top := t.TempDir()
	parent, fork := filepath.Join(top, "parent"), filepath.Join(top, "fork")
	s := mustCreate(t, parent, smallFiles)
	h := newHistory(9, s)
	for range 100 {
		h.next(t)
	}
	mustFork(t, s, fork)
	mustClose(t, s)
	if err := os.RemoveAll(parent); err != nil {
		t.Fatal(err)
	}
	f := goOn(t, fork, 10, h.st)
	for range 50 {
		f.next(t)
	}
	mustClose(t, f.store)
	verified(t, "fork", fork)
}

// Forks of forks are as good as the first.
func TestForkNested(t *testing.T) {
	top := t.TempDir()
	s := mustCreate(t, filepath.Join(top, "0"), smallFiles)
	h := newHistory(3, s)
	for depth := 1; depth <= 10; depth++ {
		for range 20 {
			h.next(t)
		}
		dir := filepath.Join(top, fmt.Sprint(depth))
		mustFork(t, h.store, dir)
		next := goOn(t, dir, uint64(depth), h.st)
		for range 20 {
			h.next(t) // the parent goes its own way
		}
		mustClose(t, h.store)
		h = next
	}
	mustClose(t, h.store)
	for depth := 0; depth <= 10; depth++ {
		verified(t, fmt.Sprintf("depth %d", depth), filepath.Join(top, fmt.Sprint(depth)))
	}
}

// Forks are made while the parent is written to and committed.
func TestForkUnderWrites(t *testing.T) {
	top := t.TempDir()
	s := mustCreate(t, filepath.Join(top, "parent"), Options{SegmentSize: 30 << 10, PackSize: 30 << 10})
	done := make(chan struct{})
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Add(1)
		go func() {
			defer writers.Done()
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				id := CreatedBit + NodeID(1+w)
				ref, err := s.Put(make([]byte, 100+i%1000))
				if err != nil {
					t.Error(err)
					return
				}
				r := &Record{Op: OpWrite, Data: []DataRef{ref}, Changes: []Change{{Content: &ContentChange{
					ID: id, Len: ref.Len, After: []Extent{{Len: ref.Len, Kind: ExtentData, Loc: ref.Loc}},
				}}}}
				if _, err := s.Append(r, nil); err != nil {
					t.Error(err)
					return
				}
				if i%50 == 7 {
					if err := s.Commit(); err != nil {
						t.Error(err)
					}
				}
			}
		}()
	}
	var forks sync.WaitGroup
	for i := range 12 {
		forks.Add(1)
		go func() {
			defer forks.Done()
			dir := filepath.Join(top, fmt.Sprint(i))
			if _, err := s.Fork(dir, cloned); err != nil {
				t.Error(err)
				return
			}
			if r, err := Verify(dir); err != nil || len(r.Problems) > 0 {
				t.Errorf("fork %d: %+v, %v", i, r, err)
			}
		}()
	}
	forks.Wait()
	close(done)
	writers.Wait()
	mustClose(t, s)
	verified(t, "parent", filepath.Join(top, "parent"))
}

// A fork that fails or is cut off at any change to the disk leaves its parent
// whole, and is no journal or a whole one.
func TestForkCutOffAtEveryWrite(t *testing.T) {
	errCut := errors.New("cut off")
	for k := 1; ; k++ {
		top := t.TempDir()
		parent, fork := filepath.Join(top, "parent"), filepath.Join(top, "fork")
		n, armed := 0, false
		o := smallFiles
		o.Inject = func(string, int) *Fault {
			if !armed {
				return nil
			}
			if n++; n < k {
				return nil
			}
			return &Fault{Err: errCut}
		}
		s := mustCreate(t, parent, o)
		h := newHistory(4, s)
		for range 60 {
			h.next(t)
		}
		armed = true
		_, err := s.Fork(fork, cloned)
		armed = false
		abandon(s)
		again := mustOpen(t, parent, smallFiles)
		sameState(t, "parent", again.State(), h.st)
		mustClose(t, again)
		verified(t, "parent", parent)
		f, ferr := Open(fork, smallFiles)
		switch {
		case ferr == nil:
			sameFiles(t, "fork", f.State(), h.st)
			mustClose(t, f)
			verified(t, "fork", fork)
		case err == nil:
			t.Fatalf("cut at %d: the fork was acknowledged and doesn't open: %v", k, ferr)
		}
		if err == nil {
			if k < 8 {
				t.Fatalf("the fork makes only %d changes to the disk", k)
			}
			return
		}
	}
}

// Where the file system has no hard links the files are copied.
func TestForkCopies(t *testing.T) {
	top := t.TempDir()
	parent, err := os.MkdirTemp("/dev/shm", "winkfs-fork")
	if err != nil {
		harness.Lacking(t, "a second file system: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	s := mustCreate(t, parent, smallFiles)
	h := newHistory(8, s)
	for range 80 {
		h.next(t)
	}
	mustFork(t, s, filepath.Join(top, "fork"))
	f := goOn(t, filepath.Join(top, "fork"), 2, h.st)
	f.next(t)
	mustClose(t, f.store)
	verified(t, "fork", filepath.Join(top, "fork"))
}

// A damaged end of the log that two journals share is cut in one of them only.
func TestForkRepairKeepsOther(t *testing.T) {
	top := t.TempDir()
	parent, fork := filepath.Join(top, "parent"), filepath.Join(top, "fork")
	s := mustCreate(t, parent, smallFiles)
	h := newHistory(8, s)
	for range 10 {
		h.next(t)
	}
	p := mustFork(t, s, fork)
	mustClose(t, s)
	name := logName(1, 1)
	if err := os.Remove(filepath.Join(parent, logName(p.Seq+1, p.FirstFile))); err != nil {
		t.Logf("the parent's empty segment: %v", err)
	}
	f, err := os.OpenFile(filepath.Join(parent, name), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	fi, _ := f.Stat()
	if _, err := f.WriteAt([]byte{0xff}, fi.Size()-1); err != nil {
		t.Fatal(err)
	}
	f.Close()
	was := sums(t, fork)
	if _, err := Rebuild(parent, smallFiles); err != nil {
		t.Fatal(err)
	}
	unchanged(t, "after the parent's repair", fork, was)
	verified(t, "parent", parent)
}
