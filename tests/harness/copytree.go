package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
	"testing"
)

// CopyTree copies a directory with modes, times, links, hard links, holes and
// extended attributes. to must not exist.
func CopyTree(t testing.TB, from, to string) {
	t.Helper()
	out, err := osexec.Command("cp", "-a", "--sparse=always", "--", from, to).CombinedOutput()
	if err != nil {
		t.Fatalf("copy tree: %v\n%s", err, out)
	}
}

// RemoveTree removes a directory and what is below it, also what its owner made
// unwritable. It is no error if there is none.
func RemoveTree(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && err == nil {
			return os.Chmod(path, 0o700)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove tree: %w", err)
	}
	return os.RemoveAll(dir)
}

// DropCaches makes the kernel forget what it has cached of every file system.
// It does nothing for an ordinary user.
func DropCaches() {
	os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0)
}

// Write makes files from a map of path to content below dir.
func Write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := dir + "/" + name
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
