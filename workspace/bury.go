package workspace

import (
	"slices"

	"github.com/winkfs/winkfs/journal"
)

// bury leaves files that a change of history takes away as an unlink does:
// without a name, but with their state and their bytes. A process that has one
// open goes on with it, and if the change is taken back, what was written
// meanwhile is there.
func bury(changes []journal.Change) []journal.Change {
	dead := map[journal.NodeID]bool{}
	out := slices.Clone(changes)
	for i, c := range out {
		if c.Node == nil || c.Node.After != nil || c.Node.Before == nil || c.Node.Before.Origin.Source != 0 {
			continue
		}
		gone := c.Node.Before.Clone()
		gone.Attr.Nlink = 0
		dead[c.Node.ID] = true
		out[i].Node = &journal.NodeChange{ID: c.Node.ID, Before: c.Node.Before, After: gone}
	}
	return slices.DeleteFunc(out, func(c journal.Change) bool { return c.Content != nil && dead[c.Content.ID] })
}
