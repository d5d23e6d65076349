package tree

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
	"github.com/winkfs/winkfs/policy"
)

// maxLink is the largest symbolic link target (PATH_MAX less the final NUL).
const maxLink = unix.PathMax - 1

// Create makes a regular file.
func (t *Tree) Create(r *Request, parent journal.NodeID, name string, mode uint32) (Stat, error) {
	return t.create(r, journal.OpCreate, parent, name, &journal.Node{OwnContent: true, Attr: journal.Attr{Mode: unix.S_IFREG | mode&0o7777}})
}

// Mkdir makes a directory.
func (t *Tree) Mkdir(r *Request, parent journal.NodeID, name string, mode uint32) (Stat, error) {
	return t.create(r, journal.OpMkdir, parent, name, &journal.Node{Attr: journal.Attr{Mode: unix.S_IFDIR | mode&0o7777}})
}

// Symlink makes a symbolic link.
func (t *Tree) Symlink(r *Request, parent journal.NodeID, name, target string) (Stat, error) {
	if len(target) > maxLink {
		return Stat{}, ErrNameTooLong
	}
	up := &journal.Node{Target: target, Attr: journal.Attr{Mode: unix.S_IFLNK | 0o777, Size: uint64(len(target))}}
	return t.create(r, journal.OpSymlink, parent, name, up)
}

// Mknod makes a regular file, a FIFO, a socket or, where the profile allows it,
// a device node.
func (t *Tree) Mknod(r *Request, parent journal.NodeID, name string, mode, rdev uint32) (Stat, error) {
	up := &journal.Node{Attr: journal.Attr{Mode: mode & (unix.S_IFMT | 0o7777)}}
	switch mode & unix.S_IFMT {
	case 0, unix.S_IFREG:
		up.Attr.Mode |= unix.S_IFREG
		up.OwnContent = true
	case unix.S_IFCHR, unix.S_IFBLK:
		up.Attr.Rdev = rdev
	}
	return t.create(r, journal.OpMknod, parent, name, up)
}

func (t *Tree) create(r *Request, op journal.Op, parent journal.NodeID, name string, up *journal.Node) (Stat, error) {
	if p := t.replaying(r); p != nil {
		return p.create(r, parent, name)
	}
	p, err := t.getDir(parent)
	if err != nil {
		return Stat{}, err
	}
	if err := t.checkNew(p, name, up.Attr.Mode); err != nil {
		return Stat{}, err
	}
	var st Stat
	var s slot
	err = t.mutate(r, op, nil, func() ([]*node, error) {
		if s, err = t.look(p, name); err != nil {
			return nil, err
		}
		if s.exists {
			return nil, ErrExist
		}
		return []*node{p}, nil
	}, func(x *tx) error {
		n, err := x.newChild(&s, up)
		x.then = func() { st = t.adopt(n, p, name) }
		return err
	})
	if err != nil {
		return Stat{}, fmt.Errorf("%s %q: %w", op, name, err)
	}
	return st, nil
}

// checkNew asks whether a file of that mode may be made.
func (t *Tree) checkNew(p *node, name string, mode uint32) error {
	typ := mode & unix.S_IFMT
	if err := t.decideName(policy.OpCreate, p, name, 0, mode); err != nil {
		return err
	}
	if typ == unix.S_IFDIR || typ == unix.S_IFLNK {
		return nil
	}
	if err := t.checkDevice(p, name, mode); err != nil {
		return err
	}
	return t.checkMode(p, name, typ, mode)
}

// newChild makes a node of the given state under the slot's name.
func (x *tx) newChild(s *slot, up *journal.Node) (*node, error) {
	if !x.unchanged(s) {
		return nil, errRetry
	}
	d := x.own(s.p)
	if d == nil {
		return nil, errRetry
	}
	if err := mayAdd(d); err != nil {
		return nil, err
	}
	up = up.Clone()
	x.initAttr(up, d)
	n := x.add(up)
	up.Attr.Nlink = 1
	if n.isDir() {
		up.Attr.Nlink = 2
		gainSubdir(d)
	}
	x.touchDir(d)
	x.fill(s, n.id)
	x.rec.Path = join(s.p, s.name)
	return n, nil
}

// initAttr sets the attributes of a new node: owner, mode, times and what a
// set-group-id directory or one with a default ACL hands down (inode_init_owner
// and posix_acl_create in the kernel, which leaves this to FUSE servers).
func (x *tx) initAttr(up, dir *journal.Node) {
	up.Attr.UID, up.Attr.GID = x.r.UID, x.r.GID
	if up.Attr.UID == NoID {
		up.Attr.UID, up.Attr.GID = dir.Attr.UID, dir.Attr.GID
	}
	if dir.Attr.Mode&unix.S_ISGID != 0 {
		up.Attr.GID = dir.Attr.GID
		if up.Attr.Mode&unix.S_IFMT == unix.S_IFDIR {
			up.Attr.Mode |= unix.S_ISGID
		}
	}
	x.inherit(up, dir)
	inheritFlags(up, dir)
	up.Attr.Atime, up.Attr.Mtime, up.Attr.Ctime = x.now, x.now, x.now
	up.Own = true
}

// adopt puts a node that was just made into the table with one reference.
// Preconditions: t.mu is held.
func (t *Tree) adopt(n, parent *node, name string) Stat {
	t.enlist(n)
	n.lookups++
	if parent != nil {
		t.setName(n, parent, name)
		t.lists.insert(parent.id, name, n.id, n.mode)
	} else {
		n.gone = true
	}
	return t.ownStat(n.id, n.gen(), n.up, nil)
}

// Tmpfile makes a regular file without a name, as open(2) with O_TMPFILE does.
func (t *Tree) Tmpfile(r *Request, parent journal.NodeID, mode uint32) (Stat, error) {
	p, err := t.getDir(parent)
	if err != nil {
		return Stat{}, err
	}
	if err := t.checkNew(p, "", unix.S_IFREG|mode); err != nil {
		return Stat{}, err
	}
	up := &journal.Node{OwnContent: true, Attr: journal.Attr{Mode: unix.S_IFREG | mode&0o7777}}
	var st Stat
	err = t.mutate(r, journal.OpTmpfile, nil, touching(p), func(x *tx) error {
		d := x.own(p)
		switch {
		case d == nil:
			return errRetry
		case p.gone:
			return ErrNotPermitted // as ext4 has it; the VFS checks only where a name comes
		}
		if err := mayAdd(d); err != nil {
			return err
		}
		up := up.Clone()
		x.initAttr(up, d)
		n := x.add(up)
		x.rec.Path = path(p)
		x.then = func() { st = t.adopt(n, nil, "") }
		return nil
	})
	if err != nil {
		return Stat{}, fmt.Errorf("make temporary file: %w", err)
	}
	return st, nil
}
