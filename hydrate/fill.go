package hydrate

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Fill does in the directory to what an upper directory of overlayfs says, so
// that to shows what an overlay mount of the two would: its files replace those
// of their names, its directories are merged unless they are opaque, and its
// whiteouts remove. Names in the first directory that skip reports are passed
// over. It never follows symbolic links and leaves from as it is, access times
// included where the host allows. After an error, part of it is done.
//
// It must not run in the process that serves to, which it waits for.
func Fill(to, from string, skip func(name string) bool) error {
	src, err := os.OpenFile(from, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("take over upper directory: %w", err)
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("take over upper directory: %w", err)
	}
	defer dst.Close()
	f := filler{links: map[fileID]string{}, root: int(dst.Fd())}
	if err := f.entries(src, int(dst.Fd()), "", skip); err != nil {
		return fmt.Errorf("take over upper directory: %w", err)
	}
	return nil
}

// ErrOverlayFeature says that an upper directory uses a feature of overlayfs by
// which its files refer to the lower: redirects and metacopies.
var ErrOverlayFeature = errors.New("a redirect or a metacopy of overlayfs, which only overlayfs can follow")

type fileID struct{ dev, ino uint64 }

type filler struct {
	root  int
	links map[fileID]string // where the first name of each file with several is, below root
}

// entries takes over what is in a directory.
func (f *filler) entries(src *os.File, dst int, path string, skip func(name string) bool) error {
	list, err := src.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range list {
		if skip != nil && skip(name) {
			continue
		}
		if err := f.entry(int(src.Fd()), dst, name, filepath.Join(path, name)); err != nil {
			return fmt.Errorf("%q: %w", filepath.Join(path, name), err)
		}
	}
	return nil
}

// entry takes over one name.
func (f *filler) entry(src, dst int, name, path string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(src, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	marks, err := overlayMarks(src, name)
	if err != nil {
		return err
	}
	kind := st.Mode & unix.S_IFMT
	switch {
	case kind == unix.S_IFCHR && st.Rdev == 0 || marks["whiteout"] != "":
		return remove(dst, name)
	case kind == unix.S_IFDIR:
		return f.directory(src, dst, name, path, &st, marks["opaque"] == "y")
	}
	if err := remove(dst, name); err != nil {
		return err
	}
	id := fileID{st.Dev, st.Ino}
	if first, ok := f.links[id]; ok {
		return unix.Linkat(f.root, first, dst, name, 0)
	}
	if st.Nlink > 1 {
		f.links[id] = path
	}
	if err := f.file(src, dst, name, &st); err != nil {
		return err
	}
	return attributes(src, dst, name, &st)
}

// file makes anything but a directory.
func (f *filler) file(src, dst int, name string, st *unix.Stat_t) error {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return contents(src, dst, name, st.Size)
	case unix.S_IFLNK:
		target, err := os.Readlink(at(src, name))
		if err != nil {
			return err
		}
		return unix.Symlinkat(target, dst, name)
	}
	return unix.Mknodat(dst, name, st.Mode&unix.S_IFMT|0o600, int(st.Rdev))
}

// directory makes a directory or merges with the one that is there. Its times
// are set last, when nothing in it changes any more.
func (f *filler) directory(src, dst int, name, path string, st *unix.Stat_t, opaque bool) error {
	var there unix.Stat_t
	err := unix.Fstatat(dst, name, &there, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && (opaque || there.Mode&unix.S_IFMT != unix.S_IFDIR) {
		if err := remove(dst, name); err != nil {
			return err
		}
		err = unix.ENOENT
	}
	if err == unix.ENOENT {
		err = unix.Mkdirat(dst, name, 0o700)
	}
	if err != nil {
		return err
	}
	from, err := openAt(src, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := openAt(dst, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := f.entries(from, int(to.Fd()), path, nil); err != nil {
		return err
	}
	return attributes(src, dst, name, st)
}

// contents copies the data of a regular file and leaves its holes.
func contents(src, dst int, name string, size int64) error {
	from, err := openAt(src, name, unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := openAt(dst, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return err
	}
	defer to.Close()
	for off := int64(0); off < size; {
		begin, err := from.Seek(off, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break
		}
		if err != nil {
			return err
		}
		end, err := from.Seek(begin, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.NewOffsetWriter(to, begin), io.NewSectionReader(from, begin, end-begin)); err != nil {
			return err
		}
		off = end
	}
	return to.Truncate(size)
}

// attributes gives a file the owner, mode, extended attributes and times of
// another.
func attributes(src, dst int, name string, st *unix.Stat_t) error {
	if err := unix.Fchownat(dst, name, int(st.Uid), int(st.Gid), unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		if err := unix.Fchmodat(dst, name, st.Mode&0o7777, 0); err != nil {
			return err
		}
	}
	names, err := xattrNames(src, name)
	if err != nil {
		return err
	}
	for _, x := range names {
		if _, ours := overlayMark(x); ours {
			continue
		}
		val, err := xattr(src, name, x)
		if err == nil {
			err = unix.Lsetxattr(at(dst, name), x, val, 0)
		}
		if err != nil {
			return fmt.Errorf("attribute %q: %w", x, err)
		}
	}
	times := []unix.Timespec{st.Atim, st.Mtim}
	return unix.UtimesNanoAt(dst, name, times, unix.AT_SYMLINK_NOFOLLOW)
}

// remove removes a name and all below it, if it is there.
func remove(dir int, name string) error {
	err := unix.Unlinkat(dir, name, 0)
	if err == unix.ENOENT {
		return nil
	}
	if err != unix.EISDIR {
		return err
	}
	d, err := openAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer d.Close()
	list, err := d.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, below := range list {
		if err := remove(int(d.Fd()), below); err != nil {
			return err
		}
	}
	return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
}

// overlayMark returns overlayfs's name of an attribute of its own.
func overlayMark(xattr string) (mark string, ok bool) {
	for _, space := range []string{"trusted.overlay.", "user.overlay."} {
		if mark, ok := strings.CutPrefix(xattr, space); ok {
			return mark, true
		}
	}
	return "", false
}

// overlayMarks returns what overlayfs noted at a file.
func overlayMarks(dir int, name string) (map[string]string, error) {
	names, err := xattrNames(dir, name)
	if err != nil {
		return nil, err
	}
	marks := map[string]string{}
	for _, x := range names {
		mark, ok := overlayMark(x)
		switch {
		case !ok:
			continue
		case mark == "redirect" || mark == "metacopy":
			return nil, ErrOverlayFeature
		case mark == "whiteout":
			marks[mark] = "y"
			continue
		}
		val, err := xattr(dir, name, x)
		if err != nil {
			return nil, err
		}
		marks[mark] = string(val)
	}
	return marks, nil
}

// at is a path to a name in an open directory, for calls that take only paths.
func at(dir int, name string) string { return fmt.Sprintf("/proc/self/fd/%d/%s", dir, name) }

// openAt opens a name, without moving its access time where that is allowed.
func openAt(dir int, name string, flags int) (*os.File, error) {
	flags |= unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	fd, err := unix.Openat(dir, name, flags|unix.O_NOATIME, 0o600)
	if err == unix.EPERM {
		fd, err = unix.Openat(dir, name, flags, 0o600)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// xattrNames lists a file's extended attributes; a file system without them has
// none.
func xattrNames(dir int, name string) ([]string, error) {
	buf, err := grow(func(buf []byte) (int, error) { return unix.Llistxattr(at(dir, name), buf) })
	if err == unix.EOPNOTSUPP || len(buf) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(buf), "\x00"), "\x00"), nil
}

func xattr(dir int, name, x string) ([]byte, error) {
	return grow(func(buf []byte) (int, error) { return unix.Lgetxattr(at(dir, name), x, buf) })
}

// grow calls fn with a larger buffer until the answer fits.
func grow(fn func(buf []byte) (int, error)) ([]byte, error) {
	for size := 1024; ; size *= 4 {
		buf := make([]byte, size)
		n, err := fn(buf)
		if err == unix.ERANGE && size < 1<<20 {
			continue
		}
		return buf[:max(n, 0)], err
	}
}
