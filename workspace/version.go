package workspace

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
)

// fileVersion is a regular file's state at some point.
type fileVersion struct {
	id      journal.NodeID
	node    *journal.Node    // nil: there was no such node, or the lower shows
	content *journal.Content // nil: none of its own
	origin  journal.Origin   // of the lower part, while node is nil
}

// historyOf returns the records that concern a node up to one, ascending.
func (w *Workspace) historyOf(id journal.NodeID, last journal.Seq) ([]*journal.Record, error) {
	seqs, err := w.store.SeqsOfNode(id)
	if err != nil {
		return nil, err
	}
	n, _ := slices.BinarySearch(seqs, last+1)
	recs := make([]*journal.Record, 0, n)
	err = w.store.Pick(seqs[:n], func(r *journal.Record) error {
		recs = append(recs, only(r, id))
		return nil
	})
	return recs, err
}

// only returns a record without the changes of large groups that are about
// other nodes: an undo of thousands of files is kept for each of them.
func only(r *journal.Record, id journal.NodeID) *journal.Record {
	const many = 64
	if len(r.Changes) < many {
		return r
	}
	c := *r
	c.Changes, c.Data = nil, nil
	for _, ch := range r.Changes {
		if slices.Contains(changedNodes(&ch), id) {
			c.Changes = append(c.Changes, ch)
		}
	}
	return &c
}

// back takes one record back.
func (v *fileVersion) back(r *journal.Record) {
	for _, c := range slices.Backward(r.Changes) {
		switch {
		case c.Node != nil && c.Node.ID == v.id:
			if c.Node.Before == nil && c.Node.After != nil {
				v.origin = c.Node.After.Origin
			}
			v.node = c.Node.Before
		case c.Content != nil && c.Content.ID == v.id:
			if v.content == nil {
				v.content = &journal.Content{}
			}
			v.content.Splice(c.Content.Off, c.Content.Len, c.Content.Before)
		}
	}
}

func (v *fileVersion) clone() *fileVersion {
	c := *v
	if c.content != nil {
		c.content = c.content.Clone()
	}
	return &c
}

// own reports whether the bytes are the workspace's own.
func (v *fileVersion) own() bool { return v.node != nil && v.node.OwnContent }

// made reports whether the version is before the file was made in the
// workspace.
func (v *fileVersion) made() bool { return v.node == nil && v.origin.Source == 0 }

// writes reports whether a record changed the bytes of the version behind it.
func writes(r *journal.Record, v *fileVersion) bool {
	for _, c := range r.Changes {
		switch {
		case c.Content != nil && c.Content.ID == v.id && c.Content.Len > 0:
			return true
		case c.Node != nil && c.Node.ID == v.id:
			b, a := c.Node.Before, c.Node.After
			if ownBytes(a) != ownBytes(b) || ownBytes(a) && a.Attr.Size != b.Attr.Size {
				return true
			}
		}
	}
	return false
}

func ownBytes(n *journal.Node) bool { return n != nil && n.OwnContent }

// same returns the oldest of the records, ascending and the newest of them
// last, before which the file had the bytes that it has behind the newest; -1
// if it never had.
func (v *fileVersion) same(recs []*journal.Record) int {
	found, old := -1, v.clone()
	for i, r := range slices.Backward(recs) {
		old.back(r)
		if v.equal(old) {
			found = i
			break
		}
	}
	return found
}

// equal reports whether both versions have the same bytes, as far as that shows
// without reading them.
func (v *fileVersion) equal(o *fileVersion) bool {
	if !v.own() || !o.own() {
		return v.own() == o.own() && v.made() == o.made()
	}
	return v.node.Attr.Size == o.node.Attr.Size && v.bytes().Equal(o.bytes())
}

func (v *fileVersion) bytes() *journal.Content {
	if v.content == nil {
		return &journal.Content{}
	}
	return v.content
}

// textOf reads a version; nil if it is not text or can't be read any more.
func (w *Workspace) textOf(v *fileVersion) []byte {
	s := journal.NewState()
	if s.Nodes[v.id] = v.node; v.node == nil {
		s.Nodes[v.id] = &journal.Node{Attr: journal.Attr{Mode: unix.S_IFREG}, Origin: v.origin}
	}
	if v.content != nil {
		s.Contents[v.id] = v.content.Clone()
	}
	it, err := w.viewOf(s).ByID(v.id, "")
	if err != nil {
		return nil
	}
	text, err := readText(&it)
	if err != nil {
		return nil
	}
	return text
}

// replaced is a file that lost its name to another.
type replaced struct {
	id     journal.NodeID // 0: not known, look the name up
	parent journal.NodeID
	name   string
	by     journal.Seq
}

// replacedBy returns what a record put the node in the place of, nil if the
// record gave the node no name.
func replacedBy(r *journal.Record, id journal.NodeID) *replaced {
	for _, c := range r.Changes {
		e := c.Entry
		if e == nil || e.After.Kind != journal.EntryNode || e.After.Node != id || e.Before.Node == id {
			continue
		}
		old := &replaced{id: e.Before.Node, parent: e.Parent, name: e.Name, by: r.Seq}
		if old.id == 0 {
			old.id = victimOf(r, id)
		}
		return old
	}
	return nil
}

// victimOf returns the file that lost a link by a record.
func victimOf(r *journal.Record, id journal.NodeID) journal.NodeID {
	for _, c := range r.Changes {
		n := c.Node
		if n == nil || n.ID == id || n.After == nil || !isRegular(n.After.Attr.Mode) {
			continue
		}
		if n.After.Attr.Nlink == 0 || n.Before != nil && n.Before.Own && n.After.Attr.Nlink < n.Before.Attr.Nlink {
			return n.ID
		}
	}
	return 0
}

// lookBack bounds how many records of a busy directory are searched for the
// file that had a name before.
const lookBack = 4096

// before returns the version of what was replaced, nil if nothing was, and the
// last record that belongs to it. A file that was put in the place of another
// counts before one that only got the name of another that was removed.
func (w *Workspace) before(places []*replaced) (*fileVersion, journal.Seq, error) {
	for _, old := range places {
		if old.id != 0 {
			return w.versionBefore(old)
		}
	}
	for _, old := range places {
		if err := w.findReplaced(old); err != nil {
			return nil, 0, err
		}
		if old.id != 0 {
			return w.versionBefore(old)
		}
	}
	return nil, 0, nil
}

// versionBefore returns the version of a file that was replaced.
func (w *Workspace) versionBefore(old *replaced) (*fileVersion, journal.Seq, error) {
	node, content, err := w.store.LookupNode(old.id)
	if err != nil {
		return nil, 0, err
	}
	v := &fileVersion{id: old.id, node: node, content: content}
	seqs, err := w.store.SeqsOfNode(old.id)
	if err != nil {
		return nil, 0, err
	}
	i, _ := slices.BinarySearch(seqs, old.by)
	var later []*journal.Record
	err = w.store.Pick(seqs[i:], func(r *journal.Record) error {
		later = append(later, only(r, old.id))
		return nil
	})
	for _, r := range slices.Backward(later) {
		v.back(r)
	}
	if v.node == nil && v.origin.Source == 0 || v.node != nil && !isRegular(v.node.Attr.Mode) {
		return nil, 0, err
	}
	return v, old.by - 1, err
}

// findReplaced finds the file that had the name last, among the newest records
// of the directory.
func (w *Workspace) findReplaced(old *replaced) error {
	seqs, err := w.store.SeqsOfNode(old.parent)
	if err != nil {
		return err
	}
	i, _ := slices.BinarySearch(seqs, old.by)
	return w.store.Pick(seqs[max(0, i-lookBack):i], func(r *journal.Record) error {
		for _, c := range r.Changes {
			if e := c.Entry; e != nil && e.Parent == old.parent && e.Name == old.name && e.Before.Kind == journal.EntryNode {
				old.id = e.Before.Node
			}
		}
		return nil
	})
}
