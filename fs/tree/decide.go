package tree

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
	"github.com/winkfs/winkfs/policy"
)

// Refusal is the error of an operation that a rule forbids. It wraps the
// sentinel that says which error the caller sees.
type Refusal struct {
	policy.Decision
	Path string
}

func (e *Refusal) Error() string {
	return fmt.Sprintf("%s: refused by rule %s: %s", e.Path, e.Rule, e.Message)
}

// Unwrap returns the sentinel of the verdict.
func (e *Refusal) Unwrap() error {
	switch e.Verdict {
	case policy.Hidden:
		return ErrNotExist
	case policy.Unreadable:
		return ErrAccess
	case policy.ReadOnly:
		return ErrReadOnly
	case policy.TooLarge:
		return ErrTooLarge
	case policy.OverQuota:
		return ErrQuota
	case policy.NoSymlink:
		return ErrLoop
	case policy.TooDeep:
		return ErrNameTooLong
	}
	return ErrNotPermitted
}

// question is a request to the Decider with what its path is made of. They are
// used again: one is asked with nearly every request of the kernel's.
type question struct {
	policy.Request
	t    *Tree
	dir  *node
	name string // "" for the directory itself
}

func (t *Tree) newQuestion() any {
	q := &question{t: t}
	q.Request.Path = q.path
	return q
}

func (q *question) path() string {
	q.t.mu.RLock()
	defer q.t.mu.RUnlock()
	if q.name == "" {
		return path(q.dir)
	}
	return join(q.dir, q.name)
}

// decide asks the Decider about an access to a name in a directory, or to the
// directory itself for "". Deciders don't keep the request.
func (t *Tree) decide(r policy.Request, dir *node, name string) error {
	q := t.questions.Get().(*question)
	defer t.questions.Put(q)
	r.Path = q.Request.Path
	q.Request, q.dir, q.name = r, dir, name
	d := t.decider.Decide(&q.Request)
	if d.Verdict == policy.Allow {
		return nil
	}
	return &Refusal{Decision: d, Path: q.path()}
}

// decideNode asks about an access to a node by its number.
func (t *Tree) decideNode(op policy.Op, n *node, size uint64) error {
	return t.decide(policy.Request{Op: op, Node: uint64(n.id), Mode: n.mode, Size: size}, n, "")
}

// decideName asks about a change of a name.
func (t *Tree) decideName(op policy.Op, p *node, name string, id journal.NodeID, mode uint32) error {
	if t.readOnly {
		return ErrReadOnly
	}
	return t.decide(policy.Request{Op: op, Node: uint64(id), Parent: uint64(p.id), Name: name, Mode: mode}, p, name)
}

// Permit asks the Decider about changes that the workspace itself is to make,
// and returns the first refusal. The Decider is told no parents' numbers.
func (t *Tree) Permit(changed []Changed) error {
	for _, c := range changed {
		for _, q := range requestsOf(c) {
			if d := t.decider.Decide(q); d.Verdict != policy.Allow {
				return &Refusal{Decision: d, Path: q.Path()}
			}
		}
	}
	return nil
}

// requestsOf returns the accesses by which a process would make the change.
func requestsOf(c Changed) []*policy.Request {
	switch {
	case c.Old == nil:
		return []*policy.Request{request(policy.OpCreate, c.New)}
	case c.New == nil:
		return []*policy.Request{request(policy.OpUnlink, c.Old)}
	case c.Old.ID() != c.New.ID():
		return []*policy.Request{request(policy.OpUnlink, c.Old), request(policy.OpCreate, c.New)}
	}
	var qs []*policy.Request
	if c.Old.Path != c.New.Path {
		qs = append(qs, request(policy.OpRename, c.Old), request(policy.OpRename, c.New))
	}
	a, b := &c.Old.Stat.Attr, &c.New.Stat.Attr
	attrs := a.Mode != b.Mode || a.UID != b.UID || a.GID != b.GID
	switch {
	case attrs:
		qs = append(qs, request(policy.OpSetattr, c.New))
	case b.Mode&unix.S_IFMT != unix.S_IFREG:
		qs = append(qs, request(policy.OpXattr, c.New))
	}
	if b.Mode&unix.S_IFMT == unix.S_IFREG {
		qs = append(qs, request(policy.OpWrite, c.New)) // what else differs is not looked at
	}
	return qs
}

func request(op policy.Op, it *Item) *policy.Request {
	_, name := splitPath(it.Path)
	at := &it.Stat.Attr
	return &policy.Request{Op: op, Node: uint64(it.ID()), Name: name, Mode: at.Mode, Size: at.Size, Path: func() string { return it.Path }}
}

// errRetry says that what an operation had read without the lock is out of
// date.
var errRetry = errors.New("changed meanwhile")
