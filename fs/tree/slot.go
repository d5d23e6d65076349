package tree

import (
	"errors"
	"fmt"

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

// errDead says that a directory was removed: it has no names, and gets none.
var errDead = fmt.Errorf("the directory was removed: %w", ErrNotExist)

// look finds out what a name leads to and whether the lower has it, too.
func (t *Tree) look(p *node, name string) (slot, error) {
	s := slot{p: p, name: name}
	t.mu.RLock()
	s.entry = t.state.Entries[p.id][name]
	dir, dead := p.lowerDir(), p.gone
	t.mu.RUnlock()
	if dead {
		return s, errDead
	}
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
// errRetry says that the name came to lead elsewhere meanwhile.
func (t *Tree) hold(s *slot) (*node, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.current(s.p, s.name, &s.f) {
		return nil, errRetry
	}
	n := t.intern(s.p, s.name, s.f)
	n.lookups++
	return n, nil
}
