package tree

import (
	"maps"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/lower"
	"github.com/winkfs/winkfs/journal"
)

// tx is one operation on its way into the journal: the changes it makes and
// their values before. Nothing of it shows before publish. It lives while
// t.order is held, so no other operation changes the state meanwhile; its
// methods are called under t.mu.
type tx struct {
	t     *Tree
	r     *Request
	now   journal.Timespec
	rec   journal.Record
	edits []edit
	then  func() // run under t.mu once the changes are made: the node table follows
}

// edit is a node's upper state before and after. copied is the state between
// the copy-up and the operation, where the record keeps it.
type edit struct {
	n             *node
	before, after *journal.Node
	copied        *journal.Node
}

// facts is what copy-up of a node's attributes needs from the lower.
type facts struct {
	n      *node
	st     lower.Stat
	xattrs map[string]string
	target string // of a symbolic link
}

// mutate runs one operation. prepare looks at what the operation is about and
// returns the nodes whose attributes fn changes; it and the reading of what
// their copy-up needs are done without the lock. fn then validates and collects
// changes under t.mu, and they are journaled and made. If fn finds that the
// world has changed since prepare (errRetry), all is done again.
func (t *Tree) mutate(r *Request, op journal.Op, inline []byte, prepare func() ([]*node, error), fn func(*tx) error) error {
	if t.readOnly {
		return ErrReadOnly
	}
	actor := t.actors.Actor(r.TID, r.UID)
	for {
		touched, err := prepare()
		if err == errRetry {
			continue
		}
		if err != nil {
			return err
		}
		var fs [4]facts
		list, err := t.gather(fs[:0], touched)
		if err != nil {
			return err
		}
		err = t.attempt(r, op, actor, inline, fn, list)
		if err != errRetry {
			return err
		}
	}
}

// touching is the prepare of operations that look nothing up.
func touching(nodes ...*node) func() ([]*node, error) {
	return func() ([]*node, error) { return nodes, nil }
}

// attempt makes one record of what fn collects. The tree's lock is not held
// while the record is written, which takes as long as the disk lets it.
func (t *Tree) attempt(r *Request, op journal.Op, actor journal.Actor, inline []byte, fn func(*tx) error, list []facts) error {
	t.still.RLock()
	defer t.still.RUnlock()
	t.order.Lock()
	defer t.order.Unlock()
	x := &tx{t: t, r: r, rec: journal.Record{Op: op, Actor: actor, Unique: r.Unique}}
	if err := x.collect(fn, list); err != nil || len(x.rec.Changes) == 0 {
		return err
	}
	if _, err := t.store.Append(&x.rec, inline); err != nil {
		return err
	}
	x.publish()
	return nil
}

// collect lets fn validate and puts the changes together.
// Preconditions: t.order is held.
func (x *tx) collect(fn func(*tx) error, list []facts) error {
	x.t.mu.Lock()
	defer x.t.mu.Unlock()
	x.now = x.t.now()
	for i := range list {
		if !list[i].n.own() {
			x.copyUp(&list[i])
		}
	}
	if err := fn(x); err != nil {
		return err
	}
	changes := make([]journal.Change, 0, len(x.edits)+len(x.rec.Changes))
	for i := range x.edits {
		e := &x.edits[i]
		before := e.before
		if e.keepsCopied(x.rec.Op) {
			changes = append(changes, journal.Change{Node: &journal.NodeChange{ID: e.n.id, Before: before, After: e.copied}})
			before = e.copied
		}
		changes = append(changes, journal.Change{Node: &journal.NodeChange{ID: e.n.id, Before: before, After: e.after}})
	}
	x.rec.Changes = append(changes, x.rec.Changes...)
	return nil
}

// publish makes the changes, which are journaled: there is no way back, and
// nothing here can fail.
// Preconditions: t.order has been held since collect.
func (x *tx) publish() {
	x.t.mu.Lock()
	defer x.t.mu.Unlock()
	x.t.state.Apply(&x.rec)
	for i := range x.edits {
		x.edits[i].n.up = x.edits[i].after
	}
	if x.then != nil {
		x.then()
	}
}

// gather reads what copy-up of the nodes needs. Nodes that have their own
// attributes already need nothing.
func (t *Tree) gather(list []facts, nodes []*node) ([]facts, error) {
	for _, n := range nodes {
		if n == nil {
			continue
		}
		t.mu.RLock()
		own, f := n.own(), n.found()
		t.mu.RUnlock()
		if own {
			continue
		}
		st, err := f.lowerStat()
		if err != nil {
			return nil, err
		}
		fa := facts{n: n, st: st}
		if fa.xattrs, err = lowerXattrs(f.low); err != nil {
			return nil, err
		}
		if n.mode == unix.S_IFLNK {
			if fa.target, err = f.low.Readlink(); err != nil {
				return nil, err
			}
		}
		list = append(list, fa)
	}
	return list, nil
}

// copyUp gives the node its own attributes, those that the lower has.
func (x *tx) copyUp(fa *facts) {
	e := x.edit(fa.n)
	if e.after != nil && e.after.Own {
		return
	}
	if e.after == nil {
		e.after = x.pinned(fa.n)
	}
	e.after.Own = true
	e.after.Attr = lowerAttr(&fa.st)
	e.after.Xattrs, e.after.Target = fa.xattrs, fa.target
	fingerprint(&e.after.Origin, &fa.st)
	c := *e.after
	e.copied = &c
	x.pin(fa.n)
}

// keepsCopied reports whether an operation set attributes whose value before is
// in no fingerprint and doesn't follow from the operation. Its record says
// first what the copy-up made, so that an undo knows.
func (e *edit) keepsCopied(op journal.Op) bool {
	if e.copied == nil {
		return false
	}
	if op != journal.OpUnlink && e.copied.Attr.Nlink != e.after.Attr.Nlink {
		return true
	}
	switch op {
	case journal.OpChown, journal.OpUtimens, journal.OpSetattr, journal.OpSetxattr, journal.OpRemovexattr:
		return true
	}
	return false
}

func fingerprint(o *journal.Origin, st *lower.Stat) {
	o.Ino, o.Size, o.Mode = st.Ino, st.Size, st.Mode
	o.Mtime, o.Ctime = journal.Timespec(st.Mtime), journal.Timespec(st.Ctime)
}

// pinned returns the state of a lower node that is only held in place.
func (x *tx) pinned(n *node) *journal.Node {
	up := &journal.Node{}
	up.Attr.Mode, up.Attr.Btime = n.mode, n.btime
	up.Origin = journal.Origin{Ino: n.low.Ino}
	if n.low.Dir != nil {
		up.Origin.Source = n.low.Dir.Source()
		up.Origin.Path = originPath(n.low)
	}
	return up
}

func originPath(f lower.File) string {
	if f.Name == "" {
		return f.Dir.Path()
	}
	return f.Dir.PathOf(f.Name)
}

// edit returns the edit of a node, begun if needed.
func (x *tx) edit(n *node) *edit {
	for i := range x.edits {
		if x.edits[i].n == n {
			return &x.edits[i]
		}
	}
	e := edit{n: n, before: n.up}
	if n.up != nil {
		c := *n.up
		e.after = &c
	}
	x.edits = append(x.edits, e)
	return &x.edits[len(x.edits)-1]
}

// own returns the node's state to change. The node must be own already or have
// been given as touched to mutate; nil says that it was not, and the operation
// must be retried.
func (x *tx) own(n *node) *journal.Node {
	e := x.edit(n)
	if e.after == nil || !e.after.Own {
		return nil
	}
	return e.after
}

// setXattrs returns the node's extended attributes to change.
func setXattrs(up *journal.Node) map[string]string {
	up.Xattrs = maps.Clone(up.Xattrs)
	if up.Xattrs == nil {
		up.Xattrs = make(map[string]string)
	}
	return up.Xattrs
}

// pin holds the node's name and those of its ancestors in place.
func (x *tx) pin(n *node) {
	for ; n.id != journal.RootID && n.parent != nil && !n.gone; n = n.parent {
		if e := x.t.state.Entries[n.parent.id][n.name]; e.Kind == journal.EntryNode && e.Node == n.id {
			return
		}
		x.setEntry(n.parent, n.name, journal.Entry{Kind: journal.EntryNode, Node: n.id})
		if e := x.edit(n); e.after == nil {
			e.after = x.pinned(n)
		}
	}
}

// setEntry sets what the upper says of a name. A second change of the same
// name replaces the first.
func (x *tx) setEntry(p *node, name string, after journal.Entry) {
	for i := range x.rec.Changes {
		if c := x.rec.Changes[i].Entry; c != nil && c.Parent == p.id && c.Name == name {
			c.After = after
			return
		}
	}
	before := x.t.state.Entries[p.id][name]
	x.rec.Changes = append(x.rec.Changes, journal.Change{Entry: &journal.EntryChange{Parent: p.id, Name: name, Before: before, After: after}})
}

// content returns what the node's bytes are after the changes collected so far,
// nil if nothing is said of them. It must not be changed.
func (x *tx) content(id journal.NodeID) *journal.Content {
	c, own := x.t.state.Contents[id], false
	for i := range x.rec.Changes {
		s := x.rec.Changes[i].Content
		if s == nil || s.ID != id {
			continue
		}
		if !own {
			if own = true; c == nil {
				c = &journal.Content{}
			} else {
				c = c.Clone()
			}
		}
		c.Splice(s.Off, s.Len, s.After)
	}
	return c
}

// splice replaces a range of the node's content.
func (x *tx) splice(n *node, off, length uint64, after []journal.Extent) {
	if length == 0 {
		return
	}
	var before []journal.Extent
	if c := x.content(n.id); c != nil {
		before = c.Range(off, length)
	}
	x.rec.Changes = append(x.rec.Changes, journal.Change{Content: &journal.ContentChange{ID: n.id, Off: off, Len: length, Before: before, After: after}})
}

// add makes a new node's state part of the operation and returns the node,
// which is in no table yet.
func (x *tx) add(up *journal.Node) *node {
	id := x.t.state.NextNode
	x.t.state.NextNode++ // attach may take one before publish
	up.Attr.Btime = x.now
	n := &node{id: id, mode: up.Attr.Mode & unix.S_IFMT, btime: x.now}
	x.edits = append(x.edits, edit{n: n, after: up})
	return n
}

// touchDir sets a directory's times after its entries changed.
func (x *tx) touchDir(d *journal.Node) { d.Attr.Mtime, d.Attr.Ctime = x.now, x.now }
