package workspace

import (
	"errors"
	"slices"

	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// undoPlan is the inverse of some records against the present: what
// journal.UndoSet makes of it, and for text that others went on with a
// three-way merge by lines.
type undoPlan struct {
	w    *Workspace
	recs []*journal.Record // ascending
	now  *journal.State
	head journal.Seq

	paths   []string                       // of the merged files
	merged  map[journal.NodeID]*mergedFile // by the node that gets the text
	dropped map[journal.NodeID]bool        // nodes that a merge takes the place of
	names   map[entryKey]bool              // names that stay as they are, since a merge was made behind them
	refused []Conflict                     // merges that are not possible
	told    map[journal.NodeID]bool        // nodes of which refused says all
	changes []journal.Change
	data    []journal.DataRef
}

// planUndo works out how to revert the records. It fails with all conflicts
// when later work is in the way.
func (w *Workspace) planUndo(recs []*journal.Record) (*undoPlan, error) {
	now, err := w.cloneState(tree.NodesOf(recs))
	if err != nil {
		return nil, err
	}
	u := &undoPlan{w: w, recs: recs, now: now, head: now.Seq, merged: map[journal.NodeID]*mergedFile{}, dropped: map[journal.NodeID]bool{}, names: map[entryKey]bool{}, told: map[journal.NodeID]bool{}}
	alone, err := u.alone()
	if err != nil {
		return nil, err
	}
	if alone {
		// Nothing came in between: the inverse is exact, times included.
		u.changes = journal.Invert(recs)
		return u, nil
	}
	changes, conflicts, err := u.set(recs)
	if err != nil {
		return nil, err
	}
	if len(conflicts) > 0 {
		if err := u.mergeFiles(contentConflicts(conflicts)); err != nil {
			return nil, err
		}
		if changes, conflicts, err = u.set(u.withoutMerged()); err != nil {
			return nil, err
		}
	}
	if len(conflicts)+len(u.refused) > 0 {
		return nil, u.refuse(conflicts)
	}
	u.changes = changes
	u.addMerged()
	return u, nil
}

// again works the changes out against another state. Merges stand if nobody has
// touched their files since.
func (u *undoPlan) again(s *journal.State) error {
	for id, m := range u.merged {
		if s.Nodes[id] != m.was {
			return errMoved
		}
	}
	was, head := u.now, u.head
	defer func() { u.now, u.head = was, head }()
	u.now, u.head = s, s.Seq
	var failed error
	// The lower is not asked: the tree's lock is held.
	o := journal.Undoing{Untouched: u.untouched(&failed)}
	changes, conflicts := o.Set(s, u.withoutMerged())
	if failed != nil {
		return failed
	}
	if len(conflicts) > 0 {
		return errMoved
	}
	u.changes = changes
	u.addMerged()
	return nil
}

// set is journal.UndoSet, told what the workspace knows.
func (u *undoPlan) set(recs []*journal.Record) ([]journal.Change, []journal.Conflict, error) {
	var failed error
	view := u.w.viewOf(u.now)
	o := journal.Undoing{
		Lower:     func(_ journal.NodeID, n *journal.Node) *journal.Node { return view.LowerState(n) },
		Untouched: u.untouched(&failed),
	}
	changes, conflicts := o.Set(u.now, recs)
	return changes, conflicts, failed
}

// untouched returns what tells journal.Undoing that nobody else has changed a
// file's bytes since.
func (u *undoPlan) untouched(failed *error) func(journal.NodeID) bool {
	h, err := u.w.revertedRecords()
	if err == nil {
		err = h.upTo(u.recs[0].Seq)
	}
	*failed = errors.Join(*failed, err)
	return func(id journal.NodeID) bool {
		r, err := u.laterBut(journal.Conflict{Node: id, Len: wholeFile}, func(r *journal.Record) bool {
			return h.known(r.Seq) != 0 || slices.Contains(returning, r.Op)
		})
		*failed = errors.Join(*failed, err)
		return r == nil && err == nil
	}
}

// alone reports whether nothing else was changed since the first of the
// records. Only what lies between them and behind them is read.
func (u *undoPlan) alone() (bool, error) {
	for i, r := range u.recs {
		next := u.head + 1
		if i+1 < len(u.recs) {
			next = u.recs[i+1].Seq
		}
		if r.Seq+1 == next {
			continue
		}
		err := u.w.store.Records(r.Seq+1, next-1, func(r *journal.Record) error {
			if len(r.Changes) > 0 {
				return errFound
			}
			return nil
		})
		if errors.Is(err, errFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// contentConflicts returns the files whose bytes are in conflict.
func contentConflicts(conflicts []journal.Conflict) []journal.NodeID {
	var ids []journal.NodeID
	for _, c := range conflicts {
		bytes := c.Name == "" && c.Field == "" && c.Len > 0
		if (bytes || c.Field == "size" || c.Field == "mtime") && !slices.Contains(ids, c.Node) {
			ids = append(ids, c.Node)
		}
	}
	return ids
}

// withoutMerged returns the records without what the merges undo in another
// way.
func (u *undoPlan) withoutMerged() []*journal.Record {
	out := make([]*journal.Record, len(u.recs))
	for i, r := range u.recs {
		c := *r
		c.Changes = nil
		for _, ch := range r.Changes {
			switch {
			case ch.Content != nil && (u.merged[ch.Content.ID] != nil || u.dropped[ch.Content.ID]):
			case ch.Node != nil && u.dropped[ch.Node.ID]:
			case ch.Entry != nil && u.names[entryKey{ch.Entry.Parent, ch.Entry.Name}]:
			case ch.Node != nil && u.merged[ch.Node.ID] != nil:
				c.Changes = append(c.Changes, journal.Change{Node: levelBytes(ch.Node)})
			default:
				c.Changes = append(c.Changes, ch)
			}
		}
		out[i] = &c
	}
	return out
}

// levelBytes returns the change with the same size and times on both sides, so
// that these don't count as changed by it.
func levelBytes(c *journal.NodeChange) *journal.NodeChange {
	l := &journal.NodeChange{ID: c.ID, Before: c.Before, After: c.After}
	switch {
	case c.After == nil:
	case c.Before == nil:
		l.After = c.After.Clone()
		l.After.Origin.Size, l.After.Origin.Mtime = l.After.Attr.Size, l.After.Attr.Mtime
	default:
		l.Before = c.Before.Clone()
		l.Before.Attr.Size, l.Before.Attr.Mtime, l.Before.Attr.Atime = c.After.Attr.Size, c.After.Attr.Mtime, c.After.Attr.Atime
		l.Before.OwnContent = c.After.OwnContent
	}
	return l
}

// addMerged adds the changes that make the merged texts the files' contents.
func (u *undoPlan) addMerged() {
	for id, m := range u.merged {
		cur := u.now.Nodes[id]
		m.was = cur
		i := slices.IndexFunc(u.changes, func(c journal.Change) bool { return c.Node != nil && c.Node.ID == id })
		node := cur
		if i >= 0 {
			node = u.changes[i].Node.After
		}
		if cur == nil || node == nil {
			continue
		}
		change := journal.Change{Node: &journal.NodeChange{ID: id, Before: cur, After: m.node(node)}}
		if i >= 0 {
			u.changes[i] = change
		} else {
			u.changes = append(u.changes, change)
		}
		u.changes = append(u.changes, m.content(id, u.now.Contents[id], cur.Attr.Size)...)
		u.data = append(u.data, m.data...)
	}
}
