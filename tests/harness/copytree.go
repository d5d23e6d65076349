package harness

import (
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
