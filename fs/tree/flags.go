package tree

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
	"github.com/winkfs/winkfs/policy"
)

// Inode flags (ioctl_iflags(2)) that are kept. Those that have an effect are
// flagImmutable and flagAppend; the others ask for nothing that the workspace
// does not do anyway, or something that it has not got.
const (
	flagSync      = 0x8
	flagImmutable = 0x10
	flagAppend    = 0x20
	flagNoDump    = 0x40
	flagNoAtime   = 0x80
	flagDirSync   = 0x10000
	flagTopDir    = 0x20000

	flagsFixed     = flagImmutable | flagAppend
	flagsDir       = flagDirSync | flagTopDir
	flagsKept      = flagSync | flagsFixed | flagNoDump | flagNoAtime | flagsDir
	flagsInherited = flagSync | flagNoDump | flagNoAtime | flagDirSync
)

// Getflags returns a node's inode flags. Those that the lower has mean nothing
// here.
func (t *Tree) Getflags(r *Request, id journal.NodeID) (uint32, error) {
	n, err := t.get(id)
	if err != nil {
		return 0, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if n.up == nil {
		return 0, nil
	}
	return n.up.Flags, nil
}

// Setflags sets a node's inode flags. Making files immutable or append-only
// takes the profile that allows it; the kernel has checked the capability.
func (t *Tree) Setflags(r *Request, id journal.NodeID, flags uint32) error {
	n, err := t.get(id)
	if err != nil {
		return err
	}
	if flags&^uint32(flagsKept) != 0 || !n.isDir() && flags&flagsDir != 0 {
		return ErrNotSupported
	}
	if flags&flagsFixed != 0 && t.profile != ProfileFull {
		return t.forbid(n, "", "files can't be made immutable or append-only in a workspace; rules and read-only sources protect files")
	}
	if err := t.decideNode(policy.OpSetattr, n, 0); err != nil {
		return err
	}
	err = t.mutate(r, journal.OpSetattr, nil, touching(n), func(x *tx) error {
		up := x.own(n)
		if up == nil {
			return errRetry
		}
		x.rec.Path = path(n)
		up.Flags = flags
		up.Attr.Ctime = x.now
		return nil
	})
	if err != nil {
		return fmt.Errorf("set inode flags: %w", err)
	}
	return nil
}

// The kernel does not know the flags of a FUSE file, so what it checks for other
// file systems is checked here: inode_permission, may_delete, notify_change and
// the checks of each kind of write.

// mayChange checks a change of attributes or, not at its end, of content.
func mayChange(up *journal.Node) error {
	if up.Flags&flagsFixed != 0 {
		return ErrNotPermitted
	}
	return nil
}

// mayWrite checks a write at an offset: to an append-only file at its end alone.
func mayWrite(up *journal.Node, off uint64) error {
	if up.Flags&flagImmutable != 0 || up.Flags&flagAppend != 0 && off < up.Attr.Size {
		return ErrNotPermitted
	}
	return nil
}

// maySet checks a Setattr. Setting times to now, which whoever may write can, is
// allowed on append-only files.
func maySet(up *journal.Node, a *SetAttr) error {
	const touch = SetAtimeNow | SetMtimeNow | SetCtime
	if a.Mask&^touch == 0 && up.Flags&flagImmutable == 0 {
		return nil
	}
	return mayChange(up)
}

// mayAdd checks whether a directory may get a further name.
func mayAdd(dir *journal.Node) error {
	if dir.Flags&flagImmutable != 0 {
		return ErrNotPermitted
	}
	return nil
}

// mayRemove checks whether a directory may lose the name of a file.
func mayRemove(dir, up *journal.Node) error {
	if (dir.Flags|up.Flags)&flagsFixed != 0 {
		return ErrNotPermitted
	}
	return nil
}

// inheritFlags gives a new file what its directory hands down.
func inheritFlags(up, dir *journal.Node) {
	up.Flags = dir.Flags & flagsInherited
	if up.Attr.Mode&unix.S_IFMT != unix.S_IFDIR {
		up.Flags &^= flagsDir
	}
}
