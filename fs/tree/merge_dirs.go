package tree

import "github.com/winkfs/winkfs/journal"

// checkDirs finds directories that the result would lose: removed by theirs
// while ours has something in them, or moved into each other.
func (g *merger) checkDirs() error {
	for id := range g.theirs.removed {
		if g.isDir(id) && g.gone(&g.theirs, id) && !g.gone(&g.ours, id) {
			g.checkEmpty(id)
		}
	}
	var moved []journal.NodeID
	for _, k := range g.order {
		if e := g.taken[k]; e.Kind == journal.EntryNode && g.known(e.Node) && g.isDir(e.Node) {
			moved = append(moved, e.Node)
		}
	}
	if len(moved) > 0 {
		g.checkLoops(moved)
	}
	return nil
}

// checkEmpty refuses the removal of a directory in which something would be
// left.
func (g *merger) checkEmpty(id journal.NodeID) {
	for name, e := range g.o.Entries[id] {
		k := entryKey{id, name}
		if now, ok := g.taken[k]; ok {
			e = now
		}
		if e.Kind == journal.EntryNode {
			g.conflict(k, "its directory was deleted in the fork, and the workspace has something in it", []journal.NodeID{id}, []journal.NodeID{e.Node})
		}
	}
}

// checkLoops refuses moves that cut directories off from the root: one side
// moves a into b, the other b into a.
func (g *merger) checkLoops(moved []journal.NodeID) {
	parent := map[journal.NodeID]journal.NodeID{}
	for p, entries := range g.o.Entries {
		for name, e := range entries {
			if _, changed := g.taken[entryKey{p, name}]; !changed && e.Kind == journal.EntryNode && g.isDir(e.Node) {
				parent[e.Node] = p
			}
		}
	}
	for k, e := range g.taken {
		if e.Kind == journal.EntryNode {
			parent[e.Node] = k.parent
		}
	}
	for _, id := range moved {
		at := id
		for steps := 0; at != journal.RootID; steps++ {
			up, ok := parent[at]
			if !ok {
				break // a directory of the lower that no side has moved
			}
			if at = up; at == id || steps > len(parent) {
				g.clash(id, "moved into a directory that the workspace moved into it")
				break
			}
		}
	}
}
