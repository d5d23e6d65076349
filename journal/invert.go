package journal

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Invert returns the changes that take the state after the records back to the
// state before them: for each key the value before its first change. recs are
// in ascending order and have no gaps that matter to the keys they change.
// What ends as it began is left out.
func Invert(recs []*Record) []Change {
	sp := spansOf(recs)
	var out []Change
	for _, id := range slices.Sorted(maps.Keys(sp.nodes)) {
		cs := sp.nodes[id]
		last, first := cs[len(cs)-1].After, cs[0].Before
		if !sameNode(last, first) {
			out = append(out, Change{Node: &NodeChange{ID: id, Before: last, After: first}})
		}
	}
	for _, k := range sp.entryKeys() {
		cs := sp.entries[k]
		last, first := cs[len(cs)-1].After, cs[0].Before
		if last != first {
			out = append(out, Change{Entry: &EntryChange{Parent: k.parent, Name: k.name, Before: last, After: first}})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(sp.contents)) {
		out = append(out, newContentSpan(sp.contents[id]).invert(id)...)
	}
	return out
}

// spans are the changes of some records by key, in order.
type spans struct {
	nodes    map[NodeID][]*NodeChange
	recs     map[*NodeChange]*Record
	named    map[*EntryChange]*Record
	entries  map[entryKey][]*EntryChange
	contents map[NodeID][]*ContentChange
}

func spansOf(recs []*Record) *spans {
	sp := &spans{
		nodes:    map[NodeID][]*NodeChange{},
		recs:     map[*NodeChange]*Record{},
		named:    map[*EntryChange]*Record{},
		entries:  map[entryKey][]*EntryChange{},
		contents: map[NodeID][]*ContentChange{},
	}
	for _, r := range recs {
		for i := range r.Changes {
			sp.add(&r.Changes[i], r)
		}
	}
	return sp
}

func (sp *spans) add(c *Change, r *Record) {
	switch {
	case c.Node != nil:
		sp.nodes[c.Node.ID] = append(sp.nodes[c.Node.ID], c.Node)
		sp.recs[c.Node] = r
	case c.Entry != nil:
		k := entryKey{c.Entry.Parent, c.Entry.Name}
		sp.entries[k] = append(sp.entries[k], c.Entry)
		sp.named[c.Entry] = r
	case c.Content != nil && c.Content.Len > 0:
		sp.contents[c.Content.ID] = append(sp.contents[c.Content.ID], c.Content)
	}
}

func (sp *spans) entryKeys() []entryKey {
	return slices.SortedFunc(maps.Keys(sp.entries), func(a, b entryKey) int {
		return cmp.Or(cmp.Compare(a.parent, b.parent), strings.Compare(a.name, b.name))
	})
}

func sameNode(a, b *Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return nodeDiff(a, b) == 0
}

// contentSpan is what a sequence of content changes did to one file: the bytes
// before and after over the ranges touched.
type contentSpan struct {
	changes       []*ContentChange
	touched       *Content // ExtentZero where a change was
	before, after *Content
}

func newContentSpan(cs []*ContentChange) *contentSpan {
	s := &contentSpan{changes: cs, touched: &Content{}, before: &Content{}, after: &Content{}}
	for _, c := range cs {
		s.touched.Splice(c.Off, c.Len, []Extent{{Off: c.Off, Len: c.Len, Kind: ExtentZero}})
		s.after.Splice(c.Off, c.Len, c.After)
	}
	for _, c := range slices.Backward(cs) {
		s.before.Splice(c.Off, c.Len, c.Before)
	}
	return s
}

// ranges returns the ranges touched, in order.
func (s *contentSpan) ranges() []Extent { return s.touched.Range(0, maxOffset) }

// invert returns the changes that set the bytes before.
func (s *contentSpan) invert(id NodeID) []Change {
	var out []Change
	for _, r := range s.ranges() {
		c := &ContentChange{ID: id, Off: r.Off, Len: r.Len, Before: s.after.Range(r.Off, r.Len), After: s.before.Range(r.Off, r.Len)}
		if !slices.Equal(c.Before, c.After) {
			out = append(out, Change{Content: c})
		}
	}
	return out
}

// SameNode reports whether two states of a node are equal; nil is no state.
func SameNode(a, b *Node) bool { return sameNode(a, b) }
