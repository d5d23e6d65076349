package journal

import (
	"maps"
	"slices"
)

const (
	fieldsAll   = fieldEnd - 1
	fieldsTimes = fieldAtime | fieldMtime | fieldCtime
)

// fieldNames are the names of a node's fields by bit, for conflicts.
var fieldNames = []string{"mode", "uid", "gid", "nlink", "rdev", "size", "atime", "mtime", "ctime", "btime", "flags",
	"origin", "origin", "origin", "origin", "origin", "origin", "origin", "target", "xattrs"}

// soft returns the fields of a node that never conflict.
func soft(n *Node) uint64 {
	if isDir(n) {
		return fieldsTimes
	}
	return fieldCtime
}

// allNodes finds the result for each node that the subset changed.
func (u *undo) allNodes() {
	for _, id := range slices.Sorted(maps.Keys(u.sp.nodes)) {
		u.node(id, u.sp.nodes[id])
	}
}

func (u *undo) node(id NodeID, cs []*NodeChange) {
	first, last, now := cs[0].Before, cs[len(cs)-1].After, u.st.Nodes[id]
	if first == nil && last == nil && gapless(cs) {
		if now != nil {
			u.conflict(Conflict{Node: id, Reason: reasonSince})
		}
		return
	}
	switch {
	case nilWithin(cs):
		u.nodeWhole(id, cs, now)
	case first == nil:
		u.nodeMade(id, cs, now)
	case last == nil:
		u.nodeRemoved(id, cs, now)
	case now == nil:
		u.conflict(Conflict{Node: id, Reason: reasonGone})
	default:
		u.nodeFields(id, cs, now, now)
	}
}

// gapless reports whether each change begins where the one before ended.
func gapless(cs []*NodeChange) bool {
	for i := range cs[1:] {
		if !sameNode(cs[i].After, cs[i+1].Before) {
			return false
		}
	}
	return true
}

// nilWithin reports whether the node was gone between two changes.
func nilWithin(cs []*NodeChange) bool {
	for i := range cs[1:] {
		if cs[i].After == nil || cs[i+1].Before == nil {
			return true
		}
	}
	return false
}

// nodeWhole takes the node back as a whole, if nobody else changed it.
func (u *undo) nodeWhole(id NodeID, cs []*NodeChange, now *Node) {
	first, last := cs[0].Before, cs[len(cs)-1].After
	if !gapless(cs) {
		u.conflict(Conflict{Node: id, Reason: reasonWithin})
		return
	}
	if !sameNode(now, last) {
		u.conflict(Conflict{Node: id, Reason: reasonSince})
		return
	}
	if !sameNode(now, first) {
		u.set(id, first)
	}
}

// nodeMade takes back the creation or the copy-up of a node.
func (u *undo) nodeMade(id NodeID, cs []*NodeChange, now *Node) {
	last := cs[len(cs)-1].After
	if now == nil {
		return // gone already; the name that led to it says who removed it
	}
	if last.Origin.Source != 0 {
		u.copyUp(id, cs, now)
		return
	}
	may := soft(now)
	if isDir(now) {
		may |= fieldNlink
	}
	if gaps := gapFields(cs) &^ may; gaps != 0 {
		u.fieldConflicts(id, gaps, reasonWithin)
		return
	}
	if d := nodeDiff(now, last) &^ may; d != 0 {
		u.fieldConflicts(id, d, reasonSince)
		return
	}
	if name, ok := u.others(id); ok {
		u.conflict(Conflict{Node: id, Parent: id, Name: name, Reason: reasonInUse})
		return
	}
	u.set(id, nil)
}

// copyUp takes back the first change of a lower node. If nobody else needs the
// upper state it goes; else the fields go back to what the lower had.
func (u *undo) copyUp(id NodeID, cs []*NodeChange, now *Node) {
	_, needed := u.others(id)
	last := cs[len(cs)-1].After
	if !needed && gapFields(cs) == 0 && nodeDiff(now, last)&^fieldCtime == 0 {
		u.set(id, nil)
		return
	}
	u.kept[id] = true
	if unknownBefore(u.sp.ops[cs[0]]) {
		u.conflict(Conflict{Node: id, Reason: reasonBase})
		return
	}
	base := *cs[0]
	base.Before = lowerNode(base.After)
	u.nodeFields(id, append([]*NodeChange{&base}, cs[1:]...), now, now)
}

// unknownBefore reports whether the operation may set attributes of which the
// origin's fingerprint doesn't know the value before.
func unknownBefore(op Op) bool {
	switch op {
	case OpChown, OpUtimens, OpSetattr, OpSetxattr, OpRemovexattr, OpUndo, OpRedo, OpRollback, OpDiscard, OpApply:
		return true
	}
	return false
}

// lowerNode returns the node as it was in the lower before its copy-up, as far
// as its origin's fingerprint tells.
func lowerNode(n *Node) *Node {
	l := n.Clone()
	l.OwnContent = false
	l.Opaque = false
	l.Attr.Mode = l.Attr.Mode&0o170000 | n.Origin.Mode&0o7777
	if !isDir(n) {
		l.Attr.Size = n.Origin.Size
	}
	l.Attr.Mtime, l.Attr.Ctime = n.Origin.Mtime, n.Origin.Ctime
	return l
}

// nodeRemoved brings a removed node back.
func (u *undo) nodeRemoved(id NodeID, cs []*NodeChange, now *Node) {
	if now != nil {
		u.conflict(Conflict{Node: id, Reason: reasonSince})
		return
	}
	i := len(cs) - 1
	u.nodeFields(id, cs[:i], cs[i].Before, nil)
}

// others returns a name that would be left in a directory.
func (u *undo) others(id NodeID) (string, bool) {
	for name, e := range u.st.Entries[id] {
		if e.Kind == EntryNode && !u.gone[entryKey{id, name}] {
			return name, true
		}
	}
	return "", false
}

// nodeFields sets the fields that the changes changed back to what they were,
// starting from the node now, and makes that the result if it differs from
// the node in the state.
func (u *undo) nodeFields(id NodeID, cs []*NodeChange, now, state *Node) {
	f := foldFields(cs)
	if f.alternates&^soft(now) != 0 {
		u.fieldConflicts(id, f.alternates&^soft(now), reasonWithin)
		return
	}
	set := f.touched &^ fieldNlink &^ nodeDiff(&f.last, now)
	if bad := f.touched &^ fieldNlink &^ set &^ soft(now) & nodeDiff(&f.want, &f.last); bad != 0 {
		u.fieldConflicts(id, bad, reasonSince)
		return
	}
	links := int64(now.Attr.Nlink) - f.links
	if links < 0 {
		u.fieldConflicts(id, fieldNlink, reasonSince)
		return
	}
	n := now.Clone()
	copyFields(n, &f.want, set)
	n.Attr.Nlink = uint32(links)
	if !sameNode(n, state) {
		u.set(id, n)
	}
}

func (u *undo) set(id NodeID, n *Node) { u.nodes[id] = n }

func (u *undo) fieldConflicts(id NodeID, fields uint64, reason string) {
	said := ""
	for i, name := range fieldNames {
		if fields&(1<<i) != 0 && name != said {
			u.conflict(Conflict{Node: id, Field: name, Reason: reason})
			said = name
		}
	}
}
