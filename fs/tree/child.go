package tree

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
	"github.com/winkfs/winkfs/policy"
)

// maxName is NAME_MAX of Linux.
const maxName = 255

// checkName refuses what is no single name. The kernel sends none of these but
// names that are too long.
func checkName(name string) error {
	switch {
	case len(name) > maxName:
		return ErrNameTooLong
	case name == "", name == ".", name == "..", strings.IndexByte(name, '/') >= 0, strings.IndexByte(name, 0) >= 0:
		return ErrInvalid
	}
	return nil
}

// child finds what a name in a directory leads to. It may read the lower, and
// what it finds may have changed by the time that t.mu is taken: whoever puts
// it into the table checks that with current, mutations with the tx's
// unchanged.
func (t *Tree) child(p *node, name string) (found, error) {
	if err := checkName(name); err != nil {
		return found{}, fmt.Errorf("look up %q: %w", name, err)
	}
	t.mu.RLock()
	e := t.state.Entries[p.id][name]
	dir := p.lowerDir()
	var f found
	ok := false
	if e.Kind == journal.EntryNode {
		f, ok = t.known(e.Node)
	}
	blind := dir != nil && p.tried && !p.watched
	t.mu.RUnlock()
	if e.Kind != journal.EntryNone || dir == nil {
		if !ok {
			return found{}, ErrNotExist
		}
		f.entry = e
		if blind && f.mode == unix.S_IFDIR {
			return t.lookAgain(p, dir, name, f), nil
		}
		return f, nil
	}
	t.watch(p, dir)
	f, err := t.lowerChild(dir, name)
	if err != nil {
		return found{}, err
	}
	t.mu.Lock()
	t.attach(&f)
	t.mu.Unlock()
	return f, nil
}

// current reports whether the upper still says of the name what it said when f
// was found.
// Preconditions: t.mu is held.
func (t *Tree) current(p *node, name string, f *found) bool {
	return t.state.Entries[p.id][name] == f.entry
}

// known returns a node that is in the table or has upper state.
// Preconditions: t.mu is held.
func (t *Tree) known(id journal.NodeID) (found, bool) {
	if n := t.nodes[id]; n != nil {
		return n.found(), true
	}
	return t.byID(id)
}

// Lookup returns the node that a name in a directory leads to and counts a
// reference of the kernel's to it.
func (t *Tree) Lookup(r *Request, parent journal.NodeID, name string) (Stat, error) {
	if p := t.replaying(r); p != nil {
		if st, ok, err := p.lookup(parent, name); ok {
			return st, err
		}
	}
	p, err := t.getDir(parent)
	if err != nil {
		return Stat{}, err
	}
	if name == "." || name == ".." { // asked for by NFS export only
		return t.lookupDot(p, name)
	}
	return t.find(p, name)
}

// find looks a name up, asks whether it may be seen, and counts a reference.
func (t *Tree) find(p *node, name string) (Stat, error) {
	for {
		f, err := t.child(p, name)
		if err != nil {
			return Stat{}, err
		}
		if err := t.decide(policy.Request{Op: policy.OpLookup, Node: uint64(f.id), Parent: uint64(p.id), Name: name, Mode: f.mode}, p, name); err != nil {
			return Stat{}, err
		}
		if s, err := t.enter(p, name, f); err != errRetry {
			return s, err
		}
	}
}

func (t *Tree) lookupDot(p *node, name string) (Stat, error) {
	t.mu.Lock()
	n := p
	if name == ".." && p.parent != nil {
		n = p.parent
	}
	n.lookups++
	t.mu.Unlock()
	return t.stat(n)
}

// enter puts what was found into the table with one reference more and returns
// its attributes. errRetry says that the name came to lead elsewhere meanwhile.
func (t *Tree) enter(p *node, name string, f found) (Stat, error) {
	s, err := t.statFound(&f)
	if err != nil {
		return Stat{}, err
	}
	n, follow, err := t.refer(p, name, &f, &s)
	if !follow {
		return s, err
	}
	t.watchNode(n)
	if s, err = t.stat(n); err != nil {
		t.Forget(n.id, 1)
	}
	return s, err
}

// refer is the part of enter that changes the table. It reports whether the
// node must be watched, and s be read again after that; errRetry is as for enter.
func (t *Tree) refer(p *node, name string, f *found, s *Stat) (n *node, follow bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.current(p, name, f) {
		return nil, false, errRetry
	}
	n = t.intern(p, name, *f)
	n.lookups++
	s.Changed = t.compare(n, f.st)
	if n.up != f.up || n.gone { // it changed in between
		if n.own() {
			changed := s.Changed
			*s = t.ownStat(n.id, n.gen(), n.up, f.st)
			s.Changed = changed
		}
	}
	s.Gen = uint64(n.gen())
	return n, t.follows(n, f.st), nil
}
