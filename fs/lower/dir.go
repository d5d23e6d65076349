package lower

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// resolve is how every name is opened: see the package comment.
const resolve = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// Dir is a lower directory. It holds no descriptor of its own, but for a
// source's root. Stat, Watch and the paths are about the directory itself;
// Lookup and ReadDir see those below it in its stack, too.
type Dir struct {
	fs     *FS
	root   *Dir
	at     atomic.Pointer[place] // nil for a root, which stays
	kept   atomic.Pointer[Kept]  // used rather than the name, unless nil
	ino    atomic.Uint64         // 0 = not known; what is opened must have this number
	source uint32
	rootFD int                     // of a root
	mnt    uint64                  // of a root: the mount that it lies in
	under  *Dir                    // of a root: the next one in its stack, nil for the last
	below  atomic.Pointer[beneath] // of any other in a stack: what is merged under it, once that was looked for
	slow   bool                    // of a root: its file system may hang
}

// place is where a directory lies. It is never changed, only replaced.
type place struct {
	parent *Dir
	name   string
}

// Source returns the number of the source that the directory belongs to.
func (d *Dir) Source() uint32 { return d.source }

// Ino returns the directory's inode number, 0 if it was not seen yet.
func (d *Dir) Ino() uint64 { return d.ino.Load() }

// Path returns the path below the source, "" for the source itself.
func (d *Dir) Path() string {
	at := d.at.Load()
	if at == nil {
		return ""
	}
	return at.parent.PathOf(at.name)
}

// PathOf returns the path below the source of a name in the directory.
func (d *Dir) PathOf(name string) string {
	n := len(name)
	var above []string // innermost first
	for at := d.at.Load(); at != nil; at = at.parent.at.Load() {
		above = append(above, at.name)
		n += len(at.name) + 1
	}
	b := make([]byte, 0, n)
	for i := len(above) - 1; i >= 0; i-- {
		b = append(append(b, above[i]...), '/')
	}
	return string(append(b, name...))
}

// Child returns the directory of that name in d, without looking at the disk.
// A non-zero ino is checked when it is opened.
func (d *Dir) Child(name string, ino uint64) *Dir {
	c := &Dir{fs: d.fs, root: d.root, source: d.source}
	c.ino.Store(ino)
	c.at.Store(&place{d, name})
	return c
}

// Keep makes the directory use a descriptor of it rather than its name, which
// the host has taken away; nil ends that. The caller closes it.
func (d *Dir) Keep(k *Kept) { d.kept.Store(k) }

// Become says that the host has put another directory in the place of this one.
func (d *Dir) Become(ino uint64) {
	d.ino.Store(ino)
	d.below.Store(nil)
}

// Move says that the host has moved the directory to where to lies. Everything
// below it is found there from then on. It reports false, and does nothing, if
// that would put the directory below itself: what is known of the directories
// above is then older than the move. Only one Move may be under way.
func (d *Dir) Move(to *Dir) bool {
	at := to.at.Load()
	if at == nil || d.at.Load() == nil {
		return false
	}
	for p := at.parent; p != nil; p = p.parent() {
		if p == d {
			return false
		}
	}
	d.at.Store(at)
	d.Restack(to)
	return true
}

func (d *Dir) parent() *Dir {
	if at := d.at.Load(); at != nil {
		return at.parent
	}
	return nil
}

// name returns the last component of the path.
func (d *Dir) name() string {
	if at := d.at.Load(); at != nil {
		return at.name
	}
	return ""
}

// same reports whether both are the same path below the same source.
func (d *Dir) same(e *Dir) bool {
	for d != e {
		if d == nil || e == nil || d.root != e.root {
			return false
		}
		dat, eat := d.at.Load(), e.at.Load()
		if dat == nil || eat == nil || dat.name != eat.name {
			return false
		}
		d, e = dat.parent, eat.parent
	}
	return true
}

// with calls fn with an open descriptor of the directory.
func (d *Dir) with(fn func(fd int) error) error {
	at := d.at.Load()
	if at == nil {
		return fn(d.rootFD)
	}
	if k := d.kept.Load(); k != nil {
		return k.with(fn)
	}
	f, err := d.fs.cache.get(fdKey{at.parent, at.name, true}, d.Ino(), func() (int, uint64, error) { return d.open(at) })
	if err != nil {
		return err
	}
	defer d.fs.cache.put(f)
	return fn(f.n)
}

func (d *Dir) open(at *place) (int, uint64, error) {
	n := -1
	err := at.parent.with(func(pfd int) error {
		var err error
		n, err = openBeneath(pfd, at.name, unix.O_DIRECTORY|unix.O_RDONLY)
		if errors.Is(err, unix.EACCES) {
			// Without read permission names can still be looked up.
			n, err = openBeneath(pfd, at.name, unix.O_DIRECTORY|unix.O_PATH)
		}
		return err
	})
	var ino uint64
	if err == nil {
		ino, err = File{Ino: d.Ino()}.opened(n, 0)
	}
	if err != nil {
		return -1, 0, fmt.Errorf("open lower directory %q: %w", at.name, err)
	}
	return n, ino, nil
}

// openBeneath opens one name in a directory, not following symbolic links and,
// where that is allowed, not touching its access time.
func openBeneath(dirfd int, name string, flags int) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC | unix.O_NOFOLLOW), Resolve: resolve}
	if flags&unix.O_PATH == 0 {
		how.Flags |= unix.O_NOATIME
	}
	for {
		n, err := unix.Openat2(dirfd, name, &how)
		switch err {
		case unix.EPERM:
			if how.Flags&unix.O_NOATIME != 0 {
				how.Flags &^= unix.O_NOATIME
				continue
			}
		case unix.EINTR, unix.EAGAIN: // EAGAIN: a rename raced with the resolution
			continue
		case unix.EXDEV:
			return -1, ErrMounted
		}
		return n, err
	}
}

// Stat returns the attributes of a name in the directory, or of the directory
// itself for "". It does not follow symbolic links.
func (d *Dir) Stat(name string) (Stat, error) {
	var sx unix.Statx_t
	flags := unix.AT_SYMLINK_NOFOLLOW
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	err := d.with(func(fd int) error { return unix.Statx(fd, name, flags, statMask, &sx) })
	if err == unix.ENOENT { // the usual case of a look-up: not worth a text
		return Stat{}, err
	}
	if err != nil {
		return Stat{}, fmt.Errorf("stat lower %q: %w", name, err)
	}
	return d.convert(&sx), nil
}

// Watch calls fn with a descriptor of the directory, for inotify(7). One that is
// merged from several layers can't be watched: a watch has one directory.
func (d *Dir) Watch(fn func(fd int) bool) bool {
	if d.Merged() {
		return false
	}
	ok := false
	err := d.with(func(fd int) error { ok = fn(fd); return nil })
	return err == nil && ok
}

// Drop closes the cached descriptor of what the name in the directory led to,
// so that the next use looks again.
func (d *Dir) Drop(name string) {
	if k := d.Detach(name, 0); k != nil {
		k.Close()
	}
}

// DropPath closes the cached descriptors of the directory and of those above it,
// so that the next use looks again for all of them.
func (d *Dir) DropPath() {
	for at := d.at.Load(); at != nil; at = at.parent.at.Load() {
		if f := d.fs.cache.take(fdKey{at.parent, at.name, true}, 0); f != nil {
			d.fs.cache.put(f)
		}
	}
}

// Detach takes the cached descriptor of what the name in the directory led to
// out of the cache, in whichever layer of a stack that was: nil if there is none
// or it is open on the inode but. The caller must close it.
func (d *Dir) Detach(name string, but uint64) (found *Kept) {
	d.eachFound(func(l *Dir) {
		for _, isDir := range []bool{false, true} {
			for f := l.fs.cache.take(fdKey{l, name, isDir}, but); f != nil; f = l.fs.cache.take(fdKey{l, name, isDir}, but) {
				if found != nil {
					l.fs.cache.put(f)
					continue
				}
				found = &Kept{fs: l.fs, dir: l, f: f}
			}
		}
	})
	return found
}

// Dirent is one entry of a lower directory.
type Dirent struct {
	Name   string
	Ino    uint64
	Type   uint32 // S_IFMT bits; 0 = the file system does not say
	Source uint32 // the source that has it
}

// ReadDir returns the entries of the directory and of those merged under it,
// "." and ".." left out. Of several entries of one name the uppermost counts.
func (d *Dir) ReadDir() ([]Dirent, error) {
	out, err := d.readOwn()
	if err != nil {
		return nil, err
	}
	return d.readBelow(out)
}

// readOwn returns the entries of the directory itself.
func (d *Dir) readOwn() ([]Dirent, error) {
	var out []Dirent
	err := d.with(func(fd int) error {
		// A descriptor of its own, since the position belongs to the open file.
		n, err := openBeneath(fd, ".", unix.O_DIRECTORY|unix.O_RDONLY)
		if errors.Is(err, unix.EACCES) {
			// "." needs search permission, which listing does not.
			n, err = unix.Open(procPath(fd), unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
		}
		if err != nil {
			return err
		}
		defer unix.Close(n)
		out, err = readAll(n, d.source)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read lower directory %q: %w", d.name(), err)
	}
	return out, nil
}

func readAll(fd int, source uint32) ([]Dirent, error) {
	buf := make([]byte, 64<<10)
	var out []Dirent
	for {
		n, err := unix.Getdents(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return out, err
		}
		out = appendDirents(out, buf[:n], source)
	}
}

// appendDirents decodes linux_dirent64 structures (getdents64(2)):
//
//	0 u64 inode · 8 s64 offset · 16 u16 length · 18 u8 type · 19 name, ended by zero
//
// A structure that cannot be ends the list.
func appendDirents(out []Dirent, buf []byte, source uint32) []Dirent {
	const nameOff = 19
	for len(buf) > nameOff {
		n := int(binary.NativeEndian.Uint16(buf[16:]))
		if n <= nameOff || n > len(buf) {
			return out
		}
		name, _, _ := bytes.Cut(buf[nameOff:n], []byte{0})
		if s := string(name); s != "." && s != ".." {
			out = append(out, Dirent{Name: s, Ino: binary.NativeEndian.Uint64(buf), Type: uint32(buf[18]) << 12, Source: source})
		}
		buf = buf[n:]
	}
	return out
}
