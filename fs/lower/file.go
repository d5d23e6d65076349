package lower

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// File names a lower file that is not a directory. It holds no descriptor. The
// zero value is a file that is not there: all that asks for it fails with
// ErrStale.
type File struct {
	Dir  *Dir
	Name string
	Ino  uint64 // 0 = not known; what is opened must have this number
}

// Same reports whether both name the same place, whatever is there.
func (f File) Same(g File) bool { return f.Name == g.Name && f.Dir.same(g.Dir) }

// with calls fn with a descriptor of the regular file, open for reading.
func (f File) with(fn func(fd int) error) error {
	if f.Dir == nil {
		return ErrStale
	}
	h, err := f.Dir.fs.cache.get(fdKey{dir: f.Dir, name: f.Name}, f.open)
	if err != nil {
		return err
	}
	defer f.Dir.fs.cache.put(h)
	return fn(h.n)
}

func (f File) open() (int, error) {
	n := -1
	err := f.Dir.with(func(dfd int) error {
		var err error
		// O_NONBLOCK: a FIFO that the host put there must not block us.
		n, err = openBeneath(dfd, f.Name, unix.O_RDONLY|unix.O_NONBLOCK)
		return err
	})
	if err != nil {
		return -1, fmt.Errorf("open lower %q: %w", f.Name, err)
	}
	if err := checkRegular(n, f.Ino); err != nil {
		unix.Close(n)
		return -1, fmt.Errorf("open lower %q: %w", f.Name, err)
	}
	return n, nil
}

func checkRegular(fd int, ino uint64) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || (ino != 0 && st.Ino != ino) {
		return ErrStale
	}
	return nil
}

// Drop closes the cached descriptor, for when the host replaced the file, in
// whichever layer of a stack that was.
func (f File) Drop() {
	if f.Dir == nil {
		return
	}
	f.Dir.eachFound(func(d *Dir) { d.fs.cache.drop(fdKey{dir: d, name: f.Name}) })
}

// ReadAt reads from the file like pread(2): fewer bytes than asked for only at
// its end, without an error.
func (f File) ReadAt(p []byte, off int64) (int, error) {
	got := 0
	err := f.with(func(fd int) error {
		if off == 0 {
			f.Dir.fs.ahead.note(f)
		}
		for got < len(p) {
			n, err := unix.Pread(fd, p[got:], off+int64(got))
			if err == unix.EINTR {
				continue
			}
			if err != nil {
				return err
			}
			if n == 0 {
				return nil
			}
			got += n
		}
		return nil
	})
	if err != nil {
		return got, fmt.Errorf("read lower %q: %w", f.Name, err)
	}
	return got, nil
}

// Seek returns the next data (SEEK_DATA) or hole (SEEK_HOLE) at or after off.
// io.EOF means that there is none.
func (f File) Seek(off int64, whence int) (int64, error) {
	var pos int64
	err := f.with(func(fd int) error {
		var err error
		pos, err = unix.Seek(fd, off, whence)
		return err
	})
	if errors.Is(err, unix.ENXIO) {
		return 0, io.EOF
	}
	if err != nil {
		return 0, fmt.Errorf("seek lower %q: %w", f.Name, err)
	}
	return pos, nil
}

// Readlink returns the target of a symbolic link.
func (f File) Readlink() (string, error) {
	var target string
	err := f.withPath(func(fd int) error {
		buf := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(fd, "", buf)
		if err == nil {
			target = string(buf[:n])
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read lower link %q: %w", f.Name, err)
	}
	return target, nil
}

// withPath calls fn with an O_PATH descriptor of the file, which is closed
// afterwards.
func (f File) withPath(fn func(fd int) error) error {
	if f.Dir == nil {
		return ErrStale
	}
	return f.Dir.with(func(dfd int) error {
		if f.Name == "" {
			return fn(dfd)
		}
		// RESOLVE_NO_SYMLINKS would refuse the link itself: with O_PATH and
		// O_NOFOLLOW the last component is not followed anyway, and there is
		// only one.
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV}
		n, err := unix.Openat2(dfd, f.Name, &how)
		if err != nil {
			return err
		}
		defer unix.Close(n)
		if err := checkIno(n, f.Ino); err != nil {
			return err
		}
		return fn(n)
	})
}
