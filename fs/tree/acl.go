package tree

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
)

// Extended attributes that hold POSIX ACLs (acl(5)). The kernel evaluates them,
// checks what is set and asks for them by these names; what follows from them
// for modes and new files is left to the file system (FUSE_POSIX_ACL).
const (
	aclAccess  = "system.posix_acl_access"
	aclDefault = "system.posix_acl_default"
)

func isACL(name string) bool { return name == aclAccess || name == aclDefault }

// Tags of ACL entries (include/uapi/linux/posix_acl.h).
const (
	aclUserObj  = 0x01
	aclUser     = 0x02
	aclGroupObj = 0x04
	aclGroup    = 0x08
	aclMask     = 0x10
	aclOther    = 0x20
)

const (
	aclVersion   = 2 // include/uapi/linux/posix_acl_xattr.h
	aclHeadSize  = 4
	aclEntrySize = 8
)

// acl is a list of entries in the order of the attribute's value.
type acl []aclEntry

type aclEntry struct {
	tag, perm uint16
	id        uint32
}

// parseACL reads an attribute's value.
func parseACL(value string) (acl, error) {
	b := []byte(value)
	if len(b) < aclHeadSize || (len(b)-aclHeadSize)%aclEntrySize != 0 {
		return nil, ErrInvalid
	}
	if binary.LittleEndian.Uint32(b) != aclVersion {
		return nil, ErrNotSupported
	}
	var a acl
	for b = b[aclHeadSize:]; len(b) > 0; b = b[aclEntrySize:] {
		e := aclEntry{binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint16(b[2:]), binary.LittleEndian.Uint32(b[4:])}
		if e.perm > 7 {
			return nil, ErrInvalid
		}
		a = append(a, e)
	}
	return a, nil
}

// String returns the attribute's value.
func (a acl) String() string {
	b := binary.LittleEndian.AppendUint32(nil, aclVersion)
	for _, e := range a {
		b = binary.LittleEndian.AppendUint16(b, e.tag)
		b = binary.LittleEndian.AppendUint16(b, e.perm)
		b = binary.LittleEndian.AppendUint32(b, e.id)
	}
	return string(b)
}

// find returns the only entry of the tag, nil if there is none.
func (a acl) find(tag uint16) *aclEntry {
	for i := range a {
		if a[i].tag == tag {
			return &a[i]
		}
	}
	return nil
}

// class returns the entry that the group bits of the mode stand for: the mask,
// else the owning group.
func (a acl) class() *aclEntry {
	if m := a.find(aclMask); m != nil {
		return m
	}
	return a.find(aclGroupObj)
}

// complete reports whether the entries that every ACL has are there.
func (a acl) complete() bool {
	return a.find(aclUserObj) != nil && a.find(aclGroupObj) != nil && a.find(aclOther) != nil
}

// minimal reports whether the ACL says no more than a mode can
// (posix_acl_equiv_mode).
func (a acl) minimal() bool { return len(a) == 3 && a.complete() }

// mode returns the permission bits that stand for the ACL.
func (a acl) mode() uint32 {
	return uint32(a.find(aclUserObj).perm)<<6 | uint32(a.class().perm)<<3 | uint32(a.find(aclOther).perm)
}

// chmod makes the ACL agree with permission bits (posix_acl_chmod).
func (a acl) chmod(mode uint32) {
	a.find(aclUserObj).perm = uint16(mode >> 6 & 7)
	a.class().perm = uint16(mode >> 3 & 7)
	a.find(aclOther).perm = uint16(mode & 7)
}

// restrict takes from a directory's default ACL what the mode of a new file does
// not ask for, and returns the mode that is left (posix_acl_create_masq).
func (a acl) restrict(mode uint32) uint32 {
	a.find(aclUserObj).perm &= uint16(mode >> 6)
	a.class().perm &= uint16(mode >> 3)
	a.find(aclOther).perm &= uint16(mode)
	return mode&^0o777 | a.mode()
}

// setAccessACL sets the access ACL and with it the permission bits. One that
// says no more than they do is not kept.
func setAccessACL(up *journal.Node, value string) error {
	a, err := parseACL(value)
	if err != nil {
		return err
	}
	if !a.complete() {
		return ErrInvalid
	}
	up.Attr.Mode = up.Attr.Mode&^0o777 | a.mode()
	if a.minimal() {
		delete(up.Xattrs, aclAccess)
		return nil
	}
	up.Xattrs[aclAccess] = value
	return nil
}

// chmodACL makes the access ACL, if there is one, agree with the mode.
func chmodACL(up *journal.Node) {
	a, err := parseACL(up.Xattrs[aclAccess])
	if err != nil || !a.complete() {
		return
	}
	a.chmod(up.Attr.Mode)
	setXattrs(up)[aclAccess] = a.String()
}

// inherit sets the permission bits of a new file and its ACLs: by the directory's
// default ACL, else by the caller's umask.
func (x *tx) inherit(up, dir *journal.Node) {
	typ := up.Attr.Mode & unix.S_IFMT
	if typ == unix.S_IFLNK {
		return
	}
	value := dir.Xattrs[aclDefault]
	a, err := parseACL(value)
	if err != nil || !a.complete() {
		up.Attr.Mode &^= x.r.Umask & 0o777
		return
	}
	up.Attr.Mode = a.restrict(up.Attr.Mode)
	m := setXattrs(up)
	if !a.minimal() {
		m[aclAccess] = a.String()
	}
	if typ == unix.S_IFDIR {
		m[aclDefault] = value
	}
}
