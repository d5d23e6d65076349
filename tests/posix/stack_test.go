package posix

import (
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
)

// stack is a union of lower directories that is mounted in mount(8)'s form, by
// mount(8) itself where that is possible.
type stack struct {
	t      *testing.T
	env    *harness.Env
	lowers []string // the first on top
	upper  string
	mnt    string
	full   bool
}

// newStack makes the directories of a stack that is not mounted yet.
func newStack(t *testing.T, lowers int, full bool) *stack {
	t.Helper()
	e := harness.New(t)
	public(t, e.Dir)
	s := &stack{t: t, env: e, upper: e.Dir + "/upper", mnt: e.Dir + "/mnt", full: full}
	for i := range lowers {
		s.lowers = append(s.lowers, fmt.Sprint(e.Dir, "/lower", i))
	}
	for _, d := range append([]string{s.upper, s.mnt, e.Dir + "/work"}, s.lowers...) {
		check(t, os.Mkdir(d, 0o755))
	}
	t.Cleanup(func() { harness.UnmountBelow(s.mnt) })
	return s
}

func (s *stack) mount() {
	s.t.Helper()
	options := "rw,lowerdir=" + strings.Join(s.lowers, ":") + ",upperdir=" + s.upper + ",workdir=" + s.env.Dir + "/work"
	if s.full {
		options += ",profile=posix-full"
	}
	if helper, err := osexec.LookPath("mount.fuse"); os.Geteuid() == 0 && err == nil && helper != "" {
		harness.Output(s.t, "mount", "-t", "fuse", s.env.Bin+"#winkfs", s.mnt, "-o", options)
		return
	}
	s.env.Must("winkfs", s.mnt, "-o", options)
}

func (s *stack) umount() {
	s.t.Helper()
	if os.Geteuid() == 0 {
		harness.Output(s.t, "umount", s.mnt)
		return
	}
	harness.Output(s.t, "fusermount3", "-u", s.mnt)
}

// spread takes a tree that all lowers have apart: each file shows from one of
// them, and those below that one hide another file of its name. Directories stay
// in all.
func (s *stack) spread(tree string) {
	s.t.Helper()
	if len(s.lowers) == 1 {
		return
	}
	for i, low := range s.lowers {
		check(s.t, filepath.WalkDir(low+"/"+tree, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, _ := filepath.Rel(low, path)
			shown := s.layerOf(strings.TrimSuffix(rel, "2"))
			switch {
			case i < shown:
				return unix.Unlink(path)
			case i > shown && d.Type().IsRegular():
				return os.WriteFile(path, []byte("hidden below"), 0)
			}
			return nil
		}))
	}
}

// layerOf says which layer a file shows from. The names of a hard link, which
// differ by a last "2", have the same.
func (s *stack) layerOf(rel string) int {
	h := fnv.New32a()
	h.Write([]byte(rel))
	return int(h.Sum32() % uint32(len(s.lowers)))
}

// dropping lets the kernel forget names and inodes every 0.3 s until the test
// ends, as far as the process may.
func dropping(t *testing.T) {
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			os.WriteFile("/proc/sys/vm/drop_caches", []byte("2"), 0)
			select {
			case <-done:
				return
			case <-time.After(300 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { close(done); <-gone })
}

// same compares what two looks saw: all of it, or only what two file systems
// can have in common.
func same(t *testing.T, what string, got, want map[string]seen, all bool) {
	t.Helper()
	n := 0
	tell := func(format string, args ...any) {
		if n++; n <= 20 {
			t.Errorf(what+": "+format, args...)
		}
	}
	for path, w := range want {
		g, ok := got[path]
		switch {
		case !ok:
			tell("%s is missing", path)
		case g.text != w.text:
			tell("%s: got %s, want %s", path, g.text, w.text)
		case all && g != w:
			tell("%s: got inode %d, times %v, want %d, %v", path, g.ino, g.times, w.ino, w.times)
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			tell("%s should not be there", path)
		}
	}
}

// remounted looks whether the mount is the same after the kernel forgot it and
// after a remount.
func (s *stack) remounted() {
	s.t.Helper()
	was := look(s.mnt, true)
	harness.DropCaches()
	same(s.t, "after the kernel forgot", look(s.mnt, true), was, true)
	s.umount()
	s.mount()
	same(s.t, "after a remount", look(s.mnt, true), was, true)
}

// TestStackOnItsOwnFileSystems does what unionmount's suite does around each of
// its cases: the upper directory holds a file already, and all file systems are
// free at once after umount(8).
func TestStackOnItsOwnFileSystems(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	harness.RequireRoot(t)
	s := newStack(t, 1, false)
	low, up := s.lowers[0], s.upper
	s.upper += "/0/u"
	for range 3 {
		for _, dir := range []string{low, up} {
			harness.Output(t, "mount", "-t", "tmpfs", "layer", dir)
		}
		check(t, os.MkdirAll(s.upper, 0o755))
		put(t, s.upper+"/f", "pure")
		check(t, os.Mkdir(low+"/a", 0o755))
		for i := range 10 {
			scriptSet(t, low+"/a", i)
		}
		harness.Output(t, "mount", "-o", "remount,ro", low)
		s.mount()
		holds(t, s.mnt+"/f", "pure")
		equal(t, "device of an upper file", stat(t, s.mnt+"/f").Dev, stat(t, s.mnt+"/a").Dev)
		unix.Sync()
		for i := range 10 {
			writeInto(t, fmt.Sprint(s.mnt, "/a/direct_sym", i), 0, "shark")
			check(t, os.Rename(fmt.Sprint(s.mnt, "/a/dir", i), fmt.Sprint(s.mnt, "/a/no_dir", i)))
		}
		harness.Output(t, "umount", s.mnt)
		harness.Output(t, "umount", low)
		harness.Output(t, "umount", up)
	}
}

// TestRemount changes a mount by mount(8)'s words, by the helper that it would
// call.
func TestRemount(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	harness.RequireRoot(t)
	s := newStack(t, 1, false)
	put(t, s.lowers[0]+"/f", "text")
	s.mount()
	remount := func(options string) harness.Result {
		return s.env.Run("winkfs:x", s.mnt, "-o", options+",nosuid,nodev,relatime,remount,user_id=0,group_id=0,default_permissions,allow_other,max_read=1048576")
	}
	f, err := os.OpenFile(s.mnt+"/f", os.O_RDWR, 0)
	check(t, err)
	if res := remount("ro"); res.Code == 0 {
		t.Error("read-only, although a file is open to write")
	}
	f.Close()
	equal(t, "ro: "+remount("ro").Stderr, remount("ro").Code, 0)
	fails(t, "create", bare(os.WriteFile(s.mnt+"/g", nil, 0o644)), unix.EROFS)
	fails(t, "chmod", unix.Chmod(s.mnt+"/f", 0o600), unix.EROFS)
	holds(t, s.mnt+"/f", "text")
	equal(t, "rw", remount("rw,noexec,suid,dev").Code, 0)
	check(t, os.WriteFile(s.mnt+"/g", []byte("#!/bin/sh\n"), 0o755))
	fails(t, "execute", unix.Access(s.mnt+"/g", unix.X_OK), unix.EACCES)
	table, err := os.ReadFile("/proc/self/mountinfo")
	check(t, err)
	for line := range strings.Lines(string(table)) {
		if strings.Contains(line, " "+s.mnt+" ") && !strings.Contains(line, " rw,nosuid,nodev,noexec,relatime ") {
			t.Errorf("flags of the mount: %s", line)
		}
	}
	if res := remount("ro,nonsense"); res.Code != 2 {
		t.Errorf("unknown word: %+v", res)
	}
	s.umount()
	if res := remount("ro"); res.Code != 6 {
		t.Errorf("not mounted: %+v", res)
	}
}

// TestUmountDuringWalk unmounts by umount(8) while the kernel's caches are still
// being filled.
func TestUmountDuringWalk(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	harness.RequireRoot(t)
	e := harness.New(t)
	lower := e.Dir + "/lower"
	for i := range 600 {
		d := fmt.Sprintf("%s/%d/%d", lower, i%30, i)
		check(t, os.MkdirAll(d, 0o755))
		put(t, d+"/f", "")
	}
	w := e.NewWorkspace("w", lower)
	pid := w.Status().PID
	for range 2 {
		if err := unix.Unmount(w.Mount, 0); err != nil {
			t.Fatalf("right after mounting: %v", err)
		}
		w.AwaitGone(pid)
		w.Remount()
		pid = w.Status().PID
	}
}
