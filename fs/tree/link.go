package tree

import (
	"errors"
	"fmt"

	"github.com/winkfs/winkfs/journal"
	"github.com/winkfs/winkfs/policy"
)

// maxLinks bounds a file's link count, as file systems do.
const maxLinks = 65000

// Link gives a file another name.
func (t *Tree) Link(r *Request, id, parent journal.NodeID, name string) (Stat, error) {
	n, err := t.get(id)
	if err != nil {
		return Stat{}, err
	}
	if n.isDir() {
		return Stat{}, ErrNotPermitted
	}
	p, err := t.getDir(parent)
	if err != nil {
		return Stat{}, err
	}
	if err := t.decideNode(policy.OpLink, n, 0); err != nil {
		return Stat{}, err
	}
	if err := t.decideName(policy.OpLink, p, name, n.id, n.mode); err != nil {
		return Stat{}, err
	}
	var s slot
	err = t.mutate(r, journal.OpLink, nil, func() ([]*node, error) {
		if s, err = t.look(p, name); err != nil {
			return nil, err
		}
		if s.exists {
			return nil, ErrExist
		}
		return []*node{p, n}, nil
	}, func(x *tx) error {
		d, up := x.own(p), x.own(n)
		if d == nil || up == nil || !x.unchanged(&s) {
			return errRetry
		}
		if err := errors.Join(mayAdd(d), mayChange(up)); err != nil {
			return err
		}
		if up.Attr.Nlink >= maxLinks {
			return ErrMaxLinks
		}
		x.rec.Path, x.rec.Path2 = path(n), join(p, name)
		up.Attr.Nlink++
		up.Attr.Ctime = x.now
		x.touchDir(d)
		x.fill(&s, n.id)
		x.then = func() {
			n.lookups++
			n.gone = false
			t.setName(n, p, name)
			t.lists.insert(p.id, name, n.id, n.mode)
		}
		return nil
	})
	if err != nil {
		return Stat{}, fmt.Errorf("link %q: %w", name, err)
	}
	return t.stat(n)
}
