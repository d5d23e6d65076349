package tree

import (
	"errors"

	"github.com/winkfs/winkfs/journal"
)

// slot is one name in one directory as an operation found it.
type slot struct {
	p      *node
	name   string
	f      found // if exists
	exists bool
	entry  journal.Entry  // what the upper said
	hidden journal.NodeID // the lower file of that name, 0 if there is none or it does not show
}

// look finds out what a name leads to and whether the lower has it, too.
func (t *Tree) look(p *node, name string) (slot, error) {
	s := slot{p: p, name: name}
	t.mu.RLock()
	s.entry = t.state.Entries[p.id][name]
	dir := p.lowerDir()
	t.mu.RUnlock()
	f, err := t.child(p, name)
	if err != nil && !errors.Is(err, ErrNotExist) {
		return s, err
	}
	s.f, s.exists = f, err == nil
	switch {
	case dir == nil:
	case s.entry.Kind == journal.EntryWhiteout:
		s.hidden = s.entry.Node
		if s.hidden == 0 {
			s.hidden = f.id
		}
	case s.entry.Kind == journal.EntryNone && s.exists:
		s.hidden = f.id
	case s.entry.Kind == journal.EntryNode:
		if low, err := t.lowerChild(dir, name); err == nil {
			s.hidden = low.id
		}
	}
	return s, nil
}

// unchanged reports whether the upper still says of the slot's name what it
// said when the slot was looked at.
func (x *tx) unchanged(s *slot) bool {
	e := x.t.state.Entries[s.p.id][s.name]
	return e == s.entry && !s.p.gone
}

// vacate makes the slot's name lead nowhere: a whiteout where the lower has the
// name, else nothing.
func (x *tx) vacate(s *slot) {
	var e journal.Entry
	if s.hidden != 0 {
		e = journal.Entry{Kind: journal.EntryWhiteout, Node: s.hidden}
	}
	x.setEntry(s.p, s.name, e)
}

// fill makes the slot's name lead to the node.
func (x *tx) fill(s *slot, id journal.NodeID) {
	x.setEntry(s.p, s.name, journal.Entry{Kind: journal.EntryNode, Node: id})
}

// hold keeps what the slot leads to in the table until Forget of one reference.
func (t *Tree) hold(s *slot) *node {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.intern(s.p, s.name, s.f)
	n.lookups++
	return n
}
