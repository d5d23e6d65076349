package stall

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
)

func TestMain(m *testing.M) {
	if mnt := os.Getenv(envMount); mnt != "" {
		os.Exit(serveLower(os.Getenv(envSource), mnt, os.Getenv(envGate)))
	}
	os.Exit(harness.Main(m))
}

// rig is a workspace over a lower that can hang.
type rig struct {
	*testing.T
	w      *harness.Foreground
	source string // what the lower shows
	gate   string // everything hangs that can, while this file is there
	at     func(string) string
}

// free is how many files the directory that never hangs has.
const free = 50

func newRig(t *testing.T) *rig {
	e := harness.New(t)
	g := &rig{T: t, gate: filepath.Join(e.Dir, "gate"), source: filepath.Join(e.Dir, "source")}
	mnt := filepath.Join(e.Dir, "lower")
	files := map[string]string{"hung/big": string(make([]byte, 8<<20)), "top": "top"}
	for i := range 200 {
		files[fmt.Sprintf("hung/%d/file", i)] = "hung"
	}
	for i := range free {
		files[fmt.Sprintf("free/%d", i)] = "free"
	}
	harness.Write(t, g.source, files)
	if err := os.Mkdir(mnt, 0o755); err != nil {
		t.Fatal(err)
	}
	startLower(t, g.source, mnt, g.gate)
	w := e.Prepare("stall", mnt)
	g.at = func(name string) string { return filepath.Join(w.Mount, name) }
	var err error
	g.w, err = w.Foreground([]string{"WINKFS_STALL_SYNC=" + g.gate}, "--name", "stall", mnt, w.Mount)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.release) // before the workspace is unmounted
	return g
}

// stall closes the gate.
func (g *rig) stall() {
	g.Helper()
	if err := os.WriteFile(g.gate, nil, 0o644); err != nil {
		g.Fatal(err)
	}
}

// release opens the gate.
func (g *rig) release() { os.Remove(g.gate) }

// start begins an operation that is to get stuck, and returns its end.
func start(fn func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	return done
}

// soon fails the test at once unless fn ends within 20 s. Usually it takes
// microseconds; a machine that is busy with other things may take much longer.
func (g *rig) soon(what string, fn func() error) {
	g.Helper()
	select {
	case err := <-start(fn):
		if err != nil {
			g.Errorf("%s: %v", what, err)
		}
	case <-time.After(20 * time.Second):
		g.Fatalf("%s waits for operations that are stuck", what)
	}
}

func (g *rig) read(name string) func() error {
	return func() error { _, err := os.ReadFile(g.at(name)); return err }
}

// missing looks for a file that is not there.
func (g *rig) missing(name string) error {
	if _, err := os.Lstat(g.at(name)); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("got %v, want that it does not exist", err)
	}
	return nil
}

// syncFile writes a file and syncs it.
func (g *rig) syncFile(name string) error {
	f, err := os.Create(g.at(name))
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString("to be synced"); err != nil {
		return err
	}
	return f.Sync()
}

// copyBig copies the large lower file by copy_file_range(2).
func (g *rig) copyBig() error {
	in, err := os.Open(g.at("hung/big"))
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(g.at("copy"))
	if err != nil {
		return err
	}
	defer out.Close()
	for left := 8 << 20; left > 0; {
		n, err := unix.CopyFileRange(int(in.Fd()), nil, int(out.Fd()), nil, left, 0)
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrUnexpectedEOF
		}
		left -= n
	}
	return nil
}

// TestFiveStuck has five operations stuck at once, each in its own way.
func TestFiveStuck(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	g := newRig(t)
	// What is made behind the walk that follows the mount is in no cache.
	harness.Write(t, g.source, map[string]string{"hung/late/file": "late"})
	g.soon("read", g.read("hung/big")) // so that the copy hangs where it reads
	g.soon("look-up", func() error { _, err := os.Lstat(g.at("hung/late")); return err })
	g.stall()
	stuck := map[string]<-chan error{
		"look-up": start(func() error { return g.missing("hung/1/other") }),
		"read":    start(g.read("hung/2/file")),
		"list":    start(func() error { _, err := os.ReadDir(g.at("hung/late")); return err }),
		"copy-up": start(func() error { return os.WriteFile(g.at("hung/4/file"), []byte("new"), 0o644) }),
		"fsync":   start(func() error { return g.syncFile("synced") }),
		"copy":    start(g.copyBig),
	}
	time.Sleep(200 * time.Millisecond)
	for name, done := range stuck {
		if len(done) > 0 {
			t.Errorf("%s is not stuck", name)
		}
	}
	for i := range free {
		g.others(i)
	}
	g.soon("status", func() error { g.w.Status(); return nil })
	g.soon("log", func() error { g.w.MustIn("log"); return nil })
	g.release()
	for name, done := range stuck {
		if err := <-done; err != nil {
			t.Errorf("%s after the gate was opened: %v", name, err)
		}
	}
}

// others does what has nothing to do with what is stuck.
func (g *rig) others(i int) {
	g.Helper()
	old, made := fmt.Sprintf("free/%d", i), fmt.Sprintf("free/made%d", i)
	g.soon("stat", func() error { _, err := os.Lstat(g.at(old)); return err })
	g.soon("read", g.read(old))
	g.soon("list", func() error { _, err := os.ReadDir(g.at("free")); return err })
	g.soon("copy-up", func() error { return os.WriteFile(g.at(old), []byte("changed"), 0o644) })
	g.soon("create", func() error { return os.WriteFile(g.at(made), make([]byte, 200_000), 0o644) })
	g.soon("read back", g.read(made))
	g.soon("rename", func() error { return os.Rename(g.at(made), g.at(made+"x")) })
	g.soon("mkdir", func() error { return os.Mkdir(g.at(made), 0o755) })
	g.soon("missing name", func() error { return g.missing(made + "y") })
	g.soon("unlink", func() error { return os.Remove(g.at(made + "x")) })
}

// TestManyStuck has more processes wait for a hanging lower than there are
// readers with memory of their own, and than a few threads could serve.
func TestManyStuck(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	g := newRig(t)
	g.stall()
	var stuck []<-chan error
	for i := range 200 {
		stuck = append(stuck, start(g.read(fmt.Sprintf("hung/%d/file", i))))
	}
	time.Sleep(200 * time.Millisecond)
	for i := range free {
		g.others(i)
	}
	g.release()
	for _, done := range stuck {
		if err := <-done; err != nil {
			t.Errorf("after the gate was opened: %v", err)
		}
	}
}
