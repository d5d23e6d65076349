package tree

import (
	"fmt"
	"sync"

	"github.com/winkfs/winkfs/journal"
	"github.com/winkfs/winkfs/policy"
)

// Access is what a file is opened for.
type Access string

// Kinds of access, as the journal has them.
const (
	AccessRead      Access = "read"
	AccessWrite     Access = "write"
	AccessReadWrite Access = "read-write"
	AccessExec      Access = "exec"
)

// openingsKept bounds the openings that are remembered. Beyond it some are
// journaled again.
const openingsKept = 1 << 16

// openings remembers what was opened by whom. The zero value is empty.
type openings struct {
	mu   sync.Mutex
	seen map[opening]struct{} // protected by mu
}

// opening is what makes two openings the same. Outside of every exec the
// process stands in its place.
type opening struct {
	exec   journal.ExecID
	pid    uint32
	node   journal.NodeID
	access Access
}

// first reports whether the opening is to be journaled.
func (o *openings) first(k opening) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.seen[k]; ok {
		return false
	}
	if o.seen == nil || len(o.seen) >= openingsKept {
		o.seen = make(map[opening]struct{})
	}
	o.seen[k] = struct{}{}
	return true
}

// Open decides on the opening of a file and journals it, if it is the exec's
// first of that file for that access. It is called in workspaces that audit
// openings only: others decide when the file is read or written.
func (t *Tree) Open(r *Request, id journal.NodeID, a Access) error {
	n, err := t.get(id)
	if err != nil {
		return err
	}
	if err := t.decideOpen(n, a); err != nil {
		return err
	}
	if t.readOnly {
		return nil
	}
	actor := t.actors.Actor(r.TID, r.UID)
	k := opening{exec: actor.Exec, node: id, access: a}
	if k.exec == 0 {
		k.pid = actor.PID
	}
	if !t.opened.first(k) {
		return nil
	}
	t.mu.RLock()
	name := path(n)
	t.mu.RUnlock()
	err = t.note(&journal.Record{Op: journal.OpOpen, Actor: actor, Unique: r.Unique, Path: name, Note: &journal.Note{Message: string(a)}})
	if err != nil {
		return fmt.Errorf("open: journal it: %w", err)
	}
	return nil
}

func (t *Tree) decideOpen(n *node, a Access) error {
	if a != AccessWrite {
		if err := t.decideNode(policy.OpRead, n, 0); err != nil {
			return err
		}
	}
	if a == AccessWrite || a == AccessReadWrite {
		return t.decideNode(policy.OpWrite, n, 0)
	}
	return nil
}
