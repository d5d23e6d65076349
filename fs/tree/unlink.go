package tree

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/lower"
	"github.com/winkfs/winkfs/journal"
	"github.com/winkfs/winkfs/policy"
)

// Unlink removes a name that does not lead to a directory.
func (t *Tree) Unlink(r *Request, parent journal.NodeID, name string) error {
	return t.remove(r, journal.OpUnlink, parent, name)
}

// Rmdir removes an empty directory.
func (t *Tree) Rmdir(r *Request, parent journal.NodeID, name string) error {
	return t.remove(r, journal.OpRmdir, parent, name)
}

func (t *Tree) remove(r *Request, op journal.Op, parent journal.NodeID, name string) error {
	if p := t.replaying(r); p != nil {
		return p.remove(parent, name)
	}
	p, err := t.getDir(parent)
	if err != nil {
		return err
	}
	v := victim{t: t}
	defer v.letGo()
	err = t.mutate(r, op, nil, func() ([]*node, error) {
		if err := v.find(p, name); err != nil {
			return nil, err
		}
		if err := checkType(v.f.mode, op); err != nil {
			return nil, err
		}
		return []*node{p, v.n}, t.decideName(policy.OpUnlink, p, name, v.f.id, v.f.mode)
	}, func(x *tx) error {
		d := x.own(p)
		if d == nil || !x.unchanged(&v.slot) {
			return errRetry
		}
		x.rec.Path = join(p, name)
		if err := x.drop(&v, d); err != nil {
			return err
		}
		x.vacate(&v.slot)
		x.touchDir(d)
		x.then = v.unname
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s %q: %w", op, name, err)
	}
	return nil
}

func checkType(mode uint32, op journal.Op) error {
	switch {
	case op == journal.OpRmdir && mode != unix.S_IFDIR:
		return ErrNotDir
	case op == journal.OpUnlink && mode == unix.S_IFDIR:
		return ErrIsDir
	}
	return nil
}

// victim is a name that is about to lose its node: of an unlink, an rmdir or a
// rename onto it.
type victim struct {
	t *Tree
	slot
	n     *node          // held; nil if the name does not exist
	lower []lower.Dirent // of a directory: what the lower has in it
}

// find looks the name up, holds its node and, for a directory, reads what the
// lower has in it. It fails if the name does not exist.
func (v *victim) find(p *node, name string) error {
	v.letGo()
	s, err := v.t.look(p, name)
	if err != nil {
		return err
	}
	if v.slot = s; !s.exists {
		return ErrNotExist
	}
	if v.n, err = v.t.hold(&s); err != nil || !v.n.isDir() {
		return err
	}
	v.t.mu.RLock()
	dir := v.n.lowerDir()
	v.t.mu.RUnlock()
	if dir != nil {
		v.lower, err = readLowerDir(dir)
	}
	return err
}

// letGo gives the hold back.
func (v *victim) letGo() {
	if v.n != nil {
		v.t.Forget(v.n.id, 1)
		v.n = nil
	}
	v.lower = nil
}

// unname takes the removed name from the node.
// Preconditions: t.mu is held.
func (v *victim) unname() {
	if v.n.parent == v.p && v.n.name == v.name {
		v.t.setName(v.n, nil, "")
	}
	if v.n.up != nil && (v.n.up.Attr.Nlink == 0 || v.n.isDir()) {
		v.n.gone = true
	}
}

// drop takes one link from the victim; d is the state of the directory that
// loses the name. A directory must be empty.
func (x *tx) drop(v *victim, d *journal.Node) error {
	up := x.own(v.n)
	if up == nil {
		return errRetry
	}
	if err := mayRemove(d, up); err != nil {
		return err
	}
	up.Attr.Ctime = x.now
	if !v.n.isDir() {
		if up.Attr.Nlink > 0 {
			up.Attr.Nlink--
		}
		return nil
	}
	if !x.empty(v) {
		return ErrNotEmpty
	}
	up.Attr.Nlink = 0
	loseSubdir(d)
	return nil
}

// gainSubdir counts the ".." of a further subdirectory. A count of 1 says that
// the file system does not count them, and stays.
func gainSubdir(d *journal.Node) {
	if d.Attr.Nlink > 1 {
		d.Attr.Nlink++
	}
}

// loseSubdir takes the ".." of a subdirectory from the count.
func loseSubdir(d *journal.Node) {
	if d.Attr.Nlink > 2 {
		d.Attr.Nlink--
	}
}

// empty reports whether nothing shows in the victim.
func (x *tx) empty(v *victim) bool {
	entries := x.t.state.Entries[v.n.id]
	for _, e := range entries {
		if e.Kind == journal.EntryNode {
			return false
		}
	}
	for _, e := range v.lower {
		if _, ok := entries[e.Name]; !ok {
			return false
		}
	}
	return true
}
