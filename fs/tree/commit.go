package tree

import (
	"fmt"

	"github.com/winkfs/winkfs/journal"
)

// Plan is computed against the state as it is when a group of changes is made:
// it returns the record to make, or nil to make none. It is called under the
// tree's lock, must not call the tree, and must not keep or change the state.
type Plan func(s *journal.State) (*journal.Record, error)

// Commit journals a group of changes that the workspace itself makes (undo,
// rollback, discard, a checkpoint, an exec's begin and end) as one record,
// makes them in the live tree and tells the kernel. It is all or nothing. A
// plan that returns no record makes no change, and Commit returns 0.
//
// needs are nodes whose state the plan or its changes may refer to; those that
// were dropped from memory because nobody had them are read back first.
func (t *Tree) Commit(needs []journal.NodeID, plan Plan) (journal.Seq, error) {
	if t.readOnly {
		return 0, ErrReadOnly
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.revive(needs); err != nil {
		return 0, err
	}
	rec, err := plan(t.state)
	if err != nil || rec == nil {
		return 0, err
	}
	seq, err := t.store.Append(rec, nil)
	if err != nil {
		return 0, fmt.Errorf("journal %s: %w", rec.Op, err)
	}
	t.state.Apply(rec)
	t.follow(rec.Changes)
	return seq, nil
}

// revive reads back the state of nodes that release dropped.
// Preconditions: t.mu is held.
func (t *Tree) revive(ids []journal.NodeID) error { return Revive(t.state, t.store, ids) }

// Revive adds the nodes to the state that it does not have although the store
// does: nodes that nothing leads to.
func Revive(s *journal.State, store *journal.Store, ids []journal.NodeID) error {
	for _, id := range ids {
		if s.Nodes[id] != nil || id < journal.CreatedBit {
			continue
		}
		up, c, err := store.LookupNode(id)
		if err != nil {
			return fmt.Errorf("read node %d: %w", id, err)
		}
		if up == nil {
			continue
		}
		s.Nodes[id] = up
		if c != nil {
			s.Contents[id] = c
		}
	}
	return nil
}

// NodesOf returns the nodes that the records' changes are about.
func NodesOf(recs []*journal.Record) []journal.NodeID {
	seen := make(map[journal.NodeID]bool)
	var ids []journal.NodeID
	add := func(id journal.NodeID) {
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	for _, r := range recs {
		for _, c := range r.Changes {
			switch {
			case c.Node != nil:
				add(c.Node.ID)
			case c.Content != nil:
				add(c.Content.ID)
			case c.Entry != nil:
				add(c.Entry.Parent)
			}
		}
	}
	return ids
}

// follow makes the node table and the kernel's caches agree with changes that
// did not come from the kernel.
// Preconditions: t.mu is held; the state has the changes.
func (t *Tree) follow(changes []journal.Change) {
	for _, c := range changes {
		switch {
		case c.Node != nil:
			t.followNode(c.Node.ID)
		case c.Content != nil:
			t.notifier.Inode(c.Content.ID)
		case c.Entry != nil:
			t.followEntry(c.Entry)
		}
	}
}

func (t *Tree) followNode(id journal.NodeID) {
	n := t.nodes[id]
	if n == nil {
		return
	}
	n.up = t.state.Nodes[id]
	n.gone = n.own() && n.up.Attr.Nlink == 0
	if n.up != nil && n.low.Dir == nil {
		f := found{id: id, up: n.up, mode: n.mode}
		t.locate(&f)
		n.low, n.dir = f.low, f.dir
	}
	t.notifier.Inode(id)
}

func (t *Tree) followEntry(e *journal.EntryChange) {
	p := t.nodes[e.Parent]
	if p == nil {
		return
	}
	t.lists.drop(e.Parent)
	if n := t.nodes[e.Before.Node]; e.Before.Kind == journal.EntryNode && n != nil && n.parent == p && n.name == e.Name {
		t.setName(n, nil, "")
	}
	if n := t.nodes[e.After.Node]; e.After.Kind == journal.EntryNode && n != nil {
		t.setName(n, p, e.Name)
	}
	t.notifier.Entry(e.Parent, e.Name)
}
