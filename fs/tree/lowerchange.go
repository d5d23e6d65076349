package tree

import (
	"github.com/winkfs/winkfs/fs/lower"
	"github.com/winkfs/winkfs/journal"
)

// LowerChanged takes in that the host changed a name in a watched lower
// directory, or the file that it leads to.
func (t *Tree) LowerChanged(dir journal.NodeID, name string) {
	t.mu.RLock()
	p := t.nodes[dir]
	var low *lower.Dir
	var e journal.Entry
	if p != nil {
		low, e = p.lowerDir(), t.state.Entries[dir][name]
	}
	t.mu.RUnlock()
	if low == nil {
		return
	}
	lower.File{Dir: low, Name: name}.Drop()
	f, err := t.lowerChild(low, name)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lists.drop(dir)
	if e.Kind == journal.EntryNone {
		if n := t.nodes[f.id]; err != nil || n == nil || n.parent != p || n.name != name {
			t.notifier.Entry(dir, name)
		}
	}
	if err == nil && t.nodes[f.id] != nil {
		t.notifier.Inode(f.id)
	}
	t.notifier.Inode(dir)
}

// LowerSelfChanged takes in that the host changed a watched directory itself:
// its attributes, or its place.
func (t *Tree) LowerSelfChanged(dir journal.NodeID) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	p := t.nodes[dir]
	if p == nil {
		return
	}
	t.lists.drop(dir)
	if p.parent != nil {
		t.notifier.Entry(p.parent.id, p.name)
	}
	t.notifier.Inode(dir)
}

// LowerOverflow takes in that changes of the host were missed: everything that
// follows the lower is told to the kernel as changed.
func (t *Tree) LowerOverflow() {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for id, n := range t.nodes {
		if n.low.Dir == nil {
			continue
		}
		t.lists.drop(id)
		if n.parent != nil {
			t.notifier.Entry(n.parent.id, n.name)
		}
		t.notifier.Inode(id)
	}
}
