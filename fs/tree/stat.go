package tree

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/lower"
	"github.com/winkfs/winkfs/journal"
)

// blksize is the st_blksize of files that the lower does not describe.
const blksize = 4096

// needsLower reports whether the attributes of a node need the lower's.
func needsLower(up *journal.Node, mode uint32) bool {
	if up == nil || !up.Own {
		return true
	}
	return mode == unix.S_IFREG && !up.OwnContent
}

// statFound returns the attributes of what a look-up found.
func (t *Tree) statFound(f *found) (Stat, error) {
	if needsLower(f.up, f.mode) && f.st == nil {
		st, err := f.lowerStat()
		if err != nil {
			return Stat{}, err
		}
		f.st = &st
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.makeStat(f), nil
}

// lowerStat reads the lower's attributes of what was found.
func (f *found) lowerStat() (lower.Stat, error) {
	st, err := f.readLower()
	if f.isOrphan(err) {
		return orphan(f.up), nil
	}
	return st, err
}

func (f *found) readLower() (lower.Stat, error) {
	if f.low.Dir == nil {
		return lower.Stat{}, ErrNotExist
	}
	st, err := f.low.Stat()
	if isGone(err) || err == nil && st.Mode&unix.S_IFMT != f.mode {
		return st, fmt.Errorf("stat %q: %w", f.low.Name, ErrNotExist)
	}
	if err == nil {
		f.countLinks(&st)
	}
	return st, err
}

// makeStat puts upper and lower attributes together. With the lower gone, a
// node that has its own attributes shows what it had at copy-up.
// Preconditions: the layers are locked; f.st is set if needsLower.
func (l *layers) makeStat(f *found) Stat {
	gen := generation(f.btime)
	if f.up == nil || !f.up.Own {
		return lowerStat(f.id, gen, f.st)
	}
	return l.ownStat(f.id, gen, f.up, f.st)
}

func (l *layers) ownStat(id journal.NodeID, gen uint32, up *journal.Node, st *lower.Stat) Stat {
	s := Stat{ID: id, Gen: uint64(gen), Attr: up.Attr, Blksize: blksize}
	switch {
	case up.Attr.Mode&unix.S_IFMT == unix.S_IFREG && up.OwnContent:
		if c := l.state.Contents[id]; c != nil {
			s.Blocks = (c.Bytes() + 511) / 512
		}
	case st != nil && up.Attr.Mode&unix.S_IFMT == unix.S_IFREG:
		s.Attr.Size, s.Blocks = st.Size, st.Blocks
	case up.Attr.Mode&unix.S_IFMT == unix.S_IFDIR:
		s.Attr.Size, s.Blocks = blksize, blksize/512
	}
	return s
}

func lowerStat(id journal.NodeID, gen uint32, st *lower.Stat) Stat {
	return Stat{ID: id, Gen: uint64(gen), Attr: lowerAttr(st), Blocks: st.Blocks, Blksize: st.Blksize}
}

func lowerAttr(st *lower.Stat) journal.Attr {
	return journal.Attr{
		Mode: st.Mode, UID: st.UID, GID: st.GID, Nlink: st.Nlink, Rdev: st.Rdev, Size: st.Size,
		Atime: journal.Timespec(st.Atime), Mtime: journal.Timespec(st.Mtime),
		Ctime: journal.Timespec(st.Ctime), Btime: journal.Timespec(st.Btime),
	}
}

// orphan describes a directory that is only held in place and whose lower the
// host has taken away: what the workspace changed below it still shows, under
// attributes that nobody has set.
func orphan(up *journal.Node) lower.Stat {
	t := int64(up.Attr.Btime)
	return lower.Stat{
		Ino: up.Origin.Ino, Mode: unix.S_IFDIR | 0o755, UID: NoID, GID: NoID, Nlink: 2,
		Size: blksize, Blocks: blksize / 512, Blksize: blksize, Atime: t, Mtime: t, Ctime: t, Btime: t,
	}
}

// isOrphan reports whether reading the lower of f failed because the host has
// taken it away from under a directory with changes below it.
func (f *found) isOrphan(err error) bool {
	return f.up != nil && f.mode == unix.S_IFDIR && errors.Is(err, ErrNotExist)
}

// stat returns a node's attributes.
func (t *Tree) stat(n *node) (Stat, error) {
	t.mu.RLock()
	f := n.found()
	gone, linked := n.gone, n.linked
	if !needsLower(f.up, f.mode) {
		defer t.mu.RUnlock()
		return t.ownStat(n.id, n.gen(), n.up, nil), nil
	}
	t.mu.RUnlock()
	st, err := f.lowerStat()
	if linked && errors.Is(err, ErrNotExist) && t.otherName(n) {
		return t.stat(n)
	}
	if err != nil && (f.up == nil || !f.up.Own) {
		return Stat{}, err
	}
	if err == nil {
		f.st = &st
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	f.up = n.up
	s := t.makeStat(&f)
	s.Gen, s.Changed = uint64(n.gen()), t.compare(n, f.st)
	if gone && !f.upOwn() {
		s.Attr.Nlink = 0
	}
	return s, nil
}

func (f *found) upOwn() bool { return f.up != nil && f.up.Own }

// Getattr returns a node's attributes.
func (t *Tree) Getattr(r *Request, id journal.NodeID) (Stat, error) {
	n, err := t.get(id)
	if err != nil {
		if p := t.replaying(r); p != nil {
			if st, ok := p.stat(id); ok {
				return st, nil
			}
		}
	}
	if err != nil {
		return Stat{}, err
	}
	return t.stat(n)
}

// Readlink returns the target of a symbolic link.
func (t *Tree) Readlink(r *Request, id journal.NodeID) (string, error) {
	n, err := t.get(id)
	if err != nil {
		return "", err
	}
	if n.mode != unix.S_IFLNK {
		return "", ErrInvalid
	}
	t.mu.RLock()
	f := n.found()
	t.mu.RUnlock()
	return f.readlink()
}

func (f *found) readlink() (string, error) {
	if f.upOwn() {
		return f.up.Target, nil
	}
	return f.low.Readlink()
}

// Statfs describes the file system that the workspace's changes go to.
func (t *Tree) Statfs(r *Request, id journal.NodeID) (Statfs, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(t.stateDir, &st); err != nil {
		return Statfs{}, fmt.Errorf("statfs: %w", err)
	}
	return Statfs{
		Blocks: st.Blocks, Bfree: st.Bfree, Bavail: st.Bavail, Files: st.Files, Ffree: st.Ffree,
		Bsize: uint32(st.Bsize), Frsize: uint32(st.Frsize), Namelen: maxName,
	}, nil
}
