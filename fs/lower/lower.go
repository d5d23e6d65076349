package lower

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Errors of this package. System calls' errors are wrapped as they are.
var (
	// ErrStale means that the file is no longer the one that was seen before.
	ErrStale = fmt.Errorf("replaced on the host: %w", unix.ESTALE)
	// ErrMounted means that the host has mounted something there, which is not
	// crossed.
	ErrMounted = errors.New("another file system is mounted there")
)

// FS is a set of source directories. Safe for concurrent use.
type FS struct {
	cache   *fdCache
	ahead   readAhead
	roots   []*Dir // by source number - 1
	partial bool   // see partialIDs; immutable
}

// New returns an FS without sources that keeps at most maxFDs descriptors open.
func New(maxFDs int) *FS {
	return &FS{cache: newFDCache(maxFDs), partial: partialIDs()}
}

// Add takes a source directory by descriptor, which it owns from then on, and
// returns its root. Sources are numbered from 1 in the order of the calls. Add
// must not be called at the same time as anything else.
func (f *FS) Add(dirfd int) (*Dir, error) {
	var st unix.Statx_t
	if err := unix.Statx(dirfd, "", unix.AT_EMPTY_PATH, statMask, &st); err != nil {
		return nil, fmt.Errorf("stat source: %w", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil, fmt.Errorf("source: %w", unix.ENOTDIR)
	}
	d := &Dir{fs: f, source: uint32(len(f.roots) + 1), rootFD: dirfd, mnt: st.Mnt_id}
	d.ino.Store(st.Ino)
	d.root, d.slow = d, mayHang(dirfd)
	f.roots = append(f.roots, d)
	return d, nil
}

// local lists the file systems that are not served by another machine or
// process (statfs(2)), so that no system call on them hangs for good.
var local = []int64{
	unix.BTRFS_SUPER_MAGIC, unix.EXT4_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.RAMFS_MAGIC,
	unix.TMPFS_MAGIC, unix.XFS_SUPER_MAGIC, zfsMagic, bcachefsMagic,
}

// Magic numbers of file systems that x/sys/unix does not name.
const (
	zfsMagic      = 0x2fc12fc1
	bcachefsMagic = 0xca451a4e
)

// mayHang reports whether a descriptor's file system may keep a system call
// waiting for somebody else.
func mayHang(fd int) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(fd, &st) != nil || !slices.Contains(local, int64(st.Type))
}

// IsAt reports whether a source's root is the directory at the path of the host. The
// mount may differ: OpenSource copies it.
func (d *Dir) IsAt(path string) (bool, error) {
	var there, here unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, statMask, &there); err != nil {
		return false, err
	}
	if err := unix.Statx(d.rootFD, "", unix.AT_EMPTY_PATH, statMask, &here); err != nil {
		return false, err
	}
	return there.Ino == here.Ino && there.Dev_major == here.Dev_major && there.Dev_minor == here.Dev_minor && there.Btime == here.Btime, nil
}

// Root returns the root directory of a source by number, nil if there is none.
func (f *FS) Root(source uint32) *Dir {
	if source == 0 || int(source) > len(f.roots) {
		return nil
	}
	return f.roots[source-1]
}

// Locate returns the directory that holds path and the last component's name,
// without looking at the disk. For the source itself name is "" and the
// directory is the root.
func (f *FS) Locate(source uint32, path string) (dir *Dir, name string) {
	d := f.Root(source)
	if d == nil || path == "" {
		return d, ""
	}
	for {
		head, rest, more := strings.Cut(path, "/")
		if !more {
			return d, head
		}
		d, path = d.Child(head, 0), rest
	}
}

// DropAll closes the cached descriptors, so that the next uses look again.
func (f *FS) DropAll() { f.cache.dropAll() }

// Close closes all descriptors, those of the sources included, unless one of
// them is in use by a system call that hangs.
func (f *FS) Close() {
	if !f.ahead.close() {
		return
	}
	f.cache.dropAll()
	for _, r := range f.roots {
		unix.Close(r.rootFD)
	}
	f.roots = nil
}
