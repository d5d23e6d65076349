package history

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/winkfs/winkfs/journal"
	"github.com/winkfs/winkfs/journal/journaltest"
	"github.com/winkfs/winkfs/tests/harness"
)

// number returns what the environment says, for longer runs.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// Budgets of a long history. HISTORY_SLACK multiplies the times, for a machine
// that does something else as well.
const (
	commandBudget = 300 * time.Millisecond
	memoryBudget  = 300 << 20
)

func slack() time.Duration { return time.Duration(number("HISTORY_SLACK", 10)) }

// A long history costs nothing where it isn't asked for: mounting, the first
// listing, log, status and the undo of the last command take a moment, and the
// daemon stays small.
//
//	HISTORY_RECORDS  length of the history, 100000
//	HISTORY_LIVE     changed files at its end, 1000
//	HISTORY_SLACK    factor that the times may be over their budgets, 10
func TestLongHistory(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	e := harness.New(t)
	live := number("HISTORY_LIVE", 1000)
	w := e.NewWorkspace("long", lowerTree(t, e))
	id := w.Status().ID
	w.Umount()
	fill(t, filepath.Join(e.State, "wink-"+id), journaltest.Shape{Records: number("HISTORY_RECORDS", 100_000), Live: live})

	var pid int
	timed(t, "mount", w.Remount)
	timed(t, "first ls", func() {
		if names := readDir(t, w.Mount); len(names) < live/100 {
			t.Errorf("%d names in the root", len(names))
		}
	})
	timed(t, "log -n 20", func() {
		if out := w.MustIn("log", "--limit", "20"); strings.Count(out, "\n") < 20 {
			t.Errorf("log is short:\n%s", out)
		}
	})
	timed(t, "status", func() { pid = w.Status().PID })
	command := lastCommand(t, w)
	timed(t, "undo", func() { w.MustIn("undo", fmt.Sprintf("exec:%d", command)) })
	timed(t, "redo", func() { w.MustIn("redo") })
	checkMemory(t, pid)
	collectTwice(t, w)
	checkMemory(t, pid)
	w.MustIn("verify")
	w.Umount()
	timed(t, "log -n 20, not mounted", func() { w.MustIn("log", "--limit", "20") })
	timed(t, "status, not mounted", func() { w.MustIn("status") })
}

func fill(t *testing.T, dir string, shape journaltest.Shape) {
	t.Helper()
	s, err := journal.Open(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = journaltest.Fill(s, shape)
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		t.Fatal(err)
	}
}

// timed fails the test if fn takes longer than a command may.
func timed(t *testing.T, what string, fn func()) {
	t.Helper()
	at := time.Now()
	fn()
	took := time.Since(at)
	t.Logf("%-24s %v", what, took.Round(100*time.Microsecond))
	if took > commandBudget*slack() {
		t.Errorf("%s took %v, budget %v", what, took, commandBudget*slack())
	}
}

func readDir(t *testing.T, dir string) []os.DirEntry {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// lastCommand returns the number of the newest command.
func lastCommand(t *testing.T, w *harness.Workspace) uint64 {
	t.Helper()
	out := strings.TrimSpace(w.MustIn("log", "--op", "exec_end", "--limit", "1", "--json"))
	_, rest, ok := strings.Cut(out, `"exec":`)
	n, err := strconv.ParseUint(rest[:max(0, strings.IndexAny(rest, ",}"))], 10, 64)
	if !ok || err != nil {
		t.Fatalf("no command in %s", out)
	}
	return n
}

// collectTwice runs a second gc while one is running, which is refused.
func collectTwice(t *testing.T, w *harness.Workspace) {
	t.Helper()
	refused := func(r harness.Result) bool {
		if r.Code != 0 && (r.Code != 1 || !strings.Contains(r.Stderr, "another gc is running")) {
			t.Errorf("gc: exit status %d\n%s", r.Code, r.Stderr)
		}
		return r.Code != 0
	}
	ended := make(chan bool)
	go func() { // all of history, which takes a while
		for refused(w.Run("gc", "-w", w.Name, "--bytes", "1")) && !t.Failed() {
		}
		close(ended)
	}()
	seen := false
	for {
		select {
		case <-ended:
			if !seen {
				t.Error("no second gc was refused")
			}
			return
		default:
			seen = refused(w.Run("gc", "-w", w.Name, "--age", "0", "--bytes", "0", "--records", "0")) || seen
		}
	}
}

// checkMemory compares the daemon's greatest resident size with the budget.
func checkMemory(t *testing.T, pid int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("daemon's greatest memory %d MiB", kb>>10)
	if kb<<10 > memoryBudget {
		t.Errorf("daemon took %d MiB, budget %d", kb>>10, memoryBudget>>20)
	}
}
