package workspace

import (
	"iter"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

func isLink(mode uint32) bool    { return mode&unix.S_IFMT == unix.S_IFLNK }
func isRegular(mode uint32) bool { return mode&unix.S_IFMT == unix.S_IFREG }

// nodesOf yields the nodes that a record is about: those whose state, bytes or
// name it changed. A directory does not count for an entry in it.
func nodesOf(r *journal.Record) iter.Seq[journal.NodeID] {
	return func(yield func(journal.NodeID) bool) {
		parents := map[journal.NodeID]bool{}
		for _, c := range r.Changes {
			if c.Entry != nil {
				parents[c.Entry.Parent] = true
			}
		}
		for _, c := range r.Changes {
			for _, id := range changedNodes(&c) {
				if !parents[id] && !yield(id) {
					return
				}
			}
		}
	}
}

func changedNodes(c *journal.Change) []journal.NodeID {
	switch {
	case c.Node != nil:
		return []journal.NodeID{c.Node.ID}
	case c.Content != nil:
		return []journal.NodeID{c.Content.ID}
	case c.Entry != nil:
		var ids []journal.NodeID
		for _, e := range []journal.Entry{c.Entry.Before, c.Entry.After} {
			if e.Kind == journal.EntryNode {
				ids = append(ids, e.Node)
			}
		}
		return ids
	}
	return nil
}

// touched is what some records touched.
type touched struct {
	nodes map[journal.NodeID]bool
	names map[entryKey]bool
}

type entryKey struct {
	parent journal.NodeID
	name   string
}

// touchedBy gathers what the records of a request's command or record touched.
func (w *Workspace) touchedBy(req *DiffRequest) (*touched, error) {
	t := &touched{nodes: map[journal.NodeID]bool{}, names: map[entryKey]bool{}}
	if len(req.Seqs) > 0 {
		seqs := make([]journal.Seq, len(req.Seqs))
		for i, s := range req.Seqs {
			seqs[i] = journal.Seq(s)
		}
		return t, w.store.Pick(seqs, t.add)
	}
	recs, err := w.recordsOf(journal.ExecID(req.Exec))
	for _, r := range recs {
		_ = t.add(r)
	}
	return t, err
}

func (t *touched) add(r *journal.Record) error {
	for id := range nodesOf(r) {
		t.nodes[id] = true
	}
	for _, c := range r.Changes {
		if c.Entry != nil {
			t.names[entryKey{c.Entry.Parent, c.Entry.Name}] = true
		}
	}
	return nil
}

// only returns the changes of touched files, and of what came, went or moved
// with a touched directory.
func (t *touched) only(changed []tree.Changed) []tree.Changed {
	var out []tree.Changed
	var oldDirs, newDirs pathSet
	for _, c := range changed {
		moved := c.Old == nil || c.New == nil || c.Old.Path != c.New.Path
		hit := c.Old != nil && (t.nodes[c.Old.ID()] || len(oldDirs) > 0 && oldDirs.has(c.Old.Path)) ||
			c.New != nil && (t.nodes[c.New.ID()] || len(newDirs) > 0 && newDirs.has(c.New.Path))
		if !hit {
			continue
		}
		out = append(out, c)
		if moved && c.Old != nil && c.Old.IsDir() {
			oldDirs = append(oldDirs, c.Old.Path)
		}
		if moved && c.New != nil && c.New.IsDir() {
			newDirs = append(newDirs, c.New.Path)
		}
	}
	return out
}

// recordsOf returns the records of a command's processes, oldest first.
func (w *Workspace) recordsOf(id journal.ExecID) ([]*journal.Record, error) {
	x, err := w.exec(id)
	if err != nil {
		return nil, err
	}
	if x.First < w.store.First() {
		_, err := w.record(x.First) // says that it was dropped
		return nil, err
	}
	seqs, err := w.store.SeqsOfExec(id)
	if err != nil {
		return nil, err
	}
	recs := make([]*journal.Record, 0, len(seqs))
	err = w.store.Pick(seqs, func(r *journal.Record) error {
		recs = append(recs, r)
		return nil
	})
	return recs, err
}
