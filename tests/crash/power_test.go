package crash

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
)

// FS_IOC_SHUTDOWN makes a file system fail every access from then on; with
// NOLOGFLUSH it writes nothing more to its device, not even its own journal,
// as a loss of power would. See xfs_ioctl_fs.h and fs/ext4/ioctl.c.
const (
	fsIocShutdown      = 0x8004587d
	shutdownNoLogFlush = 2
)

// TestPowerLoss cuts the power of the disk with the state directory at random
// moments: the workspace then opens at a recorded point that has everything
// that was fsynced.
//
//	POWER_RUNS  losses for each file system, 2
func TestPowerLoss(t *testing.T) {
	harness.RequireRoot(t)
	harness.Require(t, "binary", "fuse", "loop", "mkfs.ext4", "mkfs.xfs")
	for _, fs := range []string{"ext4", "xfs"} {
		t.Run(fs, func(t *testing.T) {
			for range number("POWER_RUNS", 2) {
				seed := number("MODEL_SEED", rand.Uint64N(1<<32))
				t.Logf("MODEL_SEED=%d", seed)
				losePower(t, fs, rand.New(rand.NewPCG(seed, 1)))
				if t.Failed() {
					return
				}
			}
		})
	}
}

// disk is a file system on a loop device.
type disk struct {
	t          *testing.T
	image, dir string
}

func newDisk(t *testing.T, e *harness.Env, fs string) *disk {
	t.Helper()
	d := &disk{t: t, image: filepath.Join(e.Dir, "image"), dir: filepath.Join(e.Dir, "disk")}
	if err := os.Mkdir(d.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(d.image)
	if err == nil {
		err = f.Truncate(400 << 20)
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	force := "-F"
	if fs == "xfs" {
		force = "-f"
	}
	harness.Output(t, "mkfs."+fs, "-q", force, d.image)
	d.mount()
	t.Cleanup(func() {
		osexec.Command("umount", "-l", d.dir).Run()
		os.Remove(d.image)
	})
	return d
}

func (d *disk) mount() {
	d.t.Helper()
	harness.Output(d.t, "mount", "-o", "loop", d.image, d.dir)
}

// cut makes the disk lose its power.
func (d *disk) cut() {
	d.t.Helper()
	f, err := os.Open(d.dir)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	flags := uint32(shutdownNoLogFlush)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), fsIocShutdown, uintptr(unsafe.Pointer(&flags)))
	if errno != 0 {
		d.t.Fatalf("shut down file system: %v", errno)
	}
}

// restart mounts the disk anew, which replays its journal.
func (d *disk) restart() {
	d.t.Helper()
	for range 100 {
		if osexec.Command("umount", d.dir).Run() == nil {
			d.mount()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	d.t.Fatal("the disk stays busy")
}

func losePower(t *testing.T, fs string, r *rand.Rand) {
	t.Helper()
	e := harness.New(t)
	d := newDisk(t, e, fs)
	e.State = filepath.Join(d.dir, "state")
	lower := filepath.Join(e.Dir, "lower")
	if err := os.Mkdir(lower, 0o755); err != nil {
		t.Fatal(err)
	}
	w := e.Prepare("power", lower)
	f, err := w.Foreground(nil, "--name", "power", lower, w.Mount)
	if err != nil {
		t.Fatal(err)
	}
	wr := &writer{dir: w.Mount, r: r}
	done := make(chan struct{})
	go func() {
		defer close(done)
		wr.run()
	}()
	collected := collectAgain(w)
	time.Sleep(time.Duration(50+r.IntN(900)) * time.Millisecond)
	d.cut()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("the writer does not notice")
	}
	w.KillForeground()
	f.Wait()
	t.Logf("%d collections", <-collected)
	harness.UnmountBelow(w.Mount)
	d.restart()

	recoverAfterBoot(t, e)
	if _, err := w.Foreground(nil, "-w", "power", w.Mount); err != nil {
		t.Fatalf("mount again: %v", err)
	}
	if v := w.In("verify"); v.Code != 0 {
		t.Errorf("verify: exit status %d\n%s%s", v.Code, v.Stdout, v.Stderr)
	}
	wr.check(t, w.Mount)
	w.End()
}

// collectAgain drops all history again and again until that fails, and then
// says how often it did.
func collectAgain(w *harness.Workspace) <-chan int {
	n := make(chan int, 1)
	go func() {
		for i := 0; ; i++ {
			if r := w.Run("gc", "-w", "power", "--bytes", "1"); r.Code != 0 {
				n <- i
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return n
}

// recoverAfterBoot opens the workspace for the first time in a namespace with
// another boot id, as after a loss of power.
func recoverAfterBoot(t *testing.T, e *harness.Env) {
	t.Helper()
	id := filepath.Join(e.Dir, "boot_id")
	if err := os.WriteFile(id, []byte("00000000-0000-4000-8000-000000000001\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	inner := e.Cmd("checkpoint", "-w", "power", "recovered")
	script := `mount --bind "$1" /proc/sys/kernel/random/boot_id && shift && exec "$@"`
	cmd := osexec.Command("unshare", append([]string{"-m", "--propagation", "private", "sh", "-c", script, "sh", id}, inner.Args...)...)
	cmd.Env, cmd.Dir = inner.Env, inner.Dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("open after the loss of power: %v\n%s", err, out)
	}
}

// writer makes one change after the other, with an fsync now and then.
type writer struct {
	dir  string
	r    *rand.Rand
	done []step
	sure int // changes that were there when the last fsync returned
}

// step is one change.
type step struct {
	kind string // create, append, rename, remove
	name string
	to   string
	data []byte
}

func (w *writer) run() {
	var names []string
	for i := 0; ; i++ {
		s := w.next(i, &names)
		w.done = append(w.done, s)
		synced, err := w.do(s)
		if err != nil {
			return
		}
		if synced {
			w.sure = len(w.done)
		}
	}
}

func (w *writer) next(i int, names *[]string) step {
	pick := func() int { return w.r.IntN(len(*names)) }
	data := bytes.Repeat([]byte{byte('a' + i%26)}, 1+w.r.IntN(40_000))
	switch k := w.r.IntN(10); {
	case k < 5 || len(*names) < 3:
		name := fmt.Sprintf("f%d", i)
		*names = append(*names, name)
		return step{"create", name, "", data}
	case k < 7:
		return step{"append", (*names)[pick()], "", data}
	case k < 9:
		j := pick()
		s := step{"rename", (*names)[j], fmt.Sprintf("r%d", i), nil}
		(*names)[j] = s.to
		return s
	}
	j := pick()
	s := step{"remove", (*names)[j], "", nil}
	*names = append((*names)[:j], (*names)[j+1:]...)
	return s
}

// do makes the change and reports whether it was fsynced.
func (w *writer) do(s step) (synced bool, err error) {
	path := filepath.Join(w.dir, s.name)
	switch s.kind {
	case "rename":
		return false, os.Rename(path, filepath.Join(w.dir, s.to))
	case "remove":
		return false, os.Remove(path)
	}
	flags := os.O_WRONLY | os.O_APPEND
	if s.kind == "create" {
		flags |= os.O_CREATE | os.O_EXCL
	}
	f, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if _, err := f.Write(s.data); err != nil {
		return false, err
	}
	if w.r.IntN(8) > 0 {
		return false, nil
	}
	return true, f.Sync()
}

// check compares the tree with the points behind the last fsync: it is one of
// them, or lies within the change behind one.
func (w *writer) check(t *testing.T, dir string) {
	t.Helper()
	got := map[string]string{}
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got[e.Name()] = string(b)
	}
	want := map[string]string{}
	for i := 0; ; i++ {
		if i >= w.sure && w.within(got, want, i) {
			t.Logf("%d changes, %d sure, opened behind %d", len(w.done), w.sure, i)
			return
		}
		if i == len(w.done) {
			break
		}
		w.done[i].play(want)
	}
	t.Errorf("the tree is at no point from %d to %d: %s", w.sure, len(w.done), names(got))
}

// within reports whether the tree is as after i changes, but for a part of the
// next one.
func (w *writer) within(got, want map[string]string, i int) bool {
	own := ""
	if i < len(w.done) && (w.done[i].kind == "create" || w.done[i].kind == "append") {
		own = w.done[i].name
	}
	for name, text := range got {
		old, there := want[name]
		switch {
		case there && text == old:
		case name == own && strings.HasPrefix(old+string(w.done[i].data), text) && strings.HasPrefix(text, old):
		default:
			return false
		}
	}
	for name := range want {
		if _, ok := got[name]; !ok {
			return false
		}
	}
	return true
}

// play makes the change in the reference.
func (s step) play(tree map[string]string) {
	switch s.kind {
	case "create", "append":
		tree[s.name] += string(s.data)
	case "rename":
		tree[s.to] = tree[s.name]
		delete(tree, s.name)
	case "remove":
		delete(tree, s.name)
	}
}

func names(tree map[string]string) string {
	var out []string
	for n := range tree {
		out = append(out, n)
	}
	return fmt.Sprintf("%d files: %s", len(out), strings.Join(out, " "))
}
