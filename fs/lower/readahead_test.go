package lower

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
)

// cached reports whether a page of the file is in the page cache
// (cachestat(2), Linux 6.5).
func cached(t *testing.T, name string) bool {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var st unix.Cachestat_t
	err = unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{}, &st, 0)
	if err == unix.ENOSYS {
		harness.Lacking(t, "a kernel with cachestat(2)")
	}
	if err != nil {
		t.Fatal(err)
	}
	return st.Cache > 0
}

// uncached makes files that are on the disk and not in the page cache.
func uncached(t *testing.T, dir string, n int) {
	t.Helper()
	for i := range n {
		name := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(name, make([]byte, 5000), 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if cached(t, name) {
			harness.Lacking(t, "a temporary directory on a disk")
		}
	}
}

func openFS(t *testing.T, dir string) *Dir {
	t.Helper()
	n, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fs := New(16)
	t.Cleanup(fs.Close)
	root, err := fs.Add(n)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestReadAhead(t *testing.T) {
	dir := t.TempDir()
	uncached(t, dir, 30)
	root := openFS(t, dir)
	read := func(name string) {
		t.Helper()
		if _, err := (File{Dir: root, Name: name}).ReadAt(make([]byte, 1), 0); err != nil {
			t.Fatal(err)
		}
	}
	read("3")
	read("3")
	if cached(t, filepath.Join(dir, "20")) {
		t.Fatal("one file was read, and another is in the cache")
	}
	read("4")
	for deadline := time.Now().Add(10 * time.Second); !cached(t, filepath.Join(dir, "20")); {
		if time.Now().After(deadline) {
			t.Fatal("two files were read, and the others are not in the cache")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestReadAheadClose(t *testing.T) {
	dir := t.TempDir()
	for i := range 600 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		root := openFS(t, dir)
		for _, name := range []string{"1", "2"} {
			if _, err := (File{Dir: root, Name: name}).ReadAt(make([]byte, 1), 0); err != nil {
				t.Fatal(err)
			}
		}
		root.fs.Close()
		if n := len(root.fs.cache.files); n != 0 {
			t.Fatalf("%d descriptors are cached after Close", n)
		}
	}
}
