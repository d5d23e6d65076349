package tree

import "github.com/winkfs/winkfs/journal"

// Beside returns the view with other node numbers, and over the lower of a view
// of a workspace with the same sources, to be compared with that one.
func (v *View) Beside(a *View, number func(journal.NodeID) journal.NodeID) *View {
	return NewView(Renumber(v.l.state, number), a.l.low, a.l.sources, v.store)
}

// Renumber returns a copy of the state in which nodes have other numbers. The
// nodes' values and contents are shared with the original.
func Renumber(s *journal.State, number func(journal.NodeID) journal.NodeID) *journal.State {
	r := journal.NewState()
	r.Seq, r.NextNode, r.NextExec = s.Seq, s.NextNode, s.NextExec
	for id, n := range s.Nodes {
		r.Nodes[number(id)] = n
	}
	for id, c := range s.Contents {
		r.Contents[number(id)] = c
	}
	for parent, entries := range s.Entries {
		m := make(map[string]journal.Entry, len(entries))
		for name, e := range entries {
			if e.Node != 0 {
				e.Node = number(e.Node)
			}
			m[name] = e
		}
		r.Entries[number(parent)] = m
	}
	return r
}
