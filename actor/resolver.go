package actor

import (
	"slices"
	"sync"
	"time"

	"github.com/winkfs/winkfs/journal"
)

// unknown is the command name of who can't be found.
const unknown = "unknown"

// noID says that the request did not carry the caller's user id, as on an
// id-mapped mount. The id of the thread itself then counts.
const noID = ^uint32(0)

const (
	fresh      = 100 * time.Millisecond // after which a cached thread is looked at again
	maxThreads = 256                    // cached; each holds two descriptors
)

// Resolver tells threads apart. It is safe for concurrent use; make it with
// New.
type Resolver struct {
	mu      sync.Mutex
	threads map[uint32]*thread        // by tid; protected by mu
	execs   map[uint64]journal.ExecID // by pid namespace; protected by mu
	clock   func() time.Time          // never changes
}

// New makes a resolver that knows no exec.
func New() *Resolver {
	return &Resolver{threads: map[uint32]*thread{}, execs: map[uint64]journal.ExecID{}, clock: time.Now}
}

// Register makes every process of the pid namespace, and of those below it, a
// part of the exec. It must be called before such a process makes a request.
func (r *Resolver) Register(pidNS uint64, exec journal.ExecID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.execs[pidNS] = exec
}

// Unregister forgets an exec, whose processes are all gone: the number of its
// namespace may come to mean another one.
func (r *Resolver) Unregister(exec journal.ExecID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for ns, e := range r.execs {
		if e != exec {
			continue
		}
		delete(r.execs, ns)
		for tid, t := range r.threads {
			if slices.Contains(t.spaces, ns) {
				r.dropLocked(tid)
			}
		}
	}
}

// Actor returns what is known of the thread that made a request. tid 0 is the
// kernel itself, of which nothing is known.
func (r *Resolver) Actor(tid, uid uint32) journal.Actor {
	if tid == 0 {
		return stranger(tid, uid)
	}
	if a, ok := r.cached(tid, uid); ok {
		return a
	}
	t, err := openThread(tid)
	if err != nil {
		return stranger(tid, uid)
	}
	return r.keep(tid, uid, t)
}

// cached answers from an entry whose thread is still there.
func (r *Resolver) cached(tid, uid uint32) (journal.Actor, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.threads[tid]
	if t == nil {
		return journal.Actor{}, false
	}
	now := r.clock()
	if now.Sub(t.checked) > fresh {
		if t.refresh() != nil {
			r.dropLocked(tid)
			return journal.Actor{}, false
		}
		t.checked = now
	}
	comm, err := t.comm()
	if err != nil {
		r.dropLocked(tid)
		return journal.Actor{}, false
	}
	t.used = now
	return r.actorLocked(tid, uid, t, comm), true
}

// keep caches a thread and answers for it.
func (r *Resolver) keep(tid, uid uint32, t *thread) journal.Actor {
	r.mu.Lock()
	defer r.mu.Unlock()
	comm, err := t.comm()
	if err != nil {
		t.close()
		return stranger(tid, uid)
	}
	r.dropLocked(tid)
	if len(r.threads) >= maxThreads {
		r.evictLocked()
	}
	t.checked = r.clock()
	t.used = t.checked
	r.threads[tid] = t
	return r.actorLocked(tid, uid, t, comm)
}

func (r *Resolver) actorLocked(tid, uid uint32, t *thread, comm string) journal.Actor {
	if uid == noID {
		uid = t.uid
	}
	a := journal.Actor{PID: t.tgid, TID: tid, UID: uid, Comm: comm}
	for _, ns := range t.spaces {
		if exec, ok := r.execs[ns]; ok {
			a.Exec = exec
			break
		}
	}
	return a
}

// evictLocked drops the quarter that was not asked for the longest, so that the
// search for them is rare.
func (r *Resolver) evictLocked() {
	tids := make([]uint32, 0, len(r.threads))
	for tid := range r.threads {
		tids = append(tids, tid)
	}
	slices.SortFunc(tids, func(a, b uint32) int { return r.threads[a].used.Compare(r.threads[b].used) })
	for _, tid := range tids[:(len(tids)+3)/4] {
		r.dropLocked(tid)
	}
}

func (r *Resolver) dropLocked(tid uint32) {
	if t := r.threads[tid]; t != nil {
		t.close()
		delete(r.threads, tid)
	}
}

// Close lets go of all descriptors. Questions may still be asked.
func (r *Resolver) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for tid := range r.threads {
		r.dropLocked(tid)
	}
}

func stranger(tid, uid uint32) journal.Actor {
	if uid == noID {
		uid = 0
	}
	return journal.Actor{TID: tid, UID: uid, Comm: unknown}
}
