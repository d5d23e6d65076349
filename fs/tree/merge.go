package tree

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
)

// Merge is what a three-way merge starts from: a workspace (Ours), another one
// (Theirs) that was made of it, and what both were at that time (Base). All
// three number their nodes alike, and nodes that theirs made since have numbers
// that ours doesn't use. They have the same lower.
type Merge struct {
	Base, Theirs, Ours *View
	// Text merges the bytes of a file that both changed, or says why not.
	Text func(base, ours, theirs Item) (text []byte, why string, err error)
}

// MergePlan is the result of a merge. With conflicts it must not be made.
type MergePlan struct {
	Conflicts []MergeConflict
	Changes   []journal.Change // of nodes and entries
	Contents  []MergedContent
	Merged    []string // paths of texts that were merged
	// Same are files and directories that both made alike: theirs' number to
	// that of ours.
	Same map[journal.NodeID]journal.NodeID
}

// MergeConflict is something that both changed in ways that don't go together.
type MergeConflict struct {
	Path         string
	Reason       string
	Theirs, Ours []journal.NodeID // whose records say who did it
}

// MergedContent replaces a range of a file's content, by theirs' extents, whose
// places are in theirs' store, or by text.
type MergedContent struct {
	Change journal.ContentChange
	Text   []byte // if not nil
}

// Plan works out the changes that bring what theirs changed since base into
// ours. It goes by nodes and names, not by paths, so that a change finds its
// file in a directory that the other side has renamed.
//
// What only one side changed is taken; what both changed alike stays. Of a
// node's attributes each counts for itself; times never conflict. Bytes that
// both changed go to Text, also where one side or both replaced the file by
// another of the same name.
func (m Merge) Plan() (*MergePlan, error) {
	g := newMerger(m)
	for _, step := range []func() error{g.findSlots, g.unifyAll, g.slots, g.lost, g.nodes, g.checkDirs} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return g.plan(), nil
}

// merger is a merge on its way. Numbers are those of Merge's views.
type merger struct {
	Merge
	b, t, o *journal.State

	lowers map[entryKey]journal.NodeID // what the lower has under a name
	types  map[journal.NodeID]uint32   // of nodes without state
	// lowFound are nodes of the lower that were looked up by name.
	lowFound map[journal.NodeID]found
	bases    map[journal.NodeID]*journal.Node
	theirs   side
	ours     side

	same    map[journal.NodeID]journal.NodeID
	texts   map[journal.NodeID]*mergedText // by the node that gets it
	handled map[journal.NodeID]bool        // nodes of theirs that a text stands for

	taken     map[entryKey]journal.Entry
	order     []entryKey // of taken
	pins      []entryKey
	held      map[entryKey]journal.NodeID   // names of the lower that ours pins
	keys      map[journal.NodeID][]entryKey // names of lower nodes in any of the states
	links     map[journal.NodeID]int        // by how much link counts change
	after     map[journal.NodeID]*journal.Node
	contents  []MergedContent
	conflicts []MergeConflict
	merged    []string
	names     map[journal.NodeID]entryKey // names in theirs, for paths
}

// mergedText is the merged text of a file, with theirs' mode for it.
type mergedText struct {
	text []byte
	mode uint32 // permission bits to set, 0 = leave
}

// side is what one side did to names.
type side struct {
	state   *journal.State
	view    *View
	slots   map[entryKey]slotChange
	removed map[journal.NodeID][]entryKey // names that a node lost
	added   map[journal.NodeID][]entryKey // names that a node got
}

// slotChange is what a name led to in base and leads to on a side; 0 is
// nothing. The two are equal where the side only holds the name in place.
type slotChange struct{ base, now journal.NodeID }

func newMerger(m Merge) *merger {
	g := &merger{
		Merge: m, b: m.Base.l.state, t: m.Theirs.l.state, o: m.Ours.l.state,
		lowers: map[entryKey]journal.NodeID{}, types: map[journal.NodeID]uint32{}, bases: map[journal.NodeID]*journal.Node{}, lowFound: map[journal.NodeID]found{},
		same: map[journal.NodeID]journal.NodeID{}, texts: map[journal.NodeID]*mergedText{}, handled: map[journal.NodeID]bool{},
		taken: map[entryKey]journal.Entry{}, held: map[entryKey]journal.NodeID{}, links: map[journal.NodeID]int{}, after: map[journal.NodeID]*journal.Node{},
	}
	g.theirs, g.ours = newSide(m.Theirs), newSide(m.Ours)
	return g
}

func newSide(v *View) side {
	return side{
		state: v.l.state, view: v, slots: map[entryKey]slotChange{},
		removed: map[journal.NodeID][]entryKey{}, added: map[journal.NodeID][]entryKey{},
	}
}

// plan puts the result together.
func (g *merger) plan() *MergePlan {
	p := &MergePlan{Conflicts: g.conflicts, Same: g.same, Contents: g.contents, Merged: g.merged}
	slices.Sort(p.Merged)
	slices.SortFunc(p.Conflicts, func(a, b MergeConflict) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Reason, b.Reason))
	})
	ids := make([]journal.NodeID, 0, len(g.after))
	for id := range g.after {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if before := g.o.Nodes[id]; before != nil || g.after[id] != nil {
			p.Changes = append(p.Changes, journal.Change{Node: &journal.NodeChange{ID: id, Before: before, After: g.after[id]}})
		}
	}
	for _, k := range g.order {
		p.Changes = append(p.Changes, g.entryChange(k, g.taken[k]))
	}
	for _, k := range slices.SortedFunc(maps.Keys(g.held), compareKeys) {
		p.Changes = append(p.Changes, g.entryChange(k, journal.Entry{Kind: journal.EntryNode, Node: g.held[k]}))
	}
	for _, k := range g.pins {
		e := g.t.Entries[k.parent][k.name]
		if g.held[k] != 0 {
			continue
		}
		if g.after[e.Node] != nil || g.o.Nodes[e.Node] != nil {
			p.Changes = append(p.Changes, g.entryChange(k, e))
		}
	}
	return p
}

func (g *merger) entryChange(k entryKey, after journal.Entry) journal.Change {
	return journal.Change{Entry: &journal.EntryChange{Parent: k.parent, Name: k.name, Before: g.o.Entries[k.parent][k.name], After: after}}
}

// conflict notes one, under the path that theirs has for the name.
func (g *merger) conflict(k entryKey, reason string, theirs, ours []journal.NodeID) {
	g.conflicts = append(g.conflicts, MergeConflict{Path: g.path(k), Reason: reason, Theirs: theirs, Ours: ours})
}

// path returns the path of a name in theirs.
func (g *merger) path(k entryKey) string {
	if g.names == nil {
		g.names = map[journal.NodeID]entryKey{}
		for _, s := range []*journal.State{g.o, g.t} { // theirs' names count
			for parent, entries := range s.Entries {
				for name, e := range entries {
					if e.Kind == journal.EntryNode {
						g.names[e.Node] = entryKey{parent, name}
					}
				}
			}
		}
	}
	path := k.name
	for range 4096 { // no loop in a damaged tree
		if k.parent == journal.RootID {
			break
		}
		up, ok := g.names[k.parent]
		if !ok {
			break
		}
		k, path = up, up.name+"/"+path
	}
	return path
}

// nameOf returns a name of the node.
func (g *merger) nameOf(id journal.NodeID) entryKey {
	g.path(entryKey{})
	return g.names[id]
}

// known reports whether base had the node.
func (g *merger) known(id journal.NodeID) bool {
	return id < journal.CreatedBit || g.b.Nodes[id] != nil
}

// typ returns the type of a node, 0 if it is not known.
func (g *merger) typ(id journal.NodeID) uint32 {
	for _, s := range []*journal.State{g.t, g.o, g.b} {
		if n := s.Nodes[id]; n != nil {
			return n.Attr.Mode & unix.S_IFMT
		}
	}
	return g.types[id]
}

func (g *merger) isDir(id journal.NodeID) bool { return g.typ(id) == unix.S_IFDIR }

// gone reports whether a side has removed a node that base had.
func (g *merger) gone(s *side, id journal.NodeID) bool {
	if len(s.removed[id]) == 0 || len(s.added[id]) > 0 {
		return false
	}
	n := s.state.Nodes[id]
	return n == nil || !n.Own || n.Attr.Nlink == 0 || g.isDir(id)
}
