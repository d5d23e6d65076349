package tree

import (
	"maps"
	"runtime/debug"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/lower"
	"github.com/winkfs/winkfs/journal"
)

// node is a node that the kernel knows or that lies above one it knows. Fields
// that are not said to be immutable are protected by Tree.mu.
type node struct {
	id    journal.NodeID   // immutable
	btime journal.Timespec // immutable
	low   lower.File       // where the lower part is; Dir is nil if there is none
	dir   *lower.Dir       // of a directory with a lower part
	up    *journal.Node

	parent  *node // nil for the root and for a node without a name
	name    string
	lookups uint64 // references that the kernel holds
	kids    uint32 // nodes in the table whose parent this is
	mode    uint32 // file type; immutable

	gone    bool // its last name was removed
	watched bool // the lower directory, or a lower file with several names, is being watched
	tried   bool // watching was tried
	linked  bool // a lower file that was seen with several names
	shared  bool // several actors have written
	absent  bool // a directory with state whose lower the host has taken away
	writer  *journal.Actor
	seen    atomic.Pointer[fingerprints] // see compare
}

func newNode(f found) *node {
	return &node{id: f.id, mode: f.mode, btime: f.btime, low: f.low, dir: f.dir, up: f.up}
}

// gen returns the node's generation.
func (n *node) gen() uint32 { return generation(n.btime) }

// generation tells a lower file from one that later gets its inode number. The
// kernel drops what it knows of a node number whose generation changed.
func generation(btime journal.Timespec) uint32 {
	g := uint32(btime) ^ uint32(btime>>32)
	if g == 0 {
		return 1
	}
	return g
}

func (n *node) isDir() bool { return n.mode == unix.S_IFDIR }
func (n *node) isReg() bool { return n.mode == unix.S_IFREG }

// own reports whether the attributes are the node's own.
func (n *node) own() bool { return n.up != nil && n.up.Own }

// ownContent reports whether the bytes are the node's own.
func (n *node) ownContent() bool { return n.up != nil && n.up.OwnContent }

// lowerDir returns the lower directory whose entries show in n, nil if none do.
func (n *node) lowerDir() *lower.Dir { return visible(n.up, n.dir) }

// found returns n as a look-up would.
func (n *node) found() found {
	return found{id: n.id, up: n.up, low: n.low, dir: n.dir, mode: n.mode, btime: n.btime}
}

// get returns the node of that number.
func (t *Tree) get(id journal.NodeID) (*node, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := t.nodes[id]
	if n == nil {
		return nil, ErrStale
	}
	return n, nil
}

// getDir returns the directory of that number.
func (t *Tree) getDir(id journal.NodeID) (*node, error) {
	n, err := t.get(id)
	if err == nil && !n.isDir() {
		return nil, ErrNotDir
	}
	return n, err
}

// intern returns the table's node for what was found under a name, makes it if
// needed, and remembers the name.
// Preconditions: t.mu is held; what was found is current.
func (t *Tree) intern(parent *node, name string, f found) *node {
	n := t.nodes[f.id]
	switch {
	case n == nil:
		f.up = t.state.Nodes[f.id] // it may have got one since it was found
		n = newNode(f)
		t.enlist(n)
	case n.up != nil || f.id == journal.RootID:
	case n.gen() != generation(f.btime) || n.mode != f.mode:
		n = t.succeed(n, f)
	default:
		t.relocate(n, f)
	}
	t.setName(n, parent, name)
	return n
}

// enlist puts a node into the table.
// Preconditions: t.mu is held.
func (t *Tree) enlist(n *node) {
	t.nodes[n.id] = n
	t.most = max(t.most, len(t.nodes))
}

const (
	// keptTable is how many nodes the table may have had without being made
	// anew when it gets emptier.
	keptTable = 1 << 12
	// keptHeap is how many it may have had without the memory being given back
	// to the system at once: left to itself, an idle process does so minutes
	// later.
	keptHeap = 1 << 16
)

// delist takes a node out of the table. A map never gives memory back by
// itself, so one that was much larger is made anew.
// Preconditions: t.mu is held.
func (t *Tree) delist(n *node) {
	delete(t.nodes, n.id)
	if t.most <= keptTable || len(t.nodes) > t.most/8 {
		return
	}
	if t.most > keptHeap {
		go debug.FreeOSMemory()
	}
	left := make(map[journal.NodeID]*node, len(t.nodes))
	maps.Copy(left, t.nodes)
	t.nodes, t.most = left, len(left)
}

// setName makes (parent, name) the name by which n is known.
// Preconditions: t.mu is held.
func (t *Tree) setName(n, parent *node, name string) {
	if n.id == journal.RootID || (n.parent == parent && n.name == name) {
		return
	}
	if parent != nil {
		parent.kids++
		n.gone = false
	}
	old := n.parent
	n.parent, n.name = parent, name
	if old != nil {
		old.kids--
		t.release(old)
	}
}

// release drops nodes from the table that nobody needs, upwards from n.
// Preconditions: t.mu is held.
func (t *Tree) release(n *node) {
	for n != nil && n.lookups == 0 && n.kids == 0 && n.id != journal.RootID && t.nodes[n.id] == n {
		t.delist(n)
		t.lists.drop(n.id)
		t.unfollow(n)
		if n.gone && dead(n.up) {
			t.bury(n.id)
		}
		p := n.parent
		n.parent = nil
		if p != nil {
			p.kids--
		}
		n = p
	}
}

// Orphans returns the nodes that have lost their last name but that somebody
// still has open.
func (t *Tree) Orphans() []journal.NodeID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var ids []journal.NodeID
	for id, n := range t.nodes {
		if n.up != nil && n.up.Own && n.up.Attr.Nlink == 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// Forget gives back n references to a node.
func (t *Tree) Forget(id journal.NodeID, n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	nd := t.nodes[id]
	if nd == nil {
		return
	}
	nd.lookups -= min(n, nd.lookups)
	t.release(nd)
}

// path returns the workspace-relative path of a node as far as it is known.
// Preconditions: t.mu is held.
func path(n *node) string {
	if n.id == journal.RootID {
		return ""
	}
	if n.parent == nil {
		return deleted
	}
	return join(n.parent, n.name)
}

// deleted stands for the path of a node without a name.
const deleted = "(deleted)"

// join returns the path of a name in a directory.
// Preconditions: t.mu is held.
func join(dir *node, name string) string {
	// Of a deep tree in one piece: adding one level to the next would copy the
	// square of its depth.
	top, size := dir, len(name)
	for ; top.id != journal.RootID && top.parent != nil; top = top.parent {
		size += len(top.name) + 1
	}
	if top.id != journal.RootID {
		size += len(deleted) + 1
	}
	b := make([]byte, size)
	at := size - copy(b[size-len(name):], name)
	for n := dir; n != top; n = n.parent {
		at--
		b[at] = '/'
		at -= len(n.name)
		copy(b[at:], n.name)
	}
	if at > 0 {
		copy(b, deleted+"/")
	}
	return string(b)
}
