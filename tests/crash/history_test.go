package crash

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/winkfs/winkfs/tests/harness"
)

// change is a command that changes or trims history.
type change struct {
	name string
	args []string
	// same says that the tree stays as it is.
	same bool
}

// changes are killed one by one. Others join as commands come: each has a
// workspace of its own with the history that prepareHistory makes.
var changes = []change{
	{"undo", []string{"undo", "-w", "crash", "exec:2"}, false},
	{"rollback", []string{"rollback", "-w", "crash", "--yes", "1"}, false},
	{"discard", []string{"discard", "-w", "crash", "--yes"}, false},
	{"gc", []string{"gc", "-w", "crash", "--bytes", "1"}, true},
}

// TestKilledInHistory kills the daemon at writes of undo, rollback, discard and
// gc: the tree is then as before or as after, never between, and the journal is
// whole.
//
//	CRASH_HISTORY  runs of each command, 3
func TestKilledInHistory(t *testing.T) {
	harness.Require(t, "binary", "fuse", "userns")
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			bound, deaths := uint64(40), 0
			for range number("CRASH_HISTORY", 3) {
				k := 1 + rand.Uint64N(bound)
				if killChange(t, c, k) {
					deaths++
				} else {
					bound = k // more writes than it makes
				}
				if t.Failed() {
					t.Fatalf("killed at write %d", k)
				}
			}
			t.Logf("%d deaths, of at most %d writes", deaths, bound)
		})
	}
}

// killChange prepares a history, runs the change in a daemon that dies at its
// k-th write, and compares.
func killChange(t *testing.T, c change, k uint64) (died bool) {
	t.Helper()
	r := newRun(t, rand.Uint64())
	before := r.prepareHistory()
	f, err := r.w.Foreground([]string{fmt.Sprintf("WINKFS_CRASH_AT_WRITE=%d", k)}, "-w", "crash", r.w.Mount)
	if err != nil {
		if !killed(err) {
			t.Fatalf("mount: %v", err)
		}
		died = true
	} else {
		res := r.w.Run(c.args...)
		r.end()
		died = r.died(f.Wait())
		if !died && res.Code != 0 {
			t.Fatalf("%s: exit status %d\n%s%s", c.name, res.Code, res.Stdout, res.Stderr)
		}
	}
	if _, err := r.w.Foreground(nil, "-w", "crash", r.w.Mount); err != nil {
		t.Fatalf("mount again: %v", err)
	}
	if v := r.w.In("verify"); v.Code != 0 {
		t.Errorf("verify: exit status %d\n%s%s", v.Code, v.Stdout, v.Stderr)
	}
	got := harness.MustDump(t, r.w.Mount)
	if diffs := harness.Differences(got, before, omit); len(diffs) > 0 {
		if c.same {
			t.Errorf("the tree differs:\n\t%s", strings.Join(diffs, "\n\t"))
		}
		// Not as before: then it must be as the change, made in peace, leaves it.
		r.sameAsAfter(c, got)
	}
	return died
}

// prepareHistory makes three commands and
// returns the tree.
func (r *run) prepareHistory() harness.Tree {
	r.Helper()
	if _, err := r.w.Foreground(nil, "--name", "crash", r.w.Source, r.w.Mount); err != nil {
		r.Fatalf("mount: %v", err)
	}
	for i := range 3 {
		script := fmt.Sprintf("for i in $(seq 20); do echo %d-$i > new%d-$i; done; mkdir -p dir%d/sub; mv new%d-1 dir%d/sub/moved; echo %d >> log%d; rm new%d-2; chmod 600 new%d-3", i, i, i, i, i, i, i, i, i)
		if res := r.w.Exec("sh", "-c", script); res.Code != 0 {
			r.Fatalf("command %d: %s", i, res.Stderr)
		}
	}
	before := harness.MustDump(r.T, r.w.Mount)
	r.w.End()
	return before
}

// sameAsAfter compares the tree with the one that the change leads to.
func (r *run) sameAsAfter(c change, got harness.Tree) {
	r.Helper()
	r.w.MustIn("redo") // back to before
	r.w.Must(c.args...)
	want := harness.MustDump(r.T, r.w.Mount)
	if diffs := harness.Differences(got, want, omit); len(diffs) > 0 {
		r.Errorf("the tree is neither as before nor as after:\n\t%s", strings.Join(diffs, "\n\t"))
	}
}
