package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// shared reports whether an open file has more than one name: it then belongs
// to the history of a fork, too, and must not be written to.
func shared(f *os.File) (bool, error) {
	fi, err := f.Stat()
	if err != nil {
		return false, fmt.Errorf("look at file of the journal: %w", err)
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1, nil
}

// link gives a sealed file a second name. Where the file system has no hard
// links, or no more of them, the file is copied.
func (d *disk) link(from, to string) error {
	if ft := d.before(KindLink, 0); ft != nil {
		if err := ft.play(); err != nil {
			return fmt.Errorf("link %s: %w", from, err)
		}
	}
	err := os.Link(from, to)
	for _, e := range []error{unix.EXDEV, unix.EPERM, unix.EMLINK, unix.EOPNOTSUPP, unix.ENOSYS} {
		if errors.Is(err, e) {
			return d.copy(from, to)
		}
	}
	return err
}

// copy makes a durable copy of a file.
func (d *disk) copy(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer dst.Close()
	if _, err := io.Copy(dst, src); err != nil {
		return fmt.Errorf("copy file of the journal: %w", err)
	}
	return d.fsync(dst)
}

// openOwn opens a file of the journal that is about to be cut. One that a fork
// has, too, is replaced by a copy first.
func (s *Store) openOwn(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open file of the journal: %w", err)
	}
	both, err := shared(f)
	if err == nil && !both {
		return f, nil
	}
	f.Close()
	if err != nil {
		return nil, err
	}
	tmp := filepath.Join(s.dir, filepath.Base(path)+".new")
	if err := os.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := s.disk.copy(path, tmp); err != nil {
		return nil, err
	}
	if err := s.disk.rename(tmp, path); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR, 0)
}
