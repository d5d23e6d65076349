package journal

import "slices"

// Invert returns the changes that take the state after the records back to the
// state before them: for each key the value before its first change. recs are
// in ascending order and have no gaps that matter to the keys they change.
// What ends as it began is left out.
func Invert(recs []*Record) []Change {
	var v Inverter
	for _, r := range recs {
		v.Add(r)
	}
	return v.Changes()
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

func (sp *spans) entryKeys() []entryKey { return sortedKeys(sp.entries) }

func sameNode(a, b *Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return nodeDiff(a, b) == 0
}

// contentSpan is what a sequence of content changes did to one file: the bytes
// before and after over the ranges touched. The zero value is none.
type contentSpan struct {
	touched       Content // ExtentZero where a change was
	before, after Content
}

func newContentSpan(cs []*ContentChange) *contentSpan {
	s := &contentSpan{}
	for _, c := range cs {
		s.add(c)
	}
	return s
}

// add takes in the next change.
func (s *contentSpan) add(c *ContentChange) {
	for _, r := range s.untouched(c.Off, c.Len) {
		s.before.Splice(r.Off, r.Len, cutExtents(c.Before, r.Off, r.End()))
	}
	s.touched.Splice(c.Off, c.Len, []Extent{{Off: c.Off, Len: c.Len, Kind: ExtentZero}})
	s.after.Splice(c.Off, c.Len, c.After)
}

// untouched returns the parts of a range that no change was in yet.
func (s *contentSpan) untouched(off, n uint64) []Extent {
	var out []Extent
	pos, end := off, off+min(n, maxOffset-off+1)
	for _, r := range s.touched.Range(off, n) {
		if r.Off > pos {
			out = append(out, Extent{Off: pos, Len: r.Off - pos})
		}
		pos = r.End()
	}
	if pos < end {
		out = append(out, Extent{Off: pos, Len: end - pos})
	}
	return out
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
