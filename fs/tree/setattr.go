package tree

import (
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
	"github.com/winkfs/winkfs/policy"
)

// Setattr changes attributes, all of those asked for or none.
func (t *Tree) Setattr(r *Request, id journal.NodeID, a SetAttr) (Stat, error) {
	n, err := t.get(id)
	if err != nil {
		return Stat{}, err
	}
	if t.replaying(r) != nil {
		return t.stat(n)
	}
	if a.Mask&SetSize != 0 {
		if err := checkSize(n, a.Size); err != nil {
			return Stat{}, err
		}
	}
	if err := t.decideNode(policy.OpSetattr, n, a.Size); err != nil {
		return Stat{}, err
	}
	if a.Mask&SetMode != 0 && a.Mode&setID != 0 {
		st, err := t.stat(n)
		if err != nil {
			return Stat{}, err
		}
		if err := t.checkMode(n, "", st.Attr.Mode, a.Mode); err != nil {
			return Stat{}, err
		}
	}
	var c content
	err = t.mutate(r, setattrOp(a.Mask), nil, func() ([]*node, error) {
		if a.Mask&SetSize != 0 {
			c, err = t.prepareContent(n, a.Size)
		}
		return []*node{n}, err
	}, func(x *tx) error {
		up := x.own(n)
		if up == nil {
			return errRetry
		}
		if err := maySet(up, &a); err != nil {
			return err
		}
		x.rec.Path = path(n)
		if a.Mask&SetSize != 0 {
			if err := x.truncate(n, up, a.Size, &c); err != nil {
				return err
			}
		}
		x.setAttr(up, &a)
		return nil
	})
	if err != nil {
		return Stat{}, fmt.Errorf("set attributes: %w", err)
	}
	return t.stat(n)
}

// checkSize refuses sizes that no file can have.
func checkSize(n *node, size uint64) error {
	switch {
	case n.isDir():
		return ErrIsDir
	case !n.isReg():
		return ErrInvalid
	case size > math.MaxInt64:
		return ErrTooLarge
	}
	return nil
}

// setattrOp names the operation for the journal.
func setattrOp(m SetMask) journal.Op {
	const times = SetAtime | SetMtime | SetAtimeNow | SetMtimeNow | SetCtime
	switch {
	case m&SetSize != 0:
		return journal.OpTruncate
	case m == 0:
		return journal.OpChown
	case m&^(SetMode|SetCtime) == 0:
		return journal.OpChmod
	case m&^(SetUID|SetGID|SetMode|SetCtime) == 0:
		return journal.OpChown
	case m&^times == 0:
		return journal.OpUtimens
	}
	return journal.OpSetattr
}

// setAttr sets all but the size.
func (x *tx) setAttr(up *journal.Node, a *SetAttr) {
	at, typ := &up.Attr, up.Attr.Mode&unix.S_IFMT
	if a.Mask&SetMode != 0 {
		at.Mode = typ | a.Mode&0o7777
		chmodACL(up)
	}
	if a.Mask&SetUID != 0 {
		at.UID = a.UID
	}
	if a.Mask&SetGID != 0 {
		at.GID = a.GID
	}
	if x.r.KillPriv {
		x.killPriv(up)
	}
	x.setTimes(at, a)
	at.Ctime = x.now
}

func (x *tx) setTimes(at *journal.Attr, a *SetAttr) {
	// "Now" for a file's times is the wall clock, not the journal's clock,
	// which may run ahead of it by some nanoseconds.
	now := journal.Timespec(time.Now().UnixNano())
	switch {
	case a.Mask&SetAtimeNow != 0:
		at.Atime = now
	case a.Mask&SetAtime != 0:
		at.Atime = a.Atime
	}
	switch {
	case a.Mask&SetMtimeNow != 0:
		at.Mtime = now
	case a.Mask&SetMtime != 0:
		at.Mtime = a.Mtime
	}
}

// killPriv clears what must not survive a change of content or owner
// (file_remove_privs in the kernel): set-user-id, set-group-id unless the group
// may not execute the file and the caller could set the bit (setattr_should_drop_sgid), and file
// capabilities. A directory has none of these.
func (x *tx) killPriv(up *journal.Node) {
	if typ := up.Attr.Mode & unix.S_IFMT; typ == unix.S_IFDIR || typ == unix.S_IFLNK {
		return
	}
	up.Attr.Mode &^= unix.S_ISUID | x.droppedSGID(&up.Attr)
	if _, ok := up.Xattrs[xattrCaps]; ok {
		delete(setXattrs(up), xattrCaps)
	}
}

// droppedSGID returns the set-group-id bit if a change clears it.
func (x *tx) droppedSGID(a *journal.Attr) uint32 {
	switch {
	case a.Mode&unix.S_ISGID == 0:
		return 0
	case a.Mode&unix.S_IXGRP != 0:
		return unix.S_ISGID
	case x.t.actors.InGroup(x.r.TID, a.GID) || x.t.actors.Capable(x.r.TID, unix.CAP_FSETID):
		return 0
	}
	return unix.S_ISGID
}

// killPrivUnlessCapable clears set-id bits as killPriv does unless the caller
// may keep them (CAP_FSETID).
func (x *tx) killPrivUnlessCapable(up *journal.Node) {
	_, caps := up.Xattrs[xattrCaps]
	if !caps && (up.Attr.Mode&setID == 0 || x.t.actors.Capable(x.r.TID, unix.CAP_FSETID)) {
		return
	}
	x.killPriv(up)
}
