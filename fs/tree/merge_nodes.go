package tree

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
)

// nodes decides what becomes of each node that theirs changed.
func (g *merger) nodes() error {
	for _, id := range g.changedNodes() {
		if g.handled[id] || g.gone(&g.ours, id) {
			continue // what theirs did to it is in the text, or a conflict
		}
		if err := g.node(id); err != nil {
			return err
		}
	}
	for id, t := range g.texts {
		n, err := g.textNode(id, t)
		if err != nil {
			return err
		}
		g.after[id] = n
		g.contents = append(g.contents, MergedContent{Change: g.wholeContent(id), Text: t.text})
	}
	// Directories of ours in which theirs' names come and go without theirs
	// having a state for them, because both made them.
	for id := range g.links {
		if _, done := g.after[id]; !done && g.links[id] != 0 && g.o.Nodes[id] != nil && g.o.Nodes[id].Own {
			n := g.o.Nodes[id].Clone()
			g.relink(n, id)
			g.after[id] = n
		}
	}
	return g.holdAll()
}

// holdAll pins what has a state now and had none.
func (g *merger) holdAll() error {
	for _, id := range slices.Sorted(maps.Keys(g.after)) {
		if id >= journal.CreatedBit || g.after[id] == nil || g.o.Nodes[id] != nil {
			continue
		}
		if err := g.hold(id); err != nil {
			return err
		}
	}
	return nil
}

func (g *merger) node(id journal.NodeID) error {
	b, t, o := g.b.Nodes[id], g.t.Nodes[id], g.o.Nodes[id]
	if _, done := g.after[id]; done || o == nil && id >= journal.CreatedBit {
		return nil // taken over whole, or without a name on either side
	}
	if t == nil && id >= journal.CreatedBit {
		g.drop(id, o)
		return nil
	}
	if journal.SameNode(o, b) && g.texts[id] == nil {
		if t != nil {
			g.after[id] = t
		} else if err := g.giveBack(id, o); err != nil {
			return err
		}
		if g.contentChanged(&g.theirs, id) {
			g.replaceContent(id)
		}
		return nil
	}
	theirsBack, oursBack := g.tookBack(id, t), g.tookBack(id, o)
	switch {
	case theirsBack && oursBack:
		return nil
	case theirsBack || oursBack:
		low, err := g.copied(id)
		if err != nil {
			return fmt.Errorf("read the lower's %q: %w", g.path(g.nameOf(id)), err)
		}
		if theirsBack {
			t = low
		} else {
			o = low
		}
	case t == nil || !t.Own:
		return nil // theirs only holds it in place
	case o == nil || !o.Own:
		g.after[id] = t
		if g.contentChanged(&g.theirs, id) {
			g.replaceContent(id)
		}
		return nil
	}
	return g.fields(id, t, o)
}

// drop removes a node that theirs has no state of any more, because it took the
// creation back or because nobody uses the removed node.
func (g *merger) drop(id journal.NodeID, o *journal.Node) {
	if !g.gone(&g.theirs, id) {
		return
	}
	n := o.Clone()
	n.Attr.Nlink = 0
	g.after[id] = n
}

// fields merges the attributes of a node that both have changed.
func (g *merger) fields(id journal.NodeID, t, o *journal.Node) error {
	bt, err := g.baseNode(&g.theirs, id)
	if err != nil {
		return err
	}
	bo, err := g.baseNode(&g.ours, id)
	if err != nil {
		return err
	}
	n := o.Clone()
	for _, f := range []struct {
		name           string
		was, want, had uint32
		now            uint32
		to             *uint32
	}{
		{"mode", bt.Attr.Mode, t.Attr.Mode, bo.Attr.Mode, o.Attr.Mode, &n.Attr.Mode},
		{"owner", bt.Attr.UID, t.Attr.UID, bo.Attr.UID, o.Attr.UID, &n.Attr.UID},
		{"flags", bt.Flags, t.Flags, bo.Flags, o.Flags, &n.Flags},
		{"group", bt.Attr.GID, t.Attr.GID, bo.Attr.GID, o.Attr.GID, &n.Attr.GID},
	} {
		switch {
		case f.want == f.was || f.want == f.now:
		case f.now == f.had:
			*f.to = f.want
		default:
			g.clash(id, f.name+" changed in both")
		}
	}
	n.Xattrs = g.xattrs(id, bt.Xattrs, t.Xattrs, bo.Xattrs, o.Xattrs)
	n.Attr.Atime, n.Attr.Ctime = max(o.Attr.Atime, t.Attr.Atime), max(o.Attr.Ctime, t.Attr.Ctime)
	switch {
	case t.Attr.Mtime == bt.Attr.Mtime:
	case o.Attr.Mtime == bo.Attr.Mtime:
		n.Attr.Mtime = t.Attr.Mtime
	default:
		n.Attr.Mtime = max(o.Attr.Mtime, t.Attr.Mtime)
	}
	if b := g.b.Nodes[id]; b != nil {
		if t.Opaque != b.Opaque {
			n.Opaque = t.Opaque
		}
		if t.Origin != b.Origin && o.Origin == b.Origin {
			n.Origin = t.Origin
		}
	}
	g.relink(n, id)
	if err := g.bytes(id, n, t); err != nil {
		return err
	}
	if raw := g.o.Nodes[id]; (raw == nil || !raw.Own) && g.texts[id] == nil {
		n.Attr.Atime, n.Attr.Ctime = o.Attr.Atime, o.Attr.Ctime
		if journal.SameNode(n, o) {
			return nil // it goes on following the lower
		}
	}
	g.after[id] = n
	return nil
}

// relink corrects the link count by the names that were taken.
func (g *merger) relink(n *journal.Node, id journal.NodeID) {
	n.Attr.Nlink = uint32(max(0, int(n.Attr.Nlink)+g.links[id]))
	if g.isDir(id) && g.gone(&g.theirs, id) {
		n.Attr.Nlink = 0
	}
}

// clash notes a conflict about a node.
func (g *merger) clash(id journal.NodeID, why string) {
	g.conflict(g.nameOf(id), why, []journal.NodeID{id}, []journal.NodeID{id})
}

func (g *merger) xattrs(id journal.NodeID, was, want, had, now map[string]string) map[string]string {
	out := maps.Clone(now)
	names := maps.Clone(want)
	if names == nil {
		names = map[string]string{}
	}
	maps.Copy(names, was)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		v0, ok0 := was[name]
		v1, ok1 := want[name]
		if v0 == v1 && ok0 == ok1 {
			continue
		}
		had, okHad := had[name]
		v2, ok2 := now[name]
		switch {
		case v1 == v2 && ok1 == ok2:
		case had != v2 || okHad != ok2:
			g.clash(id, "attribute "+name+" changed in both")
		case ok1:
			if out == nil {
				out = map[string]string{}
			}
			out[name] = v1
		default:
			delete(out, name)
		}
	}
	return out
}

// bytes merges the contents of a file that is one node on both sides.
func (g *merger) bytes(id journal.NodeID, n, t *journal.Node) error {
	if g.typ(id) != unix.S_IFREG {
		return nil
	}
	theirsChanged, err := g.bytesChanged(&g.theirs, id)
	if !theirsChanged || err != nil {
		return err
	}
	oursChanged, err := g.bytesChanged(&g.ours, id)
	if err != nil {
		return err
	}
	if !oursChanged {
		n.OwnContent, n.Attr.Size, n.Attr.Mtime = t.OwnContent, t.Attr.Size, t.Attr.Mtime
		g.replaceContent(id)
		return nil
	}
	ours, err := g.item(g.Ours, id)
	if err != nil {
		return err
	}
	theirs, err := g.item(g.Theirs, id)
	if err != nil {
		return err
	}
	if alike, err := sameBytes(ours, theirs); alike || err != nil {
		return err
	}
	m, why, err := g.mergeText(id, id, id)
	if err != nil {
		return err
	}
	if m == nil {
		g.clash(id, why)
		return nil
	}
	m.mode = 0 // merged with the other attributes
	g.setText(g.nameOf(id), id, m)
	return nil
}

// textNode returns the state of the node that gets a merged text.
func (g *merger) textNode(id journal.NodeID, t *mergedText) (*journal.Node, error) {
	n := g.after[id]
	if n == nil {
		n = g.o.Nodes[id]
	}
	if n == nil || !n.Own {
		var err error
		if n, err = g.copied(id); err != nil {
			return nil, err
		}
	}
	n = n.Clone()
	n.OwnContent, n.Attr.Size = true, uint64(len(t.text))
	if t.mode != 0 {
		n.Attr.Mode = t.mode
	}
	n.Attr.Mtime = journal.Timespec(time.Now().UnixNano())
	n.Attr.Ctime = n.Attr.Mtime
	return n, nil
}

// really reports whether a side changed more of a node than times, links and
// where it is.
func (g *merger) really(s *side, id journal.NodeID) (bool, error) {
	n := s.state.Nodes[id]
	if g.tookBack(id, n) {
		low, err := g.copied(id)
		if err != nil {
			return false, err
		}
		n = low
	}
	if n == nil || !n.Own || journal.SameNode(n, g.b.Nodes[id]) {
		return false, nil
	}
	b, err := g.baseNode(s, id)
	if err != nil {
		return false, err
	}
	x, y := b.Attr, n.Attr
	if x.Mode != y.Mode || !sameID(x.UID, y.UID) || !sameID(x.GID, y.GID) || !maps.Equal(b.Xattrs, n.Xattrs) {
		return true, nil
	}
	if g.typ(id) != unix.S_IFREG {
		return false, nil
	}
	return g.bytesChanged(s, id)
}

// bytesChanged is contentChanged for a file of which it matters that the bytes
// differ: a merge stores what it brings over in another place.
func (g *merger) bytesChanged(s *side, id journal.NodeID) (bool, error) {
	if !g.contentChanged(s, id) {
		return false, nil
	}
	base, err := g.item(g.Base, id)
	if err != nil {
		return false, err
	}
	now, err := g.item(s.view, id)
	if err != nil {
		return false, err
	}
	same, err := sameBytes(base, now)
	return !same, err
}

// baseNode returns the attributes that a node had in base: those of the lower
// as it was when the side first changed it, as far as its state tells.
func (g *merger) baseNode(s *side, id journal.NodeID) (*journal.Node, error) {
	if b := g.b.Nodes[id]; b != nil && b.Own {
		return b, nil
	}
	b, err := g.lowerNode(id)
	if err != nil {
		return nil, err
	}
	if n := s.state.Nodes[id]; n != nil && n.Origin.Mode != 0 {
		b = b.Clone()
		b.Attr.Mode, b.Attr.Size, b.Attr.Mtime = n.Origin.Mode, n.Origin.Size, n.Origin.Mtime
	}
	return b, nil
}

// lowerNode returns the lower's attributes as a node's state.
func (g *merger) lowerNode(id journal.NodeID) (*journal.Node, error) {
	if b := g.bases[id]; b != nil {
		return b, nil
	}
	b := &journal.Node{}
	for _, s := range []*journal.State{g.t, g.o} {
		if n := s.Nodes[id]; n != nil {
			b = n.Clone() // where the host has removed the file
		}
	}
	if f, ok := g.anyFound(id); ok {
		st, err := f.lowerStat()
		if err != nil && !isGone(err) {
			return nil, err
		}
		if err == nil {
			b.Attr = lowerAttr(&st)
			if b.Xattrs, err = lowerXattrs(f.low); err != nil && f.mode != unix.S_IFLNK {
				return nil, err
			}
		}
	}
	g.bases[id] = b
	return b, nil
}

// contentChanged reports whether a side gave a file other bytes than base.
func (g *merger) contentChanged(s *side, id journal.NodeID) bool {
	b, n := g.b.Nodes[id], s.state.Nodes[id]
	had, has := b != nil && b.OwnContent, n != nil && n.OwnContent
	if !had || !has {
		return had != has
	}
	return b.Attr.Size != n.Attr.Size || !slices.Equal(extents(g.b.Contents[id]), extents(s.state.Contents[id]))
}

// replaceContent takes over theirs' content of a node.
func (g *merger) replaceContent(id journal.NodeID) {
	c := g.contentChange(id, extents(g.t.Contents[id]))
	if c.Len > 0 {
		g.contents = append(g.contents, MergedContent{Change: c})
	}
}

// wholeContent returns the change of all of ours' content to nothing.
func (g *merger) wholeContent(id journal.NodeID) journal.ContentChange {
	return g.contentChange(id, nil)
}

// contentChange returns the change from ours' content to the extents, without
// what both begin and end with.
func (g *merger) contentChange(id journal.NodeID, after []journal.Extent) journal.ContentChange {
	before := extents(g.o.Contents[id])
	for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
		before, after = before[1:], after[1:]
	}
	for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	c := journal.ContentChange{ID: id, Before: before, After: after}
	end := uint64(0)
	c.Off = ^uint64(0)
	for _, es := range [][]journal.Extent{before, after} {
		if len(es) > 0 {
			c.Off, end = min(c.Off, es[0].Off), max(end, es[len(es)-1].End())
		}
	}
	if end == 0 {
		c.Off = 0
		return c
	}
	c.Len = end - c.Off
	return c
}
