package hydrate

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Walk looks at the directories below root and at what is in them, in the order
// of their paths, until it has seen max entries, and reads no file. On a mounted workspace this
// fills the kernel's caches of names and attributes by whole listings, so that a program
// which asks for one name after the other, as git status does in the order of
// paths, finds them. It
// does not follow symbolic links nor leave the file system, and passes over what
// it can't read. It returns how many entries it saw.
//
// Where the process may, it walks a copy of the mount, so that umount(8) does not
// find the mount busy, and ends when the directory is unmounted.
//
// It must not run in the process that serves the mount, which it waits for.
func Walk(root string, max int) (int, error) {
	w := walk{path: root, left: max, buf: make([]byte, 64<<10)}
	if err := w.open(); err != nil {
		return 0, fmt.Errorf("walk %s: %w", root, err)
	}
	defer w.close()
	var st unix.Stat_t
	if err := unix.Fstat(w.root, &st); err != nil {
		return 0, fmt.Errorf("walk %s: %w", root, err)
	}
	w.dev = st.Dev
	for stack := []string{"."}; len(stack) > 0 && w.left > 0 && !w.unmounted(); {
		top := len(stack) - 1
		dirs := w.dir(stack[top])
		slices.SortFunc(dirs, func(a, b string) int { return strings.Compare(b, a) })
		stack = append(stack[:top], dirs...)
	}
	return max - w.left, nil
}

type walk struct {
	path  string
	root  int
	table int // the mount table, -1 unless root is in a copy of the mount
	dev   uint64
	left  int // entries that may still be looked at
	buf   []byte
}

func (w *walk) close() {
	unix.Close(w.root)
	if w.table >= 0 {
		unix.Close(w.table)
	}
}

// open opens the directory in a copy of its mount (open_tree(2)), or, if the
// process may not make one, in the mount.
func (w *walk) open() (err error) {
	w.table, err = unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	const flags = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_SYMLINK_NOFOLLOW
	if w.root, err = unix.OpenTree(unix.AT_FDCWD, w.path, flags); err == nil {
		return nil
	}
	unix.Close(w.table)
	w.table = -1
	w.root, err = unix.Open(w.path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	return err
}

// unmounted reports whether the directory is not what it was when the walk
// began. It looks only when the mount table has changed (proc_pid_mounts(5)).
func (w *walk) unmounted() bool {
	if w.table < 0 {
		return false
	}
	p := []unix.PollFd{{Fd: int32(w.table), Events: unix.POLLPRI}}
	if n, err := unix.Poll(p, 0); err != nil || n == 0 {
		return false
	}
	var st unix.Stat_t
	return unix.Stat(w.path, &st) != nil || st.Dev != w.dev
}

// dir looks at one directory and returns the directories in it.
func (w *walk) dir(path string) (dirs []string) {
	fd, err := unix.Openat(w.root, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	for w.left > 0 {
		n, err := unix.Getdents(fd, w.buf)
		if err != nil || n <= 0 {
			break
		}
		for _, name := range names(w.buf[:n]) {
			if w.left--; w.left < 0 {
				break
			}
			if w.isDir(fd, name) && len(path)+len(name) < unix.PathMax-2 {
				dirs = append(dirs, path+"/"+name)
			}
		}
	}
	return dirs
}

// isDir looks a name up. It does so for every name: after a listing with
// attributes that costs no message, and tells the kernel to list the rest of the
// directory with attributes, too.
func (w *walk) isDir(fd int, name string) bool {
	var st unix.Stat_t
	err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && st.Dev == w.dev
}

// names returns the names in a buffer of getdents64(2), but "." and "..".
func names(buf []byte) (out []string) {
	const nameOff = int(unsafe.Offsetof(unix.Dirent{}.Name))
	for len(buf) >= nameOff {
		size := int((*unix.Dirent)(unsafe.Pointer(&buf[0])).Reclen)
		name, _, _ := strings.Cut(string(buf[nameOff:size]), "\x00")
		if name != "." && name != ".." {
			out = append(out, name)
		}
		buf = buf[size:]
	}
	return out
}
