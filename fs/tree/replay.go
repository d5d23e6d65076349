package tree

import (
	"sync"

	"github.com/winkfs/winkfs/journal"
)

// Replay repeats through the mount what a change of history has made already,
// so that the kernel tells those who watch: a notification of the daemon's
// raises no inotify event, an operation does. The operations come from one
// thread of a helper process. For that thread names lead to what they led to
// before until it has changed them, and its operations do nothing but agree
// with what is so: one that would not is refused, and nothing is journaled.
type Replay struct {
	t   *Tree
	tid uint32

	mu    sync.Mutex
	names map[entryKey]*Stat      // what a name led to before; nil = nothing; protected by mu
	stats map[journal.NodeID]Stat // files that are gone; protected by mu
}

// Replay begins one for a thread. There is one at a time.
func (t *Tree) Replay(tid uint32) *Replay {
	p := &Replay{t: t, tid: tid, names: map[entryKey]*Stat{}, stats: map[journal.NodeID]Stat{}}
	t.replay.Store(p)
	return p
}

// Before says what a name in a directory led to before; nil is nothing.
func (p *Replay) Before(parent journal.NodeID, name string, it *Item) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := entryKey{parent, name}
	if it == nil {
		p.names[k] = nil
		return
	}
	st := it.Stat
	st.Gen = uint64(generation(it.f.btime))
	p.names[k], p.stats[st.ID] = &st, st
}

// End ends the replay. Names that it left alone are notified, so that the
// kernel forgets what it knows of them.
func (p *Replay) End() {
	p.t.replay.CompareAndSwap(p, nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.t.mu.RLock()
	defer p.t.mu.RUnlock()
	for k := range p.names {
		p.t.notifier.Entry(k.parent, k.name)
	}
}

// replaying returns the replay that a request belongs to, nil for none.
func (t *Tree) replaying(r *Request) *Replay {
	p := t.replay.Load()
	if p == nil || p.tid != r.TID || r.TID == 0 {
		return nil
	}
	return p
}

// pending returns what a name led to before, if it has not been changed yet.
func (p *Replay) pending(parent journal.NodeID, name string) (*Stat, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	st, ok := p.names[entryKey{parent, name}]
	return st, ok
}

func (p *Replay) done(parent journal.NodeID, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.names, entryKey{parent, name})
}

// lookup answers a look-up of a name that is not changed yet; ok is false for
// any other.
func (p *Replay) lookup(parent journal.NodeID, name string) (Stat, bool, error) {
	st, ok := p.pending(parent, name)
	if !ok {
		return Stat{}, false, nil
	}
	if st == nil {
		return Stat{}, true, ErrNotExist
	}
	p.t.mu.Lock()
	defer p.t.mu.Unlock()
	if n := p.t.nodes[st.ID]; n != nil {
		n.lookups++
	}
	return *st, true, nil
}

// stat returns the attributes of a file that is gone.
func (p *Replay) stat(id journal.NodeID) (Stat, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	st, ok := p.stats[id]
	return st, ok
}

// create agrees that a name leads to what it leads to now, if it was to.
func (p *Replay) create(r *Request, parent journal.NodeID, name string) (Stat, error) {
	if st, ok := p.pending(parent, name); !ok || st != nil {
		return Stat{}, ErrExist
	}
	p.done(parent, name)
	return p.t.Lookup(r, parent, name)
}

// remove agrees that a name no longer leads to what it led to. It may lead
// elsewhere by now, so End has the kernel look again.
func (p *Replay) remove(parent journal.NodeID, name string) error {
	if st, ok := p.pending(parent, name); !ok || st == nil {
		return ErrNotPermitted
	}
	p.vacated(parent, name)
	return nil
}

// vacated notes that the kernel takes the name for one that leads nowhere.
func (p *Replay) vacated(parent journal.NodeID, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names[entryKey{parent, name}] = nil
}

// rename agrees that a file has moved, if it has.
func (p *Replay) rename(r *Request, oldParent journal.NodeID, oldName string, newParent journal.NodeID, newName string) error {
	from, ok := p.pending(oldParent, oldName)
	to, known := p.pending(newParent, newName)
	if !ok || !known || from == nil || to != nil {
		return ErrNotPermitted
	}
	// The kernel moves what it knows and won't look the new name up.
	p.done(newParent, newName)
	st, err := p.t.Lookup(r, newParent, newName)
	if err == nil {
		p.t.Forget(st.ID, 1)
	}
	if err != nil || st.ID != from.ID {
		p.vacated(newParent, newName)
		return ErrNotPermitted
	}
	p.vacated(oldParent, oldName)
	return nil
}
