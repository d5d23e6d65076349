package tree

import (
	"fmt"
	"math"

	"github.com/winkfs/winkfs/journal"
	"github.com/winkfs/winkfs/policy"
)

// Write writes p at off: all of it or, with an error, nothing.
func (t *Tree) Write(r *Request, id journal.NodeID, p []byte, off int64) (int, error) {
	n, err := t.get(id)
	if err != nil {
		return 0, err
	}
	end := uint64(off) + uint64(len(p))
	switch {
	case !n.isReg():
		return 0, ErrInvalid
	case off < 0 || end > math.MaxInt64:
		return 0, ErrTooLarge
	case len(p) == 0:
		return 0, nil
	}
	if err := t.decideNode(policy.OpWrite, n, end); err != nil {
		return 0, err
	}
	ext := journal.Extent{Off: uint64(off), Len: uint64(len(p)), Kind: journal.ExtentData}
	var ref *journal.DataRef
	inline := p
	if len(p) > journal.MaxInline {
		d, err := t.store.Put(p)
		if err != nil {
			return 0, fmt.Errorf("write: %w", err)
		}
		ref, inline, ext.Loc = &d, nil, d.Loc
	}
	var c content
	err = t.mutate(r, journal.OpWrite, inline, func() ([]*node, error) {
		c, err = t.prepareContent(n, math.MaxInt64)
		return []*node{n}, err
	}, func(x *tx) error {
		if ref != nil {
			x.rec.Data = append(x.rec.Data, *ref)
		}
		return x.write(n, ext, &c)
	})
	if err != nil {
		return 0, fmt.Errorf("write: %w", err)
	}
	return len(p), nil
}

// write replaces the extent's range and grows the file where it ends beyond it.
func (x *tx) write(n *node, ext journal.Extent, c *content) error {
	up := x.own(n)
	if up == nil {
		return errRetry
	}
	if err := x.ownContent(n, up, c); err != nil {
		return err
	}
	if err := mayWrite(up, ext.Off); err != nil {
		return err
	}
	x.rec.Path = path(n)
	x.splice(n, ext.Off, ext.Len, []journal.Extent{ext})
	up.Attr.Size = max(up.Attr.Size, ext.End())
	up.Attr.Mtime, up.Attr.Ctime = x.now, x.now
	if x.r.KillPriv {
		x.killPriv(up)
	}
	x.attribute(n)
	return nil
}

// attribute remembers who writes the node, and gives a write-back, which the
// kernel makes in nobody's name, to the node's only known writer.
func (x *tx) attribute(n *node) {
	if !x.r.WriteBack && x.r.TID != 0 {
		if n.writer != nil && n.writer.PID != x.rec.Actor.PID {
			n.shared = true
		}
		if n.writer == nil || *n.writer != x.rec.Actor {
			a := x.rec.Actor
			n.writer = &a
		}
		return
	}
	switch {
	case n.writer == nil:
		x.rec.Actor.Comm = "unknown"
	case n.shared:
		x.rec.Actor = journal.Actor{Comm: "shared", UID: n.writer.UID}
	default:
		x.rec.Actor = *n.writer
	}
}

// Fsync makes everything that the node's content and attributes depend on
// durable. The log is one: so is everything done before.
func (t *Tree) Fsync(r *Request, id journal.NodeID, datasync bool) error {
	if err := t.store.Sync(); err != nil {
		return fmt.Errorf("fsync: %w", err)
	}
	return nil
}
