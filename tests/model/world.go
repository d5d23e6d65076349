package model

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Slots is the number of descriptors that a World can hold open.
const Slots = 4

// World is a directory that operations are done in.
type World struct {
	dir   string // absolute, without links
	root  int
	at    int // where the paths of the current operation begin
	slots [Slots]int
	maps  [Slots]mapping
}

// NewWorld opens the directory.
func NewWorld(dir string) (*World, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	w := &World{root: fd, at: fd}
	if w.dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	for i := range w.slots {
		w.slots[i] = -1
	}
	return w, nil
}

// Close closes all descriptors, so that the directory can be unmounted.
func (w *World) Close() {
	w.CloseSlots()
	unix.Close(w.root)
}

// CloseSlots closes the files and maps but not the directory.
func (w *World) CloseSlots() {
	for i := range w.slots {
		w.unmap(i)
		w.keep(i, -1)
	}
}

// Do does the operation and returns what came of it: "ok" with what was read,
// or the name of the error number.
func (w *World) Do(o Op) (outcome string, err error) {
	text, err := w.do(o)
	if err == nil {
		return strings.TrimSpace("ok " + text), nil
	}
	if errno, ok := err.(unix.Errno); ok {
		return unix.ErrnoName(errno), err
	}
	return err.Error(), err
}

func (w *World) do(o Op) (string, error) {
	w.at = w.root
	if o.Cwd {
		w.at = unix.AT_FDCWD
	}
	switch o.Kind {
	case Create, Open, Close, Tmpfile:
		return w.doOpen(o)
	case Write, Read, Ftruncate, Fallocate, CopyRange, Fsync, Fstat, Flock:
		return w.doSlot(o)
	case Setxattr, Removexattr, Listxattr:
		return w.doXattr(o)
	case Append, ReadFile, Stat, List, Readlink:
		return w.doContent(o)
	case Chdir, Getcwd:
		return w.doCwd(o)
	case Mmap, MapRead, MapWrite, Msync, Munmap:
		return w.doMap(o)
	}
	return "", w.doName(o)
}

func (w *World) doOpen(o Op) (string, error) {
	flags := o.Flags | unix.O_CLOEXEC | unix.O_NONBLOCK
	switch o.Kind {
	case Close:
		w.keep(o.Slot, -1)
		return "", nil
	case Create:
		flags |= unix.O_CREAT | unix.O_RDWR
	case Tmpfile:
		flags |= unix.O_TMPFILE | unix.O_RDWR
	}
	fd, err := unix.Openat(w.at, o.Path, flags, o.Mode)
	if err != nil {
		return "", err
	}
	w.keep(o.Slot, fd)
	return "", nil
}

// keep puts a descriptor into a slot in place of the one there.
func (w *World) keep(slot, fd int) {
	if w.slots[slot] >= 0 {
		unix.Close(w.slots[slot])
	}
	w.slots[slot] = fd
}

func (w *World) doSlot(o Op) (string, error) {
	fd := w.slots[o.Slot]
	switch o.Kind {
	case Write:
		n, err := unix.Pwrite(fd, o.Data(), o.Off)
		return fmt.Sprint(n), err
	case Read:
		return readAt(fd, o.Off, o.Len)
	case Ftruncate:
		return "", unix.Ftruncate(fd, o.Len)
	case Fallocate:
		return "", unix.Fallocate(fd, uint32(o.Flags), o.Off, o.Len)
	case Fsync:
		return "", unix.Fsync(fd)
	case Flock:
		return "", unix.Flock(fd, o.Flags|unix.LOCK_NB)
	case CopyRange:
		return w.copyRange(o)
	}
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return statText(&st), err
}

// copyRange copies until all is copied or nothing more comes, since how much
// one call copies is up to the file system.
func (w *World) copyRange(o Op) (string, error) {
	from, to := o.Off, int64(o.Mode)
	var done int64
	for done < o.Len {
		n, err := unix.CopyFileRange(w.slots[o.Slot], &from, w.slots[o.Slot2], &to, int(o.Len-done), 0)
		if err != nil {
			return "", err
		}
		if n == 0 {
			break
		}
		done += int64(n)
	}
	return fmt.Sprint(done), nil
}

func readAt(fd int, off, length int64) (string, error) {
	buf := make([]byte, length)
	n, err := unix.Pread(fd, buf, off)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d %x", n, sha256.Sum256(buf[:n])), nil
}

func (w *World) doContent(o Op) (string, error) {
	switch o.Kind {
	case Append:
		return w.append(o)
	case Stat:
		var st unix.Stat_t
		err := unix.Fstatat(w.at, o.Path, &st, unix.AT_SYMLINK_NOFOLLOW)
		return statText(&st), err
	case List:
		return w.list(o.Path)
	case Readlink:
		buf := make([]byte, 4096)
		n, err := unix.Readlinkat(w.at, o.Path, buf)
		return string(buf[:max(n, 0)]), err
	}
	fd, err := unix.Openat(w.at, o.Path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return readAt(fd, 0, 8<<20)
}

func (w *World) append(o Op) (string, error) {
	fd, err := unix.Openat(w.at, o.Path, unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	n, err := unix.Write(fd, o.Data())
	return fmt.Sprint(n), err
}

func (w *World) list(path string) (string, error) {
	fd, err := unix.Openat(w.at, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var names []string
	buf := make([]byte, 32<<10)
	for {
		n, err := unix.Getdents(fd, buf)
		if err != nil {
			return "", err
		}
		if n == 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
	slices.Sort(names)
	return fmt.Sprintf("%q", names), nil
}

// statText tells what two file systems agree on.
func statText(st *unix.Stat_t) string {
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return fmt.Sprintf("%o", st.Mode)
	}
	return fmt.Sprintf("%o %d %d:%d %d", st.Mode, st.Nlink, st.Uid, st.Gid, st.Size)
}

func (w *World) doName(o Op) error {
	switch o.Kind {
	case Truncate:
		return unix.Truncate(w.proc(o.Path), o.Len)
	case Rename:
		return unix.Renameat2(w.at, o.Path, w.at, o.Path2, uint(o.Flags))
	case Link:
		return unix.Linkat(w.at, o.Path, w.at, o.Path2, 0)
	case LinkSlot:
		return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", w.slots[o.Slot]), w.at, o.Path, unix.AT_SYMLINK_FOLLOW)
	case Unlink:
		return unix.Unlinkat(w.at, o.Path, 0)
	case Mkdir:
		return unix.Mkdirat(w.at, o.Path, o.Mode)
	case Rmdir:
		return unix.Unlinkat(w.at, o.Path, unix.AT_REMOVEDIR)
	case Symlink:
		return unix.Symlinkat(o.Path2, w.at, o.Path)
	case Mkfifo:
		return unix.Mknodat(w.at, o.Path, unix.S_IFIFO|o.Mode, 0)
	case Chmod:
		return unix.Fchmodat(w.at, o.Path, o.Mode, 0)
	case Chown:
		return unix.Fchownat(w.at, o.Path, int(int32(o.Mode)), -1, unix.AT_SYMLINK_NOFOLLOW)
	}
	return w.utimens(o)
}

// utimens sets the time and reads it back.
func (w *World) utimens(o Op) error {
	want := unix.Timespec{Sec: o.Off, Nsec: o.Len}
	err := unix.UtimesNanoAt(w.at, o.Path, []unix.Timespec{want, want}, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(w.at, o.Path, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mtim != want {
		return fmt.Errorf("mtime is %v, set was %v", st.Mtim, want)
	}
	return nil
}

// proc spells a path for calls that have no *at form.
func (w *World) proc(path string) string {
	if w.at == unix.AT_FDCWD {
		return "/proc/self/cwd/" + path
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", w.at, path)
}

func (w *World) doXattr(o Op) (string, error) {
	path := w.proc(o.Path)
	switch o.Kind {
	case Setxattr:
		return "", unix.Lsetxattr(path, o.Path2, o.Data(), o.Flags)
	case Removexattr:
		return "", unix.Lremovexattr(path, o.Path2)
	}
	buf := make([]byte, 64<<10)
	n, err := unix.Llistxattr(path, buf)
	if err != nil {
		return "", err
	}
	names := strings.Split(string(buf[:n]), "\x00")
	names = slices.DeleteFunc(names, func(s string) bool { return !strings.HasPrefix(s, "user.") })
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		k, err := unix.Lgetxattr(path, name, buf)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, " %s=%x", name, buf[:k])
	}
	return b.String(), nil
}
