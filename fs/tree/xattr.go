package tree

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
	"github.com/winkfs/winkfs/policy"
)

// xattrCaps holds a file's capabilities.
const xattrCaps = "security.capability"

// Limits of extended attributes, as ext4 and the VFS have them.
const (
	maxXattrName  = 255
	maxXattrValue = 64 << 10
	maxXattrs     = 256 << 10 // of all names and values of a node
)

// Getxattr returns the value of an extended attribute.
func (t *Tree) Getxattr(r *Request, id journal.NodeID, name string) ([]byte, error) {
	n, err := t.get(id)
	if err != nil {
		return nil, err
	}
	if err := t.decideNode(policy.OpRead, n, 0); err != nil {
		return nil, err
	}
	if err := checkSpace(name); err != nil {
		return nil, err
	}
	t.mu.RLock()
	f := n.found()
	t.mu.RUnlock()
	if f.upOwn() {
		v, ok := f.up.Xattrs[name]
		if !ok {
			return nil, ErrNoAttr
		}
		return []byte(v), nil
	}
	v, err := f.low.Getxattr(name)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
		return nil, ErrNoAttr
	}
	return v, err
}

// knownSpace reports whether a name lies in a namespace that can have attributes
// (xattr(7)).
func knownSpace(name string) bool {
	space, _, _ := strings.Cut(name, ".")
	return slices.Contains([]string{"user", "system", "security", "trusted"}, space)
}

// checkSpace refuses names that no attribute can have.
func checkSpace(name string) error {
	space, rest, _ := strings.Cut(name, ".")
	switch {
	case !knownSpace(name), space == "system" && !isACL(name):
		return ErrNotSupported
	case rest == "":
		return ErrInvalid
	}
	return nil
}

// Listxattr returns the names of the extended attributes, sorted. Those of
// trusted.* are for who may read them (xattr(7)).
func (t *Tree) Listxattr(r *Request, id journal.NodeID) ([]string, error) {
	n, err := t.get(id)
	if err != nil {
		return nil, err
	}
	t.mu.RLock()
	f := n.found()
	t.mu.RUnlock()
	var names []string
	if f.upOwn() {
		names = slices.Sorted(maps.Keys(f.up.Xattrs))
	} else {
		names, err = f.low.Listxattr()
		slices.Sort(names)
	}
	trusted := func(name string) bool { return strings.HasPrefix(name, "trusted.") }
	if slices.ContainsFunc(names, trusted) && !t.actors.Capable(r.TID, unix.CAP_SYS_ADMIN) {
		names = slices.DeleteFunc(names, trusted)
	}
	return names, err
}

// Setxattr sets an extended attribute; flags are XATTR_CREATE or XATTR_REPLACE.
func (t *Tree) Setxattr(r *Request, id journal.NodeID, name string, value []byte, flags uint32) error {
	if len(value) > maxXattrValue {
		return ErrRange
	}
	return t.changeXattr(r, journal.OpSetxattr, id, name, func(up *journal.Node) error {
		m := up.Xattrs
		_, ok := m[name]
		switch {
		case ok && flags&unix.XATTR_CREATE != 0:
			return ErrExist
		case !ok && flags&unix.XATTR_REPLACE != 0:
			return ErrNoAttr
		}
		if name == aclAccess {
			if r.KillSGID {
				up.Attr.Mode &^= unix.S_ISGID
			}
			return setAccessACL(up, string(value))
		}
		m[name] = string(value)
		if xattrBytes(m) > maxXattrs {
			return ErrNoSpace
		}
		return nil
	})
}

func xattrBytes(m map[string]string) int {
	n := 0
	for k, v := range m {
		n += len(k) + len(v)
	}
	return n
}

// Removexattr removes an extended attribute.
func (t *Tree) Removexattr(r *Request, id journal.NodeID, name string) error {
	if _, err := t.Getxattr(r, id, name); err != nil {
		if isACL(name) && errors.Is(err, ErrNoAttr) {
			return nil // as every file system of the kernel does
		}
		return err
	}
	return t.changeXattr(r, journal.OpRemovexattr, id, name, func(up *journal.Node) error {
		delete(up.Xattrs, name)
		return nil
	})
}

func (t *Tree) changeXattr(r *Request, op journal.Op, id journal.NodeID, name string, change func(*journal.Node) error) error {
	n, err := t.get(id)
	if err != nil {
		return err
	}
	if err := t.checkXattr(n, name); err != nil {
		return fmt.Errorf("%s %q: %w", op, name, err)
	}
	if err := t.decideNode(policy.OpXattr, n, 0); err != nil {
		return err
	}
	err = t.mutate(r, op, nil, touching(n), func(x *tx) error {
		up := x.own(n)
		if up == nil {
			return errRetry
		}
		if err := mayChange(up); err != nil {
			return err
		}
		setXattrs(up)
		if err := change(up); err != nil {
			return err
		}
		x.rec.Path = path(n)
		up.Attr.Ctime = x.now
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s %q: %w", op, name, err)
	}
	return nil
}
