package history

import (
	"os"
	"testing"

	"github.com/winkfs/winkfs/tests/harness"
)

// TestUndoKeepsLaterWork undoes the command before last.
func TestUndoKeepsLaterWork(t *testing.T) {
	harness.Require(t, "binary", "fuse", "userns")
	e := harness.New(t)
	source := lowerTree(t, e)
	w := e.NewWorkspace("undo", source)
	mustExec(t, w, "echo first > made-first; rm -rf d1; mv d2 moved; chmod 600 script; ln -s a made-link")
	mustExec(t, w, "echo second > made-second; echo more >> b; rm -rf d3")
	both := harness.MustDump(t, w.Mount)

	w.MustIn("undo", "exec:1")
	undone := harness.MustDump(t, w.Mount)
	want := harness.MustDump(t, source)
	for name := range want {
		if name == "b" || name == "d3" || len(name) > 3 && name[:3] == "d3/" {
			delete(want, name)
		}
	}
	for _, name := range []string{"b", "made-second"} {
		want[name] = both[name]
	}
	harness.Same(t, "after the undo", undone, want, harness.OmitIno|harness.OmitDirMtime)

	w.MustIn("redo")
	harness.Same(t, "after the redo", harness.MustDump(t, w.Mount), both, harness.OmitIno|harness.OmitDirMtime)
}

// TestUndoConflictChangesNothing undoes a command whose file was written since.
func TestUndoConflictChangesNothing(t *testing.T) {
	harness.Require(t, "binary", "fuse", "userns")
	e := harness.New(t)
	w := e.NewWorkspace("conflict", lowerTree(t, e))
	mustExec(t, w, "printf 'one\\n' > a")
	mustExec(t, w, "printf 'two\\n' > a")
	was := harness.MustDump(t, w.Mount)
	if r := w.In("undo", "exec:1"); r.Code != 5 {
		t.Errorf("exit status: got %d, want 5\n%s", r.Code, r.Stderr)
	}
	harness.Same(t, "after the refused undo", harness.MustDump(t, w.Mount), was, 0)
	if data, _ := os.ReadFile(w.Mount + "/a"); string(data) != "two\n" {
		t.Errorf("content: got %q", data)
	}
}

func mustExec(t *testing.T, w *harness.Workspace, script string) {
	t.Helper()
	if r := w.Exec("sh", "-ec", script); r.Code != 0 {
		t.Fatalf("exec %q: exit status %d\n%s%s", script, r.Code, r.Stdout, r.Stderr)
	}
}
