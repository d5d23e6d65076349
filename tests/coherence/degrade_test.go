package coherence

import (
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
)

// TestQueueOverflow stops the daemon while the host makes more changes than the
// kernel keeps events of.
func TestQueueOverflow(t *testing.T) {
	e := harness.New(t)
	source := filepath.Join(e.Dir, "source")
	check(t, os.Mkdir(source, 0o755))
	for i := range 20 {
		harness.Write(t, source, map[string]string{fmt.Sprintf("d%d/f", i): "old\n", fmt.Sprintf("d%d/sub/g", i): "old\n"})
	}
	w := e.NewWorkspace("overflow", source)
	check(t, os.WriteFile(w.Mount+"/d1/mine", []byte("mine\n"), 0o644))
	everything(w.Mount)
	attr(w.Mount + "/d3/new") // known not to exist
	pid := w.Status().PID
	check(t, unix.Kill(pid, unix.SIGSTOP))
	flood(t, source+"/d0")
	check(t, os.WriteFile(source+"/d2/f", []byte("new\n"), 0o644))
	check(t, os.WriteFile(source+"/d3/new", []byte("new\n"), 0o644))
	check(t, os.RemoveAll(source+"/d4"))
	check(t, first(os.RemoveAll(source+"/d1"), os.MkdirAll(source+"/d1/sub", 0o755), os.WriteFile(source+"/d1/sub/h", []byte("new\n"), 0o644)))
	check(t, unix.Kill(pid, unix.SIGCONT))
	took, diff := await(func() (string, string) {
		rest := ""
		for i := 2; i < 20; i++ {
			rest += files(fmt.Sprintf("%s/d%d", w.Mount, i)) + ";"
		}
		want := ""
		for i := 2; i < 20; i++ {
			want += files(fmt.Sprintf("%s/d%d", source, i)) + ";"
		}
		return attr(w.Mount+"/d3/new") + files(w.Mount+"/d1") + rest, attr(source+"/d3/new") + "mine mine sub/h new" + want
	})
	if diff != "" {
		t.Errorf("missed: %s", diff)
	}
	t.Logf("seen %v after the daemon went on", took)
}

// flood makes more events in a directory than the kernel's queue holds. Equal
// events in a row are one, so two files take turns.
func flood(t *testing.T, dir string) {
	t.Helper()
	limit := 16384
	if b, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events"); err == nil {
		fmt.Sscan(string(b), &limit)
	}
	check(t, os.WriteFile(dir+"/a", nil, 0o644))
	check(t, os.WriteFile(dir+"/b", nil, 0o644))
	for range limit/2 + 10 {
		check(t, first(os.Chmod(dir+"/a", 0o644), os.Chmod(dir+"/b", 0o644)))
	}
}

// TestWatchLimit runs in a user namespace that allows four watches only.
func TestWatchLimit(t *testing.T) {
	e := harness.New(t)
	harness.Require(t, "userns", "unshare")
	// The namespace needs a /dev/fuse that it may open.
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err == nil {
		f.Close()
	} else {
		harness.Lacking(t, "a /dev/fuse that may be opened: %v", err)
	}
	script := `set -e
echo 4 > /proc/sys/user/max_inotify_watches
for i in 1 2 3 4 5 6 7 8 9; do mkdir -p source/d$i; echo old > source/d$i/f; done
mkdir mnt
"$BIN" mount --name limit source mnt >&2
look() { for i in 1 2 3 4 5 6 7 8 9; do stat mnt/d$i >/dev/null; cat mnt/d$i/f; ls mnt/d$i; done | tr '\n' ' '; echo; }
look >&2; look >&2
for i in 1 2 3 4 5 6 7 8 9; do echo new > source/d$i/f; echo new > source/d$i/new; done
sleep 1.2
look
"$BIN" status -w limit --json
"$BIN" umount limit >&2`
	cmd := osexec.Command("unshare", "-U", "-r", "-m", "sh", "-c", script)
	cmd.Dir = e.Dir
	cmd.Env = append(os.Environ(), "BIN="+e.Bin, "WINKFS_STATE_DIR="+e.State)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, errs.String())
	}
	look, status, _ := strings.Cut(string(out), "\n")
	if want := strings.Repeat("new f new ", 9); look != want {
		t.Errorf("a second after the edits: got %q, want %q", look, want)
	}
	if !strings.Contains(status, "max_user_watches") {
		t.Errorf("status does not name the limit: %s", status)
	}
}

// TestSourceLost takes the source itself away.
func TestSourceLost(t *testing.T) {
	tests := []struct {
		name string
		do   func(dir string) error
		want string
	}{
		{"nothing", func(string) error { return nil }, ""},
		{"renamed", func(d string) error { return os.Rename(d, d+"-old") }, "gone from the host"},
		{"deleted", os.RemoveAll, "gone from the host"},
		{"replaced", func(d string) error { return first(os.RemoveAll(d), os.Mkdir(d, 0o755)) }, "another directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := harness.New(t)
			source := filepath.Join(e.Dir, "source")
			harness.Write(t, source, map[string]string{"f": "text\n", "d/g": "text\n"})
			w := e.NewWorkspace("lost", source)
			check(t, os.WriteFile(w.Mount+"/d/mine", []byte("mine\n"), 0o644))
			everything(w.Mount)
			check(t, tt.do(source))
			got := strings.Join(w.Status().Degraded, "; ")
			if has := strings.Contains(got, "source"); has != (tt.want != "") || !strings.Contains(got, tt.want) {
				t.Errorf("degraded: got %q, want %q", got, tt.want)
			}
			if b, err := os.ReadFile(w.Mount + "/d/mine"); string(b) != "mine\n" {
				t.Errorf("the workspace's own file: got %q, %v", b, err)
			}
			check(t, os.WriteFile(w.Mount+"/d/more", []byte("more\n"), 0o644))
		})
	}
}

// TestSourceUnmounted unmounts a file system that holds the source.
func TestSourceUnmounted(t *testing.T) {
	harness.RequireRoot(t)
	e := harness.New(t)
	disk := filepath.Join(e.Dir, "disk")
	check(t, os.Mkdir(disk, 0o755))
	check(t, unix.Mount("tmpfs", disk, "tmpfs", 0, ""))
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	harness.Write(t, disk, map[string]string{"source/f": "text\n"})
	w := e.NewWorkspace("unmounted", disk+"/source")
	check(t, os.WriteFile(w.Mount+"/mine", []byte("mine\n"), 0o644))
	check(t, unix.Unmount(disk, unix.MNT_DETACH))
	if got := strings.Join(w.Status().Degraded, "; "); !strings.Contains(got, "gone from the host") {
		t.Errorf("degraded: got %q", got)
	}
	if got, want := files(w.Mount), "f text mine mine"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestGitCheckout switches branches on the host below the mount.
func TestGitCheckout(t *testing.T) {
	e := harness.New(t)
	harness.Require(t, "git")
	source := filepath.Join(e.Dir, "source")
	git := func(args ...string) {
		t.Helper()
		harness.Output(t, append([]string{"git", "-C", source, "-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
	}
	harness.Output(t, "git", "init", "-q", "-b", "one", source)
	for i := range 200 {
		harness.Write(t, source, map[string]string{fmt.Sprintf("d%d/f%d", i%10, i): fmt.Sprintf("one %d\n", i), fmt.Sprintf("gone%d/g%d", i%5, i): "g\n"})
	}
	git("add", "-A")
	git("commit", "-qm", "one")
	git("checkout", "-qb", "two")
	for i := range 5 {
		check(t, os.RemoveAll(fmt.Sprintf("%s/gone%d", source, i)))
	}
	for i := range 200 {
		harness.Write(t, source, map[string]string{fmt.Sprintf("d%d/f%d", i%10, i): fmt.Sprintf("two %d\n", i), fmt.Sprintf("new%d/n%d", i%5, i): "n\n"})
	}
	check(t, os.Remove(source+"/d1/f1"))
	check(t, first(os.Remove(source+"/d2/f2"), os.Mkdir(source+"/d2/f2", 0o755), os.WriteFile(source+"/d2/f2/x", []byte("x\n"), 0o644)))
	git("add", "-A")
	git("commit", "-qm", "two")
	w := e.NewWorkspace("checkout", source)
	look := func() (string, string) { return everything(w.Mount), everything(source) }
	var took []time.Duration
	for _, branch := range []string{"one", "two", "one", "two"} {
		if _, diff := await(look); diff != "" {
			t.Fatalf("differs before the checkout: %s", firstDifference(look()))
		}
		git("checkout", "-q", branch)
		d, diff := await(look)
		if diff != "" {
			t.Fatalf("checkout of %s is missed:\n%s", branch, firstDifference(look()))
		}
		took = append(took, d)
	}
	t.Logf("checkouts of about 600 files seen after %v (looking at everything takes part of that)", took)
}
