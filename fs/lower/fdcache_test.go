package lower

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestHangingClose closes descriptors of a file system that does not answer:
// nobody else may wait for it, neither for the lock nor for the eviction.
func TestHangingClose(t *testing.T) {
	f, root, _ := newFS(t, 1, func(dir string) {
		for _, name := range []string{"a", "b", "c"} {
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644))
		}
	})
	root.slow = true
	release, closing := make(chan struct{}), make(chan struct{}, 10)
	f.cache.close = func(fd int) error {
		closing <- struct{}{}
		<-release
		return unix.Close(fd)
	}
	done := make(chan error)
	go func() {
		for _, name := range []string{"a", "b", "c", "a"} {
			if _, err := (File{Dir: root, Name: name}).ReadAt(make([]byte, 1), 0); err != nil {
				done <- err
				return
			}
		}
		root.Drop("a")
		done <- nil
	}()
	<-closing
	select {
	case err := <-done:
		must(t, err)
	case <-time.After(10 * time.Second):
		t.Error("reads wait for another file's close")
	}
	close(release)
}

func TestMayHang(t *testing.T) {
	for path, want := range map[string]bool{"/proc": true, "/dev/shm": false} {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		if got := mayHang(fd); got != want {
			t.Errorf("mayHang(%s) = %v, want %v", path, got, want)
		}
	}
}
