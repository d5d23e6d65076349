package tree

import (
	"errors"
	"fmt"

	"github.com/winkfs/winkfs/journal"
	"github.com/winkfs/winkfs/policy"
)

// Rename moves a name, with the flags of renameat2(2). RenameWhiteout is
// refused: it would let a caller make whiteouts of its own.
func (t *Tree) Rename(r *Request, oldParent journal.NodeID, oldName string, newParent journal.NodeID, newName string, flags uint32) error {
	if p := t.replaying(r); p != nil {
		return p.rename(r, oldParent, oldName, newParent, newName)
	}
	if flags&RenameWhiteout != 0 {
		p, err := t.getDir(oldParent)
		if err != nil {
			return err
		}
		return t.forbid(p, oldName, "whiteouts can't be made in a workspace")
	}
	if flags&^uint32(RenameNoReplace|RenameExchange) != 0 || flags == RenameNoReplace|RenameExchange {
		return ErrInvalid
	}
	oldP, err := t.getDir(oldParent)
	if err != nil {
		return err
	}
	newP, err := t.getDir(newParent)
	if err != nil {
		return err
	}
	m := move{t: t, flags: flags, from: victim{t: t}, to: victim{t: t}, oldP: oldP, newP: newP}
	defer m.from.letGo()
	defer m.to.letGo()
	op := journal.OpRename
	if flags&RenameExchange != 0 {
		op = journal.OpExchange
	}
	err = t.mutate(r, op, nil, func() ([]*node, error) { return m.prepare(oldName, newName) }, m.run)
	if err == errSame {
		return nil
	}
	if err != nil {
		return fmt.Errorf("rename %q to %q: %w", oldName, newName, err)
	}
	return nil
}

// errSame says that both names lead to the same file, which rename(2) leaves
// alone.
var errSame = errors.New("the same file")

// move is a rename on its way.
type move struct {
	t          *Tree
	flags      uint32
	oldP, newP *node
	from, to   victim
}

func (m *move) exchange() bool { return m.flags&RenameExchange != 0 }

// prepare looks both names up and checks what needs no lock.
func (m *move) prepare(oldName, newName string) ([]*node, error) {
	if err := m.from.find(m.oldP, oldName); err != nil {
		return nil, err
	}
	err := m.to.find(m.newP, newName)
	if err != nil && (!errors.Is(err, ErrNotExist) || err == errDead || m.exchange()) {
		return nil, err
	}
	if m.to.exists && m.flags&RenameNoReplace != 0 {
		return nil, ErrExist
	}
	if m.to.exists && m.to.f.id == m.from.f.id {
		return nil, errSame
	}
	if m.to.exists && !m.exchange() {
		if err := replaces(m.from.n, m.to.n); err != nil {
			return nil, err
		}
	}
	if err := m.t.decideName(policy.OpRename, m.oldP, oldName, m.from.f.id, m.from.f.mode); err != nil {
		return nil, err
	}
	if err := m.t.decideName(policy.OpRename, m.newP, newName, m.from.f.id, m.from.f.mode); err != nil {
		return nil, err
	}
	touched := []*node{m.oldP, m.from.n, m.to.n}
	if m.newP != m.oldP {
		touched = append(touched, m.newP)
	}
	return touched, nil
}

// replaces checks that a file of n's type may take the place of old.
func replaces(n, old *node) error {
	switch {
	case n.isDir() && !old.isDir():
		return ErrNotDir
	case !n.isDir() && old.isDir():
		return ErrIsDir
	}
	return nil
}

// run collects the changes.
func (m *move) run(x *tx) error {
	oldD, newD, n := x.own(m.oldP), x.own(m.newP), x.own(m.from.n)
	if oldD == nil || newD == nil || n == nil || !x.unchanged(&m.from.slot) || !x.unchanged(&m.to.slot) {
		return errRetry
	}
	if within(m.newP, m.from.n) || (m.exchange() && within(m.oldP, m.to.n)) {
		return ErrInvalid
	}
	if err := errors.Join(mayRemove(oldD, n), mayAdd(newD)); err != nil {
		return err
	}
	x.rec.Path, x.rec.Path2 = join(m.oldP, m.from.name), join(m.newP, m.to.name)
	if err := m.changeEntries(x, newD); err != nil {
		return err
	}
	n.Attr.Ctime = x.now
	m.moveLinks(oldD, newD)
	x.touchDir(oldD)
	x.touchDir(newD)
	x.then = m.publish
	return nil
}

func (m *move) changeEntries(x *tx, newD *journal.Node) error {
	if m.exchange() {
		o := x.own(m.to.n)
		if o == nil {
			return errRetry
		}
		if err := mayRemove(newD, o); err != nil {
			return err
		}
		o.Attr.Ctime = x.now
		x.fill(&m.from.slot, m.to.f.id)
		x.fill(&m.to.slot, m.from.f.id)
		return nil
	}
	if m.to.n != nil {
		if err := x.drop(&m.to, newD); err != nil {
			return err
		}
	}
	x.vacate(&m.from.slot)
	x.fill(&m.to.slot, m.from.f.id)
	return nil
}

// moveLinks carries the link that a moved directory's ".." is to its new
// parent.
func (m *move) moveLinks(oldD, newD *journal.Node) {
	if m.oldP == m.newP {
		return
	}
	if m.from.n.isDir() {
		loseSubdir(oldD)
		gainSubdir(newD)
	}
	if m.exchange() && m.to.n.isDir() {
		loseSubdir(newD)
		gainSubdir(oldD)
	}
}

// within reports whether dir is n or lies below it.
// Preconditions: t.mu is held.
func within(dir, n *node) bool {
	for ; dir != nil; dir = dir.parent {
		if dir == n {
			return true
		}
	}
	return false
}

// publish moves the names in the table.
// Preconditions: t.mu is held.
func (m *move) publish() {
	if m.to.n != nil && !m.exchange() {
		m.to.unname()
	}
	m.t.setName(m.from.n, m.newP, m.to.name)
	m.t.lists.insert(m.newP.id, m.to.name, m.from.n.id, m.from.n.mode)
	if m.exchange() {
		m.t.setName(m.to.n, m.oldP, m.from.name)
		m.t.lists.insert(m.oldP.id, m.from.name, m.to.n.id, m.to.n.mode)
	}
}
