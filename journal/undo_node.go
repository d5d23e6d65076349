package journal

import (
	"cmp"
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

// soft returns the fields of a node that never conflict. The mtime of a file
// whose bytes the subset changed stands for the bytes, too.
func (u *undo) soft(id NodeID, cs []*NodeChange, now *Node) uint64 {
	var last *Node
	if len(cs) > 0 {
		last = cs[len(cs)-1].After
	}
	switch {
	case isDir(now), !u.wrote(id, cs):
		return fieldsTimes
	case last != nil && last.Attr.Mtime == now.Attr.Mtime, u.o.Untouched == nil, !u.o.Untouched(id):
		return fieldAtime | fieldCtime
	}
	return fieldsTimes
}

// wrote reports whether the subset changed the file's bytes.
func (u *undo) wrote(id NodeID, cs []*NodeChange) bool {
	if len(u.sp.contents[id]) > 0 {
		return true
	}
	for _, c := range cs {
		if c.Before != nil && c.After != nil && nodeDiff(c.Before, c.After)&fieldSize != 0 && c.Before.Own {
			return true
		}
	}
	return false
}

// allNodes finds the result for each node that the subset changed.
func (u *undo) allNodes() {
	for _, id := range slices.Sorted(maps.Keys(u.sp.nodes)) {
		u.node(id, u.sp.nodes[id])
	}
}

func (u *undo) node(id NodeID, cs []*NodeChange) {
	first, last, now := cs[0].Before, cs[len(cs)-1].After, u.st.Nodes[id]
	cs = u.levelled(id, cs)
	if first == nil && last == nil && gapless(cs) {
		if now != nil {
			u.conflict(Conflict{Node: id, Reason: reasonSince})
		}
		return
	}
	switch {
	case nilWithin(cs):
		u.nodeWhole(id, cs, now)
	case owned(cs[len(cs)-1].Before) && isPlace(last):
		u.nodeRemoved(id, cs, now)
	case !owned(first) && owned(last) && last.Origin.Source != 0:
		u.copyUp(id, cs, now)
	case owned(first) && last != nil && isPlace(now):
		return // an earlier undo gave it back to the lower
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

// isPlace reports whether a state only says where a lower node is.
func isPlace(n *Node) bool { return n != nil && !n.Own && n.Origin.Source != 0 }

// levelled returns the changes with the lower's attributes for a place without
// any where others gave the node attributes, or took them, between two changes:
// only so is known what they changed.
func (u *undo) levelled(id NodeID, cs []*NodeChange) []*NodeChange {
	out := slices.Clone(cs)
	for i := range out[1:] {
		a, b := out[i], out[i+1]
		switch {
		case isPlace(a.After) && owned(b.Before):
			out[i] = u.replaced(a, a.Before, cmp.Or(u.lower(id, b.Before), a.After))
		case owned(a.After) && isPlace(b.Before):
			out[i+1] = u.replaced(b, cmp.Or(u.lower(id, a.After), b.Before), b.After)
		}
	}
	return out
}

// replaced returns a change of the same record with other values.
func (u *undo) replaced(c *NodeChange, before, after *Node) *NodeChange {
	r := &NodeChange{ID: c.ID, Before: before, After: after}
	u.sp.recs[r] = u.sp.recs[c]
	return r
}

// owned reports whether a state has attributes of its own.
func owned(n *Node) bool { return n != nil && n.Own }

// nodeMade takes back the creation or the copy-up of a node.
func (u *undo) nodeMade(id NodeID, cs []*NodeChange, now *Node) {
	last := cs[len(cs)-1].After
	if now == nil || now.Own && now.Attr.Nlink == 0 && last.Attr.Nlink > 0 {
		return // gone already
	}
	if last.Origin.Source != 0 {
		u.copyUp(id, cs, now)
		return
	}
	may := u.soft(id, cs, now)
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
// upper state it goes back to what it was: none, or only a place; else the
// fields go back to what the lower had.
func (u *undo) copyUp(id NodeID, cs []*NodeChange, now *Node) {
	if now == nil {
		return // the lower shows already
	}
	first, last := cs[0].Before, cs[len(cs)-1].After
	_, needed := u.others(id)
	if (!needed || first != nil) && gapFields(cs)&^fieldsTimes == 0 && nodeDiff(now, last)&^u.soft(id, cs, now) == 0 {
		u.set(id, first)
		return
	}
	u.kept[id] = true
	if !owned(last) {
		return // it only holds its place
	}
	before, rest := u.copiedUp(id, cs)
	if before == nil {
		u.conflict(Conflict{Node: id, Reason: reasonBase})
		return
	}
	base := &NodeChange{ID: id, Before: before, After: rest[0].After}
	u.nodeFields(id, append([]*NodeChange{base}, rest[1:]...), now, now)
}

// copiedUp returns the node as it was right after its copy-up and before the
// first change, nil if that is not known, and the changes from that one on.
// Operations that set attributes of which the origin's fingerprint doesn't
// know the value before are recorded as two changes: the copy-up, and theirs.
func (u *undo) copiedUp(id NodeID, cs []*NodeChange) (*Node, []*NodeChange) {
	if len(cs) > 1 && u.sp.recs[cs[0]] == u.sp.recs[cs[1]] {
		n := cs[0].After.Clone()
		n.OwnContent, n.Opaque = false, false
		return n, cs[1:]
	}
	if !unknownBefore(u.sp.recs[cs[0]].Op) {
		n := lowerNode(cs[0].After)
		if u.sp.recs[cs[0]].Op == OpUnlink && !isDir(n) {
			n.Attr.Nlink++
		}
		return n, cs
	}
	return u.lower(id, cs[0].After), cs
}

// lower asks what a lower node is after its copy-up, with the origin of n.
func (u *undo) lower(id NodeID, n *Node) *Node {
	if u.o.Lower == nil || n.Origin.Source == 0 {
		return nil
	}
	l := u.o.Lower(id, n)
	if l == nil {
		return nil
	}
	l = l.Clone()
	l.Own, l.OwnContent, l.Opaque, l.Origin = true, false, false, n.Origin
	l.Attr.Btime = n.Attr.Btime
	return l
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

// nodeRemoved brings a removed node, or the attributes that one had, back. A
// lower node is not gone without upper state: then what others have set since
// stays.
func (u *undo) nodeRemoved(id NodeID, cs []*NodeChange, now *Node) {
	i := len(cs) - 1
	if now == nil || isPlace(now) {
		u.nodeFields(id, cs[:i], cs[i].Before, now)
		return
	}
	var low *Node
	if owned(now) && owned(cs[i].Before) {
		low = u.lower(id, cs[i].Before)
	}
	if low == nil {
		u.conflict(Conflict{Node: id, Reason: reasonSince})
		return
	}
	back := &NodeChange{ID: id, Before: cs[i].Before, After: low}
	u.nodeFields(id, append(slices.Clone(cs[:i]), back), now, now)
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
	soft := u.soft(id, cs, now)
	if f.alternates&^soft != 0 {
		u.fieldConflicts(id, f.alternates&^soft, reasonWithin)
		return
	}
	set := f.touched &^ fieldNlink &^ nodeDiff(&f.last, now)
	fixed := f.touched &^ fieldNlink &^ set
	if bad := fixed &^ soft & nodeDiff(&f.want, &f.last) & nodeDiff(&f.want, now); bad != 0 {
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

// Sets reports whether the change sets the field, as a Conflict names it.
func (c *NodeChange) Sets(field string) bool {
	before, after := c.Before, c.After
	if before == nil {
		before = &zeroNode
	}
	if after == nil {
		after = &zeroNode
	}
	d := nodeDiff(before, after)
	for i, name := range fieldNames {
		if name == field && d&(1<<i) != 0 {
			return true
		}
	}
	return false
}
