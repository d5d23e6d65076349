package workspace

import (
	"maps"
	"slices"

	"github.com/winkfs/winkfs/journal"
)

// renumbering tells the numbers that a fork gave to nodes since it was made, or
// last merged, from those of the workspace, which gave out the same ones.
type renumbering struct {
	From  journal.NodeID      `json:"from"`           // the fork's numbers in [From, To) ...
	To    journal.NodeID      `json:"to"`             //
	Start journal.NodeID      `json:"start"`          // ... count from here in the workspace,
	Same  [][2]journal.NodeID `json:"same,omitempty"` // but these, which were there already: the workspace's counted number, and the real one
}

// last returns the highest number in the workspace that the fork's nodes have.
func (r *renumbering) last() (journal.NodeID, bool) {
	return r.Start + r.To - r.From - 1, r.To > r.From
}

// numbers returns the workspace's number of each node of the fork, after the
// merges, oldest first.
func numbers(merges []*mergeNote) func(journal.NodeID) journal.NodeID {
	same := map[journal.NodeID]journal.NodeID{}
	for _, m := range merges {
		for _, p := range m.Nodes.Same {
			same[p[0]] = p[1]
		}
	}
	return func(id journal.NodeID) journal.NodeID {
		for _, m := range merges {
			if r := &m.Nodes; id >= r.From && id < r.To {
				id = r.Start + id - r.From
				break
			}
		}
		if y, ok := same[id]; ok {
			return y
		}
		return id
	}
}

// pairsOf returns the pairs of a map in order.
func pairsOf(m map[journal.NodeID]journal.NodeID) [][2]journal.NodeID {
	var out [][2]journal.NodeID
	for _, id := range slices.Sorted(maps.Keys(m)) {
		out = append(out, [2]journal.NodeID{id, m[id]})
	}
	return out
}
