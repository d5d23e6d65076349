package history

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
)

// watcher collects inotify events of a mount, as an editor's would.
type watcher struct {
	t    *testing.T
	fd   int
	name map[int32]string
}

// watch watches paths below dir; "" is dir itself.
func watch(t *testing.T, dir string, paths ...string) *watcher {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	w := &watcher{t: t, fd: fd, name: map[int32]string{}}
	for _, p := range paths {
		const mask = unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM |
			unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ATTRIB
		wd, err := unix.InotifyAddWatch(fd, filepath.Join(dir, p), mask)
		if err != nil {
			t.Fatalf("watch %q: %v", p, err)
		}
		w.name[int32(wd)] = p
	}
	return w
}

var eventNames = []struct {
	bit  uint32
	name string
}{
	{unix.IN_MODIFY, "modify"}, {unix.IN_CLOSE_WRITE, "close_write"}, {unix.IN_CREATE, "create"}, {unix.IN_DELETE, "delete"},
	{unix.IN_MOVED_FROM, "moved_from"}, {unix.IN_MOVED_TO, "moved_to"}, {unix.IN_DELETE_SELF, "delete_self"},
	{unix.IN_MOVE_SELF, "move_self"}, {unix.IN_ATTRIB, "attrib"}, {unix.IN_IGNORED, "ignored"}, {unix.IN_Q_OVERFLOW, "overflow"},
}

// events returns what has come so far, as "event path".
func (w *watcher) events() []string {
	w.t.Helper()
	var out []string
	buf := make([]byte, 1<<20)
	for {
		n, err := unix.Read(w.fd, buf)
		if err != nil || n <= 0 {
			return out
		}
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			wd, mask := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:])
			size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
			name := strings.TrimRight(string(b[unix.SizeofInotifyEvent:size]), "\x00")
			for _, e := range eventNames {
				if mask&e.bit != 0 {
					out = append(out, strings.TrimSpace(e.name+" "+filepath.Join(w.name[wd], name)))
				}
			}
			b = b[size:]
		}
	}
}

// expect fails unless each of the events has come, and none of the others.
func (w *watcher) expect(what string, want, never []string) {
	w.t.Helper()
	got := w.events()
	for _, e := range want {
		if !slices.Contains(got, e) {
			w.t.Errorf("%s: no event %q among %q", what, e, got)
		}
	}
	for _, e := range never {
		if slices.Contains(got, e) {
			w.t.Errorf("%s: event %q among %q", what, e, got)
		}
	}
}

// watched makes a workspace, and the script that changes something of each kind
// in it.
func watched(t *testing.T) (w *harness.Workspace, change string) {
	t.Helper()
	e := harness.New(t)
	source := filepath.Join(e.Dir, "source")
	harness.Output(t, "sh", "-ec", fmt.Sprintf(`mkdir -p %[1]s/d/sub %[1]s/moved; cd %[1]s
		echo one > a.txt; echo b > b.txt; echo x > d/x; echo y > d/sub/y; echo z > moved/z; ln -s a.txt link; echo keep > d/keep`, source))
	return e.NewWorkspace("watch", source),
		`echo two > a.txt; rm b.txt; rm -r d/sub; mv moved gone; echo new > new.txt; mkdir made; chmod 600 d/x; rm link`
}

// What those who watch the mount are told of that change, and of what takes it
// back.
var (
	changeSeen = []string{
		"modify a.txt", "delete b.txt", "delete d/sub", "moved_from moved", "moved_to gone", "create new.txt", "create made", "delete link",
	}
	returnSeen = []string{
		"modify a.txt", "close_write a.txt", "create b.txt", "create d/sub", "moved_from gone", "moved_to moved", "delete new.txt",
		"delete made", "create link",
	}
	neverSeen = []string{"delete_self a.txt", "ignored a.txt", "delete a.txt", "overflow", "delete d/keep"}
)

// TestWatchersSeeUndo has a program watch the mount while a command's changes
// are undone, redone, rolled back and discarded.
func TestWatchersSeeUndo(t *testing.T) {
	harness.Require(t, "binary", "fuse", "userns")
	w, change := watched(t)
	before := harness.MustDump(t, w.Source)
	mustExec(t, w, change)
	after := harness.MustDump(t, w.Mount)
	for _, step := range []struct {
		args []string
		tree harness.Tree
		want []string
	}{
		{[]string{"undo", "exec:1"}, before, returnSeen},
		{[]string{"redo"}, after, changeSeen},
		{[]string{"rollback", "exec:1", "--yes"}, before, returnSeen},
		{[]string{"redo"}, after, changeSeen},
		{[]string{"discard", "--yes"}, before, returnSeen},
		{[]string{"redo"}, after, changeSeen},
	} {
		what := strings.Join(step.args, " ")
		in := watch(t, w.Mount, "", "a.txt", "d")
		w.MustIn(step.args[0], step.args[1:]...)
		in.expect(what, step.want, neverSeen)
		harness.Same(t, "the mount after "+what, harness.MustDump(t, w.Mount), step.tree, recorded)
	}
	w.MustIn("verify")
}

// TestWatchersSeeMerge has a program watch the mount while a fork's changes come
// into it.
func TestWatchersSeeMerge(t *testing.T) {
	harness.Require(t, "binary", "fuse", "userns")
	w, change := watched(t)
	w.MustIn("clone", "--with-changes", "fork")
	f := w.Prepare("fork", w.Source)
	f.Remount()
	mustExec(t, f, change)
	in := watch(t, w.Mount, "", "a.txt", "d")
	w.Must("merge", "fork")
	in.expect("merge", changeSeen, neverSeen)
	harness.Same(t, "the mount after the merge", harness.MustDump(t, w.Mount), harness.MustDump(t, f.Mount), harness.OmitIno|harness.OmitDirMtime)
	w.Must("merge", "--dry-run", "fork")
	in.expect("a merge of nothing", nil, append(changeSeen, neverSeen...))
	w.MustIn("verify")
}

// TestEditorNoticesUndo has a file open and watched, as an editor would, while
// a command's change of it is undone.
func TestEditorNoticesUndo(t *testing.T) {
	harness.Require(t, "binary", "fuse", "userns")
	e := harness.New(t)
	source := filepath.Join(e.Dir, "source")
	harness.Output(t, "sh", "-ec", fmt.Sprintf("mkdir %[1]s; printf 'short\\n' > %[1]s/f", source))
	w := e.NewWorkspace("editor", source)
	mustExec(t, w, "echo a much longer text > f")
	f, err := os.OpenFile(filepath.Join(w.Mount, "f"), os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	was, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	in := watch(t, w.Mount, "f")
	time.Sleep(10 * time.Millisecond)
	w.MustIn("undo", "exec:1")
	in.expect("undo", []string{"modify f"}, []string{"delete_self f", "ignored f"})
	is, err := f.Stat()
	if err != nil || is.Size() != 6 || is.ModTime().Equal(was.ModTime()) {
		t.Errorf("the open file has %d bytes of %v (%v), it had those of %v", is.Size(), is.ModTime(), err, was.ModTime())
	}
	// What the editor appends then goes to the new end.
	if _, err := f.WriteString("more\n"); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(filepath.Join(w.Mount, "f")); string(data) != "short\nmore\n" {
		t.Errorf("content: got %q", data)
	}
}
