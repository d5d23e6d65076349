package journal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/winkfs/winkfs/tests/harness"
)

// crashCollect appends the records of a fixed history with collections in
// between. It acknowledges each record.
func crashCollect(dir string, o Options, acked func(Seq)) error {
	s, err := Create(dir, o)
	if err != nil {
		return err
	}
	h := newHistory(13, s)
	t := &failer{}
	for i := range 90 {
		h.next(t)
		if t.failed {
			return fmt.Errorf("append failed")
		}
		acked(h.st.Seq)
		if i%30 == 29 {
			pins := []Pin{{Seq(i - 9), "test"}}
			if _, err := s.GC(context.Background(), GCOptions{Retention: Retention{Records: 1}, Pins: pins}); err != nil {
				return err
			}
		}
	}
	return s.Close()
}

// A process killed at any change to the disk, those of a collection included,
// loses neither a record that stays nor a byte of any point in reach, and what
// the collection left is cleaned up.
//
//	JOURNAL_CRASH_STEP  kill at every so manieth change only, 4; 1 takes a minute
func TestCrashInCollection(t *testing.T) {
	if testing.Short() {
		harness.Lacking(t, "time: it starts hundreds of processes")
	}
	k := &keeper{points: pointsOfCollect(t)}
	step := number("JOURNAL_CRASH_STEP", 4)
	for n := 1 + rand.IntN(step); ; n += step {
		dir := t.TempDir()
		ended := killedCollect(t, dir, n)
		s, err := Open(dir, Options{Clock: tick()})
		if err != nil && n < 20 {
			continue // killed in Create
		}
		if err != nil {
			t.Fatalf("killed at %d: open: %v", n, err)
		}
		st := s.State()
		k.check(t, s, reviveAll(t, s, st))
		mustClose(t, s)
		verifyClean(t, dir)
		if t.Failed() {
			t.Fatalf("killed at %d", n)
		}
		if ended {
			return
		}
	}
}

// reviveAll adds the nodes that are gone, which inverses may bring back.
func reviveAll(t *testing.T, s *Store, st *State) *State {
	t.Helper()
	err := s.Records(0, 0, func(r *Record) error {
		for _, id := range nodesOf(r) {
			if st.Nodes[id] != nil {
				continue
			}
			n, c, err := s.LookupNode(id)
			if err != nil {
				return err
			}
			if n != nil {
				st.Nodes[id] = n
			}
			if c != nil {
				st.Contents[id] = c
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// pointsOfCollect returns the points of the workload, made without a kill and
// without collections.
func pointsOfCollect(t *testing.T) map[Seq]rendering {
	s := mustCreate(t, t.TempDir(), Options{SegmentSize: 6 << 10, PackSize: 8 << 10, Clock: tick()})
	h := newHistory(13, s)
	points := map[Seq]rendering{0: render(t, NewState(), s.ReadAt)}
	for range 90 {
		h.next(t)
		points[h.st.Seq] = render(t, h.st, s.ReadAt)
	}
	return points
}

func killedCollect(t *testing.T, dir string, k int) (ended bool) {
	t.Helper()
	cmd := osexec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "JOURNAL_CRASH_DIR="+dir, "JOURNAL_CRASH_WORK=collect", "JOURNAL_CRASH_AT="+strconv.Itoa(k))
	if rand.IntN(2) == 0 {
		cmd.Env = append(cmd.Env, "JOURNAL_CRASH_TORN=1")
	}
	out, _ := cmd.Output()
	if strings.Contains(string(out), "failed:") {
		t.Fatalf("child at %d says %s", k, out)
	}
	return strings.HasSuffix(string(out), "end\n")
}
