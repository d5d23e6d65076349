package journal

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Inverter makes the inverse of a sequence of records that it is given one by
// one. It keeps what the records changed, for each key the value before and the
// value after, and not the records: its memory follows the number of files
// touched, not how often. The zero value is ready; not safe for concurrent use.
type Inverter struct {
	nodes    map[NodeID]*nodeSpan
	entries  map[entryKey]*entrySpan
	contents map[NodeID]*contentSpan
	changed  int
}

type nodeSpan struct{ before, after *Node }

type entrySpan struct{ before, after Entry }

// Add takes in the next record. The numbers ascend and have no gaps that matter
// to the keys that the records change.
func (v *Inverter) Add(r *Record) {
	if v.nodes == nil {
		v.nodes, v.entries, v.contents = map[NodeID]*nodeSpan{}, map[entryKey]*entrySpan{}, map[NodeID]*contentSpan{}
	}
	if len(r.Changes) > 0 {
		v.changed++
	}
	for i := range r.Changes {
		v.add(&r.Changes[i])
	}
}

// AddTo gives the records from..to to the Inverter; none if to < from.
func (s *Store) AddTo(v *Inverter, from, to Seq) error {
	if to < from {
		return nil
	}
	return s.Records(from, to, func(r *Record) error {
		v.Add(r)
		return nil
	})
}

func (v *Inverter) add(c *Change) {
	switch {
	case c.Node != nil:
		v.addNode(c.Node)
	case c.Entry != nil:
		v.addEntry(c.Entry)
	case c.Content != nil && c.Content.Len > 0:
		s := v.contents[c.Content.ID]
		if s == nil {
			s = &contentSpan{}
			v.contents[c.Content.ID] = s
		}
		s.add(c.Content)
	}
}

func (v *Inverter) addNode(c *NodeChange) {
	if s := v.nodes[c.ID]; s != nil {
		s.after = c.After
		return
	}
	v.nodes[c.ID] = &nodeSpan{c.Before, c.After}
}

func (v *Inverter) addEntry(c *EntryChange) {
	k := entryKey{c.Parent, c.Name}
	if s := v.entries[k]; s != nil {
		s.after = c.After
		return
	}
	v.entries[k] = &entrySpan{c.Before, c.After}
}

// Changed returns how many of the records changed something.
func (v *Inverter) Changed() int { return v.changed }

// Nodes returns the nodes that the records changed, or changed entries of.
func (v *Inverter) Nodes() []NodeID {
	ids := make(map[NodeID]struct{}, len(v.nodes))
	for id := range v.nodes {
		ids[id] = struct{}{}
	}
	for id := range v.contents {
		ids[id] = struct{}{}
	}
	for k := range v.entries {
		ids[k.parent] = struct{}{}
	}
	return slices.Collect(maps.Keys(ids))
}

// Changes returns the changes that take the state after the records back to the
// one before them, nodes first. What ends as it began is left out.
func (v *Inverter) Changes() []Change {
	out := make([]Change, 0, len(v.nodes)+len(v.entries)+len(v.contents))
	for _, id := range slices.Sorted(maps.Keys(v.nodes)) {
		if s := v.nodes[id]; !sameNode(s.after, s.before) {
			out = append(out, Change{Node: &NodeChange{ID: id, Before: s.after, After: s.before}})
		}
	}
	for _, k := range sortedKeys(v.entries) {
		if s := v.entries[k]; s.after != s.before {
			out = append(out, Change{Entry: &EntryChange{Parent: k.parent, Name: k.name, Before: s.after, After: s.before}})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(v.contents)) {
		out = append(out, v.contents[id].invert(id)...)
	}
	return out
}

// sortedKeys returns the keys of entries by directory and name.
func sortedKeys[V any](m map[entryKey]V) []entryKey {
	return slices.SortedFunc(maps.Keys(m), func(a, b entryKey) int {
		return cmp.Or(cmp.Compare(a.parent, b.parent), strings.Compare(a.name, b.name))
	})
}
