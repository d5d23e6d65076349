package tree

import (
	"fmt"
	"maps"
	"slices"

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
	return t.CommitReplayed(needs, nil, plan)
}

// CommitReplayed is Commit, but that the names that the replay knows are not
// notified: the kernel learns of them when they are replayed, or at its end.
func (t *Tree) CommitReplayed(needs []journal.NodeID, p *Replay, plan Plan) (journal.Seq, error) {
	if t.readOnly {
		return 0, ErrReadOnly
	}
	t.order.Lock()
	defer t.order.Unlock()
	t.freeze()
	defer t.thaw()
	rec, err := t.planned(needs, plan)
	if err != nil || rec == nil {
		return 0, err
	}
	seq, err := t.store.Append(rec, nil)
	if err != nil {
		return 0, fmt.Errorf("journal %s: %w", rec.Op, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.Apply(rec)
	for i := range rec.Changes {
		if c := rec.Changes[i].Node; c != nil {
			t.recognise(c.ID, c.After)
		}
	}
	t.follow(rec.Changes, p)
	return seq, nil
}

// Still calls fn while no request changes the tree; readers go on. It is for a
// change of history that takes long to work out, when the tree doesn't come
// to rest by itself. fn may call Commit. It must not wait for the kernel, which
// may be waiting for a request that waits for fn.
func (t *Tree) Still(fn func() error) error {
	t.still.Lock()
	defer t.still.Unlock()
	return fn()
}

// planned returns the record that the plan makes, with the state of the needed
// nodes in memory.
// Preconditions: t.order is held, and the state of dead nodes is frozen.
func (t *Tree) planned(needs []journal.NodeID, plan Plan) (*journal.Record, error) {
	back := journal.NewState()
	if err := Revive(back, t.store, t.dropped(needs)); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.Copy(t.state.Contents, back.Contents)
	for id, up := range back.Nodes {
		t.state.Nodes[id] = up
		t.buried = append(t.buried, id)
	}
	return plan(t.state)
}

// dropped returns those of the nodes whose state is not in memory.
func (t *Tree) dropped(ids []journal.NodeID) []journal.NodeID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.DeleteFunc(slices.Clone(ids), func(id journal.NodeID) bool { return t.state.Nodes[id] != nil })
}

// freeze keeps the state of dead nodes in memory until thaw: a group of changes
// may be about them, although nobody holds them.
func (t *Tree) freeze() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.frozen = true
}

func (t *Tree) thaw() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.frozen = false
	for _, id := range t.buried {
		if t.nodes[id] == nil && dead(t.state.Nodes[id]) {
			t.bury(id)
		}
	}
	t.buried = nil
}

// dead reports whether a node has no names and nothing in the lower: only its
// history is left, which is in the store, where Revive finds it.
func dead(up *journal.Node) bool {
	return up != nil && up.Own && up.Attr.Nlink == 0 && up.Origin.Source == 0
}

// bury drops the state of a dead node from memory.
// Preconditions: t.mu is held.
func (t *Tree) bury(id journal.NodeID) {
	if t.frozen {
		t.buried = append(t.buried, id)
		return
	}
	delete(t.state.Nodes, id)
	delete(t.state.Contents, id)
}

// buryAll drops the state of all dead nodes.
func (t *Tree) buryAll() {
	for id, up := range t.state.Nodes {
		if dead(up) {
			t.bury(id)
		}
	}
}

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
func (t *Tree) follow(changes []journal.Change, p *Replay) {
	for _, c := range changes {
		switch {
		case c.Node != nil:
			t.followNode(c.Node.ID)
		case c.Content != nil:
			t.notifier.Inode(c.Content.ID)
		case c.Entry != nil:
			t.followEntry(c.Entry, p)
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

func (t *Tree) followEntry(e *journal.EntryChange, r *Replay) {
	p := t.nodes[e.Parent]
	if p == nil {
		return
	}
	t.lists.drop(e.Parent)
	same := t.samePlace(p, e)
	if n := t.nodes[e.Before.Node]; e.Before.Kind == journal.EntryNode && n != nil && n.parent == p && n.name == e.Name && !same {
		t.setName(n, nil, "")
	}
	if n := t.nodes[e.After.Node]; e.After.Kind == journal.EntryNode && n != nil {
		t.setName(n, p, e.Name)
	}
	if same {
		return
	}
	if r != nil {
		if _, replayed := r.pending(e.Parent, e.Name); replayed {
			t.notifier.Inode(e.Parent)
			return
		}
	}
	t.notifier.Entry(e.Parent, e.Name)
}

// samePlace reports whether an entry only begins or ceases to hold a lower file
// in the place where it lies anyway. Whoever watches the file must not be told
// that the name changed: the kernel takes that for the file's end.
// Preconditions: t.mu is held.
func (t *Tree) samePlace(p *node, e *journal.EntryChange) bool {
	id := e.Before.Node
	if e.Before.Kind == journal.EntryNone {
		id = e.After.Node
	}
	one := e.Before.Kind == journal.EntryNone && e.After.Kind == journal.EntryNode ||
		e.Before.Kind == journal.EntryNode && e.After.Kind == journal.EntryNone
	n, dir := t.nodes[id], p.lowerDir()
	if !one || n == nil || n.low.Dir == nil || dir == nil {
		return false
	}
	return n.low.Dir.Source() == dir.Source() && originPath(n.low) == dir.PathOf(e.Name)
}
