package history

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

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

// TestUndoBesideRunningCommand undoes command 3 while command 5 writes all the
// time: into files that it holds open, into new ones beside those of command 3,
// and to the end of a file that the undo makes shorter.
func TestUndoBesideRunningCommand(t *testing.T) {
	harness.Require(t, "binary", "fuse", "userns")
	e := harness.New(t)
	source := filepath.Join(e.Dir, "source")
	harness.Output(t, "sh", "-ec", "mkdir -p "+source+"/d; cd "+source+"; seq 1 50 > both; echo old > d/own; echo a > d/a; echo b > d/b")
	w := e.NewWorkspace("beside", source)
	mustExec(t, w, "echo 1 > one")
	mustExec(t, w, "echo 2 > two")
	mustExec(t, w, "sed 's/^7$/seven/' both > /tmp/x; cat /tmp/x > both; echo 3 > d/a; rm d/b; mkdir d/new; echo x > d/new/x; echo 3 > three")
	mustExec(t, w, "echo 4 > four")
	done := make(chan harness.Result)
	go func() {
		// Descriptors stay open all the time; 8 appends to the file of command 3.
		done <- w.Exec("sh", "-ec", `exec 7>>d/own 8>>both 9>held; i=0; echo >ready
			while [ ! -e stop ] && [ $i -lt 20000 ]; do i=$((i+1)); echo $i >&7; echo $i >&9; echo $i > d/new-$i; done
			echo end >&8; echo $i > count`)
	}()
	await(t, filepath.Join(w.Mount, "ready"))
	time.Sleep(200 * time.Millisecond)
	for range 3 {
		w.MustIn("undo", "exec:3")
		for name, want := range map[string]string{"d/a": "a\n", "d/b": "b\n", "four": "4\n", "one": "1\n"} {
			if data, err := os.ReadFile(filepath.Join(w.Mount, name)); err != nil || string(data) != want {
				t.Errorf("%s after the undo: got %q (%v), want %q", name, data, err, want)
			}
		}
		for _, name := range []string{"d/new", "three"} {
			if _, err := os.Lstat(filepath.Join(w.Mount, name)); err == nil {
				t.Errorf("%s is still there after the undo", name)
			}
		}
		w.MustIn("redo")
	}
	w.MustIn("undo", "exec:3")
	if err := os.WriteFile(filepath.Join(w.Mount, "stop"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r.Code != 0 {
		t.Fatalf("command 5: exit status %d\n%s", r.Code, r.Stderr)
	}
	checkCommand5(t, w)
	w.MustIn("verify")
}

// checkCommand5 checks that everything that command 5 wrote is there, once and
// in order.
func checkCommand5(t *testing.T, w *harness.Workspace) {
	t.Helper()
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(w.Mount, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	n, err := strconv.Atoi(strings.TrimSpace(read("count")))
	if err != nil || n < 10 {
		t.Fatalf("command 5 wrote %d times (%v)", n, err)
	}
	t.Logf("command 5 wrote %d times", n)
	var lines strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintln(&lines, i)
		if got := read(fmt.Sprintf("d/new-%d", i)); got != fmt.Sprintln(i) {
			t.Fatalf("d/new-%d: got %q", i, got)
		}
	}
	if got := read("held"); got != lines.String() {
		t.Errorf("held has %d bytes, want %d", len(got), lines.Len())
	}
	if got := read("d/own"); got != "old\n"+lines.String() {
		t.Errorf("d/own has %d bytes, want %d", len(got), lines.Len()+4)
	}
	var both strings.Builder
	for i := 1; i <= 50; i++ {
		fmt.Fprintln(&both, i)
	}
	if got := read("both"); got != both.String()+"end\n" {
		t.Errorf("both: got %q", got)
	}
}

// await waits until a file is there.
func await(t *testing.T, path string) {
	t.Helper()
	for range 2000 {
		if _, err := os.Lstat(path); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s does not come", path)
}
