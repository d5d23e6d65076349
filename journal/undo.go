package journal

import (
	"fmt"
	"maps"
	"path"
	"slices"
)

// Conflict is a value that an undo can't set without losing what others did
// since. For a name, Parent and Name are set; for bytes, Node, Off and Len; for
// an attribute, Node and Field.
type Conflict struct {
	Node     NodeID
	Parent   NodeID
	Name     string
	Field    string // "mode", "mtime", ...; "" for names and bytes
	Off, Len uint64
	Reason   string
}

// String says what is in conflict and why.
func (c Conflict) String() string {
	switch {
	case c.Name != "":
		return fmt.Sprintf("name %q in node %d: %s", c.Name, c.Parent, c.Reason)
	case c.Field != "":
		return fmt.Sprintf("%s of node %d: %s", c.Field, c.Node, c.Reason)
	case c.Len > 0:
		return fmt.Sprintf("bytes %d+%d of node %d: %s", c.Off, c.Len, c.Node, c.Reason)
	}
	return fmt.Sprintf("node %d: %s", c.Node, c.Reason)
}

// Reasons of conflicts.
const (
	reasonSince  = "changed since"
	reasonWithin = "changed by others in between"
	reasonGone   = "removed since"
	reasonInUse  = "in use by others"
	reasonOrphan = "its directory is gone"
	reasonBase   = "attributes before the copy-up are not known"
)

// UndoSet returns the changes that take back the records, which may be any
// subset of history in ascending order, while what others did stays: for each
// key the value before the subset's first change. The state is that at the
// head and is not changed.
//
// Attributes are compared one by one and only those that the subset changed
// are set. Times never conflict but the mtime of a file whose bytes the subset
// changed: where others changed them they stay. What others have set to the
// value before by themselves is no conflict either. Link counts are taken back
// as differences. A
// conflict means that others changed the same value, in between or since; the
// changes then leave that value out and are not fit to be applied alone.
//
// The undo of the record that carries the changes is the redo.
func UndoSet(state *State, recs []*Record) (changes []Change, conflicts []Conflict) {
	return Undoing{}.Set(state, recs)
}

// Undoing is what UndoSet can be told. The zero value tells it nothing.
type Undoing struct {
	// Lower returns the state that a lower node has right after its copy-up,
	// given one of its states; nil if that is not known. Without it an undo
	// that meets later changes of a node whose attributes before the copy-up
	// are not recorded is a conflict.
	Lower func(NodeID, *Node) *Node
	// Untouched says that nobody else has changed the file's bytes since, so
	// that its mtime is nothing to fight over.
	Untouched func(NodeID) bool
}

// Set is UndoSet with what is told.
func (o Undoing) Set(state *State, recs []*Record) (changes []Change, conflicts []Conflict) {
	u := &undo{o: o, st: state, sp: spansOf(recs), gone: map[entryKey]bool{}, kept: map[NodeID]bool{}, nodes: map[NodeID]*Node{}}
	u.allEntries()
	u.allNodes()
	u.dropPins()
	u.checkParents()
	for _, id := range slices.Sorted(maps.Keys(u.nodes)) {
		u.out = append(u.out, Change{Node: &NodeChange{ID: id, Before: state.Nodes[id], After: u.nodes[id]}})
	}
	for i := range u.entries {
		u.out = append(u.out, Change{Entry: &u.entries[i]})
	}
	u.allContents()
	return u.out, u.conflicts
}

// undo collects the changes of one UndoSet.
type undo struct {
	o         Undoing
	st        *State
	sp        *spans
	nodes     map[NodeID]*Node // results that differ from the state
	entries   []EntryChange
	gone      map[entryKey]bool // names that the result takes away
	kept      map[NodeID]bool   // copied-up nodes that others need
	out       []Change
	conflicts []Conflict
}

func (u *undo) conflict(c Conflict) { u.conflicts = append(u.conflicts, c) }

func (u *undo) allEntries() {
	for _, k := range u.sp.entryKeys() {
		u.entry(k, u.sp.entries[k])
	}
}

func (u *undo) entry(k entryKey, cs []*EntryChange) {
	for i := range cs[1:] {
		if cs[i].After != cs[i+1].Before {
			u.conflict(Conflict{Parent: k.parent, Name: k.name, Node: cs[i].After.Node, Reason: reasonWithin})
			return
		}
	}
	first, last := cs[0].Before, cs[len(cs)-1].After
	if first == last {
		return
	}
	now := u.st.Entries[k.parent][k.name]
	if now == first && last.Kind == EntryNone && u.pins(k.name, first, u.sp.named[cs[0]]) {
		return // others hold the node in its place, too
	}
	if now != last {
		u.conflict(Conflict{Parent: k.parent, Name: k.name, Node: max(last.Node, now.Node), Reason: reasonSince})
		return
	}
	u.entries = append(u.entries, EntryChange{Parent: k.parent, Name: k.name, Before: last, After: first})
	u.gone[k] = first.Kind != EntryNode
}

// pins reports whether an entry, as the record set or dropped it, only holds a
// lower node in the place that it has in the lower. The names that a link or a
// rename is about are none of these.
func (u *undo) pins(name string, e Entry, r *Record) bool {
	switch r.Op {
	case OpLink, OpRename, OpExchange:
		if path.Base(r.Path2) == name || r.Op == OpExchange && path.Base(r.Path) == name {
			return false
		}
	}
	n := u.st.Nodes[e.Node]
	return e.Kind == EntryNode && e.Node < CreatedBit && n != nil && (!n.Own || n.Attr.Nlink > 0) && path.Base(n.Origin.Path) == name
}

// dropPins takes out entries that only hold a copied-up node in its place, if
// the node has to stay.
func (u *undo) dropPins() {
	u.entries = slices.DeleteFunc(u.entries, func(e EntryChange) bool {
		first := u.sp.named[u.sp.entries[entryKey{e.Parent, e.Name}][0]]
		return e.After.Kind == EntryNone && u.kept[e.Before.Node] && u.pins(e.Name, e.Before, first)
	})
}

// checkParents reports names that would come back in a directory that is gone:
// those of the upper, and the lower's where a whiteout goes.
func (u *undo) checkParents() {
	for _, e := range u.entries {
		if e.After.Kind != EntryNode && e.Before.Kind != EntryWhiteout {
			continue
		}
		n, changed := u.nodes[e.Parent]
		if e.After.Kind != EntryNode && (changed || e.Parent >= CreatedBit) {
			continue // the directory goes or comes with the name, or has no lower
		}
		if !changed {
			n = u.st.Nodes[e.Parent]
		}
		if n == nil && e.Parent >= CreatedBit || n != nil && n.Own && isDir(n) && n.Attr.Nlink == 0 {
			u.conflict(Conflict{Parent: e.Parent, Name: e.Name, Node: e.After.Node, Reason: reasonOrphan})
		}
	}
}

func (u *undo) allContents() {
	for _, id := range slices.Sorted(maps.Keys(u.sp.contents)) {
		s := newContentSpan(u.sp.contents[id])
		if bad, ok := alternates(u.sp.contents[id]); ok {
			u.conflict(Conflict{Node: id, Off: bad.Off, Len: bad.Len, Reason: reasonWithin})
			continue
		}
		now := u.st.Contents[id]
		if now == nil {
			now = &Content{}
		}
		for _, c := range s.invert(id) {
			r := c.Content
			if !slices.Equal(now.Range(r.Off, r.Len), r.Before) {
				u.conflict(Conflict{Node: id, Off: r.Off, Len: r.Len, Reason: reasonSince})
				continue
			}
			u.out = append(u.out, c)
		}
	}
}

// alternates returns a range that others changed between two of the changes.
func alternates(cs []*ContentChange) (Extent, bool) {
	touched, now := &Content{}, &Content{}
	for _, c := range cs {
		for _, r := range touched.Range(c.Off, c.Len) {
			if !slices.Equal(now.Range(r.Off, r.Len), cutExtents(c.Before, r.Off, r.End())) {
				return r, true
			}
		}
		touched.Splice(c.Off, c.Len, []Extent{{Off: c.Off, Len: c.Len, Kind: ExtentZero}})
		now.Splice(c.Off, c.Len, c.After)
	}
	return Extent{}, false
}

// cutExtents returns what the extents have in [lo, hi).
func cutExtents(es []Extent, lo, hi uint64) []Extent {
	var out []Extent
	for _, e := range es {
		if e.End() > lo && e.Off < hi {
			out = appendJoined(out, e.cut(lo, hi))
		}
	}
	return out
}

func isDir(n *Node) bool { return n.Attr.Mode&0o170000 == 0o040000 }
