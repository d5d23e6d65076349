package crash

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
	"github.com/winkfs/winkfs/tests/model"
)

// TestDiskFull fills the state directory's file system: the write that does not
// fit fails with ENOSPC, all that was answered stays, and with room again work
// goes on.
func TestDiskFull(t *testing.T) {
	small, lower, w := onSmallDisk(t)

	written := fillUp(t, w.Mount)
	t.Logf("%d files fit", written)
	if written == 0 {
		t.Fatal("nothing fits")
	}
	checkFiles(t, w.Mount, written)
	if got := harness.MustDump(t, w.Mount); got["a"].Hash != harness.MustDump(t, lower)["a"].Hash {
		t.Error("a lower file has changed")
	}

	if err := unix.Mount("", small, "", unix.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.Mount+"/after", pattern(0), 0o644); err != nil {
		t.Errorf("with room again: %v", err)
	}
	w.Umount()
	w.Remount()
	checkFiles(t, w.Mount, written)
	w.MustIn("verify")
}

// TestCollectOnFullDisk collects without room for what that needs: it fails and
// changes nothing, and works with room again.
func TestCollectOnFullDisk(t *testing.T) {
	small, _, w := onSmallDisk(t)
	written := fillUp(t, w.Mount)
	// What is dead makes a collection want to move what is live.
	for i := 0; i < written; i += 2 {
		os.Remove(fmt.Sprintf("%s/fill%d", w.Mount, i))
	}
	if r := w.In("gc", "--bytes", "1"); r.Code != 1 || !strings.Contains(r.Stderr, "no space") {
		t.Errorf("gc on a full disk: exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	w.MustIn("verify")
	first := w.MustIn("status")
	if err := unix.Mount("", small, "", unix.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	w.MustIn("gc", "--bytes", "1")
	if w.MustIn("status") == first {
		t.Error("gc with room again did nothing")
	}
	w.Umount()
	w.Remount()
	for i := 1; i < written; i += 2 {
		data, err := os.ReadFile(fmt.Sprintf("%s/fill%d", w.Mount, i))
		if err != nil || string(data) != string(pattern(i)) {
			t.Errorf("file %d: %d bytes, %v", i, len(data), err)
		}
	}
	w.MustIn("verify")
}

func pattern(i int) []byte { return model.Op{Len: 100_000, Seed: uint64(i)}.Data() }

// fillUp writes files until one does not fit, and returns how many did.
func fillUp(t *testing.T, dir string) int {
	t.Helper()
	for i := range 1000 {
		name := fmt.Sprintf("%s/fill%d", dir, i)
		err := os.WriteFile(name, pattern(i), 0o644)
		if err == nil {
			continue
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Errorf("file %d: got %v, want ENOSPC", i, err)
		}
		return i
	}
	t.Fatal("everything fits")
	return 0
}

func checkFiles(t *testing.T, dir string, n int) {
	t.Helper()
	for i := range n {
		data, err := os.ReadFile(fmt.Sprintf("%s/fill%d", dir, i))
		if err != nil || string(data) != string(pattern(i)) {
			t.Errorf("file %d: %d bytes, %v", i, len(data), err)
		}
	}
}

// onSmallDisk mounts a workspace whose state lies on a file system of 16 MiB.
func onSmallDisk(t *testing.T) (small, lower string, w *harness.Workspace) {
	t.Helper()
	harness.RequireRoot(t)
	e := harness.New(t)
	small, lower = filepath.Join(e.Dir, "small"), filepath.Join(e.Dir, "lower")
	for _, dir := range []string{small, lower} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount("winkfs-test", small, "tmpfs", 0, "size=16m"); err != nil {
		harness.Lacking(t, "leave to mount a small file system: %v", err)
	}
	e.State = filepath.Join(small, "state")
	model.MakeLower(t, lower)
	return small, lower, e.NewWorkspace("full", lower)
}
