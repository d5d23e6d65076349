package apply

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// resolve is how every name is opened: see the package comment.
const resolve = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// host is the source directories as the host has them.
type host struct {
	roots map[uint32]int
}

// place is a name in an open directory. The zero name is the directory itself.
type place struct {
	dir  int // O_PATH
	name string
}

func (p place) close() { unix.Close(p.dir) }

// openBelow opens one name in a directory, following nothing and crossing no
// mount.
func openBelow(dir int, name string, flags uint64) (int, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: resolve}
	for {
		fd, err := unix.Openat2(dir, name, &how)
		if err != unix.EINTR && err != unix.EAGAIN {
			return fd, err
		}
	}
}

// dir opens the directory at path, one component at a time.
func (h *host) dir(source uint32, path string) (int, error) {
	root, ok := h.roots[source]
	if !ok {
		return -1, fmt.Errorf("open source %d: no such source", source)
	}
	fd, err := openBelow(root, ".", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return -1, fmt.Errorf("open source %d: %w", source, err)
	}
	if path == "" {
		return fd, nil
	}
	for name := range strings.SplitSeq(path, "/") {
		next, err := openBelow(fd, name, unix.O_PATH|unix.O_DIRECTORY)
		if err == unix.ENOTDIR && isLink(fd, name) {
			err = unix.ELOOP // as openat2 says of a link that is not the last component
		}
		unix.Close(fd)
		if err != nil {
			return -1, fmt.Errorf("open directory %q: %w", path, err)
		}
		fd = next
	}
	return fd, nil
}

func isLink(dir int, name string) bool {
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
}

// at opens the directory that path lies in.
func (h *host) at(source uint32, path string) (place, error) {
	parent, name := splitPath(path)
	fd, err := h.dir(source, parent)
	return place{fd, name}, err
}

// splitPath returns the directory and the last component.
func splitPath(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}

// look returns what is at path, nil if there is nothing.
func (h *host) look(source uint32, path string) (*fact, error) {
	p, err := h.at(source, path)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer p.close()
	return p.look()
}

func (p place) look() (*fact, error) {
	fd, err := openBelow(p.dir, p.name, unix.O_PATH)
	if err == unix.ENOENT {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at %q: %w", p.name, err)
	}
	defer unix.Close(fd)
	return factOf(fd)
}

// list returns the names in the directory at path.
func (h *host) list(source uint32, path string) ([]string, error) {
	fd, err := h.dir(source, path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return listDir(fd)
}

// listDir returns the names in a directory that is open as O_PATH.
func listDir(dir int) ([]string, error) {
	fd, err := openBelow(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, fmt.Errorf("list directory: %w", err)
	}
	defer unix.Close(fd)
	var names []string
	buf := make([]byte, 32<<10)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil {
			return nil, fmt.Errorf("list directory: %w", err)
		}
		if n <= 0 {
			return names, nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}
