package journal

import "maps"

// State is the upper state of a workspace at some record: what Apply of all
// records up to there makes. The zero value is not usable; see NewState.
// Not safe for concurrent use.
type State struct {
	Seq         Seq
	Nodes       map[NodeID]*Node // values are immutable
	Entries     map[NodeID]map[string]Entry
	Contents    map[NodeID]*Content // of nodes with OwnContent
	Execs       map[ExecID]*Exec    // values are immutable
	Checkpoints map[string]Seq
	NextNode    NodeID // next created number, CreatedBit included
	NextExec    ExecID
}

// NewState returns the state before the first record.
func NewState() *State {
	return &State{
		Nodes:       map[NodeID]*Node{},
		Entries:     map[NodeID]map[string]Entry{},
		Contents:    map[NodeID]*Content{},
		Execs:       map[ExecID]*Exec{},
		Checkpoints: map[string]Seq{},
		NextNode:    CreatedBit + 1,
		NextExec:    1,
	}
}

// Clone returns an independent copy. It costs time in proportion to the number
// of changed nodes and entries.
func (s *State) Clone() *State {
	c := &State{
		Seq: s.Seq, NextNode: s.NextNode, NextExec: s.NextExec,
		Nodes: maps.Clone(s.Nodes), Execs: maps.Clone(s.Execs), Checkpoints: maps.Clone(s.Checkpoints),
		Entries:  make(map[NodeID]map[string]Entry, len(s.Entries)),
		Contents: make(map[NodeID]*Content, len(s.Contents)),
	}
	for k, v := range s.Entries {
		c.Entries[k] = maps.Clone(v)
	}
	for k, v := range s.Contents {
		c.Contents[k] = v.Clone()
	}
	return c
}

// Apply moves the state to the record: each change's value after, and the
// note's effect on execs and checkpoints.
func (s *State) Apply(r *Record) {
	for i := range r.Changes {
		s.ApplyChange(&r.Changes[i])
	}
	s.applyNote(r)
	s.Seq = r.Seq
}

// ApplyChange sets one change's value after.
func (s *State) ApplyChange(c *Change) {
	switch {
	case c.Node != nil:
		s.setNode(c.Node.ID, c.Node.After)
	case c.Entry != nil:
		s.setEntry(c.Entry.Parent, c.Entry.Name, c.Entry.After)
	case c.Content != nil:
		s.content(c.Content.ID).Splice(c.Content.Off, c.Content.Len, c.Content.After)
	}
}

func (s *State) setNode(id NodeID, n *Node) {
	if id >= CreatedBit && id >= s.NextNode {
		s.NextNode = id + 1
	}
	if n == nil {
		delete(s.Nodes, id)
		return
	}
	s.Nodes[id] = n
}

func (s *State) setEntry(parent NodeID, name string, e Entry) {
	m := s.Entries[parent]
	if e.Kind == EntryNone {
		delete(m, name)
		if len(m) == 0 {
			delete(s.Entries, parent)
		}
		return
	}
	if m == nil {
		m = map[string]Entry{}
		s.Entries[parent] = m
	}
	m[name] = e
}

func (s *State) content(id NodeID) *Content {
	c := s.Contents[id]
	if c == nil {
		c = &Content{}
		s.Contents[id] = c
	}
	return c
}

func (s *State) applyNote(r *Record) {
	if r.Note == nil {
		return
	}
	switch r.Op {
	case OpExecBegin, OpExecEnd:
		s.applyExec(r)
	case OpCheckpoint:
		s.Checkpoints[r.Note.Checkpoint] = r.Note.Point
	case OpUncheckpoint:
		delete(s.Checkpoints, r.Note.Checkpoint)
	}
}

func (s *State) applyExec(r *Record) {
	if r.Note.Exec == nil {
		return
	}
	e := *r.Note.Exec
	if r.Op == OpExecBegin {
		e.First = r.Seq
	} else {
		if b := s.Execs[e.ID]; b != nil {
			e.First = b.First
		}
		e.Last = r.Seq
	}
	s.Execs[e.ID] = &e
	if e.ID >= s.NextExec {
		s.NextExec = e.ID + 1
	}
}
