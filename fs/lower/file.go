package lower

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// File names a lower file. It holds no descriptor, unless it was kept. The zero
// value is a file that is not there: all that asks for it fails with ErrStale.
type File struct {
	Dir  *Dir
	Name string // "" for the directory itself
	// Ino and Btime, the time of birth in ns, tell the file from one that the host
	// puts in its place: inode numbers are used again at once. 0 = not known.
	Ino   uint64
	Btime int64
	// Kept is a descriptor of the file that is used rather than its name, which
	// the host has taken away.
	Kept *Kept
}

// Stat returns the file's attributes. Those of a name that leads to another
// file by now are ErrStale.
func (f File) Stat() (Stat, error) {
	if f.Kept != nil {
		return f.Kept.stat()
	}
	st, err := f.Dir.Stat(f.Name)
	if err == nil && !st.Mounted && f.other(st.Ino, st.Btime) {
		return st, fmt.Errorf("stat lower %q: %w", f.Name, ErrStale)
	}
	return st, err
}

// other reports whether an inode is not the file's.
func (f File) other(ino uint64, btime int64) bool {
	return f.Ino != 0 && ino != f.Ino || f.Btime != 0 && btime != 0 && btime != f.Btime
}

// At reports whether the file lies at that name of the directory, or of one
// merged under it.
func (f File) At(dir *Dir, name string) bool {
	if f.Dir == nil || f.Name != name {
		return false
	}
	at := false
	dir.eachFound(func(d *Dir) {
		at = at || f.Dir.same(d)
	})
	return at
}

// Same reports whether both name the same place, whatever is there.
func (f File) Same(g File) bool { return f.Name == g.Name && f.Dir.same(g.Dir) }

// with calls fn with a descriptor of the regular file, open for reading.
func (f File) with(fn func(fd int) error) error {
	if f.Kept != nil {
		return f.Kept.with(fn)
	}
	if f.Dir == nil {
		return ErrStale
	}
	h, err := f.Dir.fs.cache.get(fdKey{f.Dir, f.Name, false}, f.Ino, f.open)
	if err != nil {
		return err
	}
	defer f.Dir.fs.cache.put(h)
	return fn(h.n)
}

func (f File) open() (int, uint64, error) {
	n := -1
	err := f.Dir.with(func(dfd int) error {
		var err error
		// O_NONBLOCK: a FIFO that the host put there must not block us.
		n, err = openBeneath(dfd, f.Name, unix.O_RDONLY|unix.O_NONBLOCK)
		return err
	})
	var ino uint64
	if err == nil {
		ino, err = f.opened(n, unix.S_IFREG)
	}
	if err != nil {
		return -1, 0, fmt.Errorf("open lower %q: %w", f.Name, err)
	}
	return n, ino, nil
}

// opened verifies that the descriptor is open on the file, and on one of that
// type, 0 if any will do. It returns the inode number. On an error it closes the
// descriptor.
func (f File) opened(fd int, mode uint32) (uint64, error) {
	var sx unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_TYPE|unix.STATX_INO|unix.STATX_BTIME, &sx)
	if err == nil && (f.other(sx.Ino, nanos(sx.Btime)) || mode != 0 && uint32(sx.Mode)&unix.S_IFMT != mode) {
		err = ErrStale
	}
	if err != nil {
		unix.Close(fd)
		return 0, err
	}
	return sx.Ino, nil
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

// Watch calls fn with a descriptor of the file, for inotify(7).
func (f File) Watch(fn func(fd int) bool) bool {
	ok := false
	err := f.withPath(func(fd int) error { ok = fn(fd); return nil })
	return err == nil && ok
}

// withPath calls fn with an O_PATH descriptor of the file, which is closed
// afterwards.
func (f File) withPath(fn func(fd int) error) error {
	if f.Kept != nil {
		return f.Kept.with(fn)
	}
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
		if _, err := f.opened(n, 0); err != nil {
			return err
		}
		defer unix.Close(n)
		return fn(n)
	})
}
