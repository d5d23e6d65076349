package tree

import (
	"github.com/winkfs/winkfs/fs/lower"
	"github.com/winkfs/winkfs/journal"
)

// place is a name in a lower directory, and what the host has there by now.
type place struct {
	p    *node
	dir  *lower.Dir
	name string
	f    found       // if err is nil
	err  error       // else
	lost *lower.Kept // what was open of another file there, nil if nothing was
}

// LowerChanged takes in that the host changed a name in a watched lower
// directory, or the file that it leads to.
func (t *Tree) LowerChanged(dir journal.NodeID, name string) {
	t.mu.RLock()
	pl := place{p: t.nodes[dir], name: name}
	if pl.p != nil {
		pl.dir = pl.p.lowerDir()
	}
	t.mu.RUnlock()
	if pl.dir == nil {
		return
	}
	pl.f, pl.err = t.lowerChild(pl.dir, name)
	pl.lost = pl.dir.Detach(name, pl.f.low.Ino)
	linked, moved := t.tell(&pl)
	if linked != nil {
		// What was told is older than the watch.
		t.watchNode(linked)
		t.tellInode(linked.id)
	}
	if moved != nil {
		t.lowerReplaced(moved)
	}
}

// tell tells the table and the kernel what changed. It returns the node if it
// must be watched by itself since it has got another name, and the directory if
// its lower is another than before.
func (t *Tree) tell(pl *place) (linked, moved *node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.nodes[pl.p.id] != pl.p {
		drop(pl.lost)
		return nil, nil
	}
	t.lists.drop(pl.p.id)
	moved = t.tellEntry(pl)
	if pl.lost != nil {
		if n, ok := t.keep(pl.lost, pl.dir, pl.name); ok {
			t.notifier.Inode(n.id)
		} else {
			drop(pl.lost)
		}
	}
	t.notifier.Inode(pl.p.id)
	if n := t.nodes[pl.f.id]; pl.err == nil && n != nil && !n.isDir() && t.follows(n, pl.f.st) {
		linked = n
	}
	return linked, moved
}

// tellEntry tells the kernel what may be different about a name. A name that
// goes on leading to the same node only expires: dropping it would take the
// working directory away from who is below it. Either notification waits for
// look-ups in the directory that are under way, so the ones of nodes that follow
// hold for their answers, too.
// Preconditions: t.mu is held.
func (t *Tree) tellEntry(pl *place) (moved *node) {
	e := t.state.Entries[pl.p.id][pl.name]
	n := t.nodes[pl.f.id]
	if n != nil && n.up == nil && n.gen() != generation(pl.f.btime) {
		n = nil // another file with the same number
	}
	if n != nil {
		t.relocate(n, pl.f)
	}
	if e.Kind == journal.EntryNone && (pl.err != nil || n == nil || n.parent != pl.p || n.name != pl.name) {
		t.notifier.Entry(pl.p.id, pl.name)
	} else {
		t.notifier.Expire(pl.p.id, pl.name)
	}
	if pl.err == nil {
		t.notifier.Inode(pl.f.id)
	}
	// The node that the upper has, or hides, at this place.
	over := t.nodes[e.Node]
	if over == nil {
		return nil
	}
	t.notifier.Inode(over.id)
	if t.resettle(over, pl.dir, pl.name, pl.f, pl.err) {
		return over
	}
	return nil
}

// lowerReplaced takes in that a directory with changes below it has got another
// lower directory, or none. Nothing that was said of names in it holds, nor of
// directories with changes below.
func (t *Tree) lowerReplaced(n *node) {
	t.mu.RLock()
	dir := n.lowerDir()
	t.mu.RUnlock()
	if dir == nil {
		return
	}
	dir.DropPath() // it may have been found by its origin, through directories of its own
	t.watch(n, dir)
	t.mu.RLock()
	if !t.notifier.Epoch() && n.parent != nil {
		t.notifier.Entry(n.parent.id, n.name)
	}
	t.notifier.Expire(n.id, n.name) // any name: it waits for who lists the directory
	t.notifier.Inode(n.id)
	var below []string
	for name, e := range t.state.Entries[n.id] {
		if m := t.nodes[e.Node]; m != nil && m.isDir() {
			below = append(below, name)
		}
	}
	t.mu.RUnlock()
	for _, name := range below {
		t.LowerChanged(n.id, name)
	}
}

func (t *Tree) tellInode(id journal.NodeID) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	t.notifier.Inode(id)
}

// drop closes a kept file that nobody needs. It does not block.
func drop(k *lower.Kept) {
	if k != nil {
		go k.Close()
	}
}

// LowerSelfChanged takes in that the host changed a watched directory or file
// itself: its attributes, its bytes, or its place.
func (t *Tree) LowerSelfChanged(id journal.NodeID) {
	t.mu.RLock()
	n := t.nodes[id]
	linked := n != nil && n.linked
	t.mu.RUnlock()
	if linked {
		t.otherName(n)
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if n == nil || t.nodes[id] != n {
		return
	}
	t.lists.drop(id)
	if n.parent != nil {
		t.notifier.Expire(n.parent.id, n.name)
	}
	t.notifier.Inode(id)
}

// LowerOverflow takes in that changes of the host were missed: everything that
// follows the lower is told to the kernel as changed.
func (t *Tree) LowerOverflow() {
	t.lower.DropAll()
	t.lookAtChanged()
	t.mu.RLock()
	defer t.mu.RUnlock()
	epoch := t.notifier.Epoch()
	for id, n := range t.nodes {
		if n.low.Dir == nil {
			continue
		}
		t.lists.drop(id)
		if !epoch && n.parent != nil {
			t.notifier.Expire(n.parent.id, n.name)
		}
		t.notifier.Inode(id)
	}
}

// lookAtChanged finds out which lower directories lie where those lay that have
// changes below them.
func (t *Tree) lookAtChanged() {
	type name struct {
		dir  journal.NodeID
		name string
	}
	var changed []name
	t.mu.RLock()
	for id, entries := range t.state.Entries {
		for s, e := range entries {
			if n := t.nodes[e.Node]; n != nil && n.up != nil && n.dir != nil {
				changed = append(changed, name{id, s})
			}
		}
	}
	t.mu.RUnlock()
	for _, c := range changed {
		t.LowerChanged(c.dir, c.name)
	}
}
