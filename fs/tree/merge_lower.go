package tree

import (
	"github.com/winkfs/winkfs/journal"
)

// A side that has taken its changes of a lower file back has no state of it any
// more, though base has one. What it says of the file then is what the lower
// has, which counts in a merge like anything else that it could have made of it.

// tookBack reports whether a side follows the lower where base didn't.
func (g *merger) tookBack(id journal.NodeID, now *journal.Node) bool {
	b := g.b.Nodes[id]
	return id < journal.CreatedBit && b != nil && b.Own && (now == nil || !now.Own)
}

// copied returns the state that the copy-up of a lower node makes.
func (g *merger) copied(id journal.NodeID) (*journal.Node, error) {
	f, ok := g.anyFound(id)
	if !ok {
		return nil, ErrNotExist
	}
	st, err := f.lowerStat()
	if err != nil {
		return nil, err
	}
	n := g.pinned(&f)
	n.Own, n.Attr = true, lowerAttr(&st)
	if n.Xattrs, err = lowerXattrs(f.low); err != nil {
		return nil, err
	}
	fingerprint(&n.Origin, &st)
	return n, nil
}

// pinned returns the state that holds a lower node in place.
func (g *merger) pinned(f *found) *journal.Node {
	n := &journal.Node{}
	n.Attr.Mode, n.Attr.Btime = f.mode, f.btime
	n.Origin = journal.Origin{Source: f.low.Dir.Source(), Path: originPath(f.low), Ino: f.low.Ino}
	return n
}

// giveBack takes ours' state of a lower node away, but for what holds its name
// in place: an entry must not lead to a node that nothing is known of.
func (g *merger) giveBack(id journal.NodeID, o *journal.Node) error {
	if !g.named(id) {
		g.after[id] = nil
		return nil
	}
	if o == nil || !o.Own {
		return nil
	}
	f, ok := g.anyFound(id)
	if !ok {
		return ErrNotExist
	}
	g.after[id] = g.pinned(&f)
	return nil
}

// named reports whether an entry of ours leads to a lower node in the end.
func (g *merger) named(id journal.NodeID) bool {
	for _, k := range g.keysOf(id) {
		e, taken := g.taken[k]
		if !taken {
			e = g.o.Entries[k.parent][k.name]
		}
		if e.Kind == journal.EntryNode && e.Node == id {
			return true
		}
	}
	return false
}

// hold pins a lower node that gets a state, and the directories above it, where
// ours says nothing of their names.
func (g *merger) hold(id journal.NodeID) error {
	for id != journal.RootID {
		k, ok, err := g.shownAt(id)
		if !ok || err != nil {
			return err
		}
		if g.o.Entries[k.parent][k.name].Kind != journal.EntryNone || g.held[k] != 0 {
			return nil
		}
		if _, ok := g.taken[k]; ok {
			return nil
		}
		g.held[k] = id
		if g.after[id] == nil && g.o.Nodes[id] == nil {
			f, ok := g.anyFound(id)
			if !ok {
				return ErrNotExist
			}
			g.after[id] = g.pinned(&f)
		}
		id = k.parent
	}
	return nil
}

// shownAt returns a name under which ours shows a lower node.
func (g *merger) shownAt(id journal.NodeID) (entryKey, bool, error) {
	keys := g.keysOf(id)
	for k, low := range g.lowers {
		if low == id {
			keys = append(keys[:len(keys):len(keys)], k)
		}
	}
	for _, k := range keys {
		if now, err := g.leads(g.o, k); err != nil || now == id {
			return k, err == nil, err
		}
	}
	return entryKey{}, false, nil
}

// keysOf returns the names that any of the states has for a lower node.
func (g *merger) keysOf(id journal.NodeID) []entryKey {
	if g.keys == nil {
		g.keys = map[journal.NodeID][]entryKey{}
		for _, s := range []*journal.State{g.b, g.t, g.o} {
			for parent, entries := range s.Entries {
				for name, e := range entries {
					if e.Node != 0 && e.Node < journal.CreatedBit {
						g.keys[e.Node] = append(g.keys[e.Node], entryKey{parent, name})
					}
				}
			}
		}
	}
	return g.keys[id]
}
