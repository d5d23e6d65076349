package apply

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMountIsNotCrossed has a bind mount inside the source, of the same file
// system, so that only the mount and not the device number tells.
func TestMountIsNotCrossed(t *testing.T) {
	inMountNamespace(t)
	b := newBench(t)
	b.write("m", "f=1")
	outside := t.TempDir()
	must(t, os.WriteFile(outside+"/x", []byte("safe"), 0o644))
	must(t, unix.Mount(outside, b.path("m"), "", unix.MS_BIND, ""))
	defer unix.Unmount(b.path("m"), unix.MNT_DETACH)
	for _, it := range []Item{
		{Source: 1, Path: "m/new", Want: file("y")},
		{Source: 1, Path: "m/x", Base: Fingerprint{Exists: true, Mode: unix.S_IFREG | 0o644, Size: 4}},
		{Source: 1, Path: "m", Base: Fingerprint{Exists: true, Mode: unix.S_IFDIR | 0o755}},
	} {
		res, err := b.run(it, b.item("f", file("2")))
		if !errors.Is(err, ErrConflict) || !strings.Contains(res.Conflicts[0].Reason, "mounted") {
			t.Errorf("%s gives %+v, %v", it.Path, res, err)
		}
	}
	if got, want := treeOf(t, outside), `x -rw-r--r-- "safe"`; got != want {
		t.Errorf("the mounted directory became\n%s", got)
	}
}

// inMountNamespace gives the test's thread mounts of its own. The thread is
// never unlocked, so it ends with the test.
func inMountNamespace(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS)
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	}
	if err == nil {
		return
	}
	if slices.Contains(strings.Split(os.Getenv("WINKFS_REQUIRE"), ","), "userns") && os.Geteuid() == 0 {
		t.Fatalf("mount namespace: %v", err)
	}
	t.Skipf("mount namespace: %v", err)
}
