package dev

import (
	"log/slog"
	"sync"

	"golang.org/x/sys/unix"
)

// note is one notification that waits. Equal notes say the same.
type note struct {
	kind  uint32 // 0: replaced by a later equal one
	flags uint32
	node  uint64 // parent, for entries
	name  string
}

// Queue holds notifications until its goroutine has written them. Its methods
// but Flush and InodeNow never block, and may be called under any lock and from
// handlers.
type Queue struct {
	fd     int
	log    *slog.Logger
	epochs bool // the kernel knows FUSE_NOTIFY_INC_EPOCH

	mu     sync.Mutex
	change sync.Cond // mu; more to do, or something was done
	batch  []note    // being filled; protected by mu
	at     map[note]int
	stores []store // being filled, written after batch; protected by mu
	filled uint64  // number of the batch that is being filled; protected by mu
	done   uint64  // all batches below are written; protected by mu
	closed bool    // protected by mu; only becomes true

	ended chan struct{}
	out   []byte // the goroutine's
}

// store is bytes for the kernel's cache.
type store struct {
	node, off uint64
	data      []byte
}

func newQueue(fd int, epochs bool, log *slog.Logger) *Queue {
	q := &Queue{fd: fd, epochs: epochs, log: log, at: map[note]int{}, ended: make(chan struct{})}
	q.change.L = &q.mu
	return q
}

// Inode says that everything cached of the node may differ: bytes, attributes,
// a directory's listing.
func (q *Queue) Inode(node uint64) { q.add(note{kind: notifyInvalInode, node: node}) }

// InodeNow is Inode, done on return. It may be called from a handler, under no
// lock, since the kernel waits only for pages of the file that are being read.
func (q *Queue) InodeNow(node uint64) {
	_, err := unix.Write(q.fd, appendInode(nil, node))
	q.check(err, notifyInvalInode, node)
}

// Entry says that the name in the directory may lead elsewhere. If the kernel
// does not know the name it drops nothing, not even the listing: notify Inode
// of the directory as well.
func (q *Queue) Entry(parent uint64, name string) {
	q.add(note{kind: notifyInvalEntry, node: parent, name: name})
}

// Expire says that the name must be looked up again before it is next used,
// and keeps what is cached below it until then.
func (q *Queue) Expire(parent uint64, name string) {
	q.add(note{kind: notifyInvalEntry, node: parent, name: name, flags: expireOnly})
}

// IncEpoch says that every name must be looked up again. Listings, attributes
// and bytes are not dropped. It reports false, and does nothing, if the kernel
// does not know this notification.
func (q *Queue) IncEpoch() bool {
	if !q.epochs {
		return false
	}
	q.add(note{kind: notifyIncEpoch})
	return true
}

// Store gives the kernel bytes of a file for its cache, if it knows the node at
// that time. The slice belongs to the queue from then on.
func (q *Queue) Store(node, off uint64, data []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.stores = append(q.stores, store{node, off, data})
	q.change.Broadcast()
}

// add queues the note behind all others. An equal one that waits is dropped:
// the later one says the same about a later state.
func (q *Queue) add(n note) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if i, ok := q.at[n]; ok {
		q.batch[i].kind = 0
	}
	q.at[n] = len(q.batch)
	q.batch = append(q.batch, n)
	if len(q.batch) > 2*len(q.at)+64 {
		q.compact()
	}
	q.change.Broadcast()
}

// compact drops the replaced notes. mu is held.
func (q *Queue) compact() {
	kept := q.batch[:0]
	for _, n := range q.batch {
		if n.kind != 0 {
			q.at[n] = len(kept)
			kept = append(kept, n)
		}
	}
	q.batch = kept
}

// Flush returns when everything that was queued before the call has been
// written. It must not be called from a handler, whose reply the kernel may
// want before it takes a notification. After the end it returns ErrClosed.
func (q *Queue) Flush() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	want := q.filled
	if q.empty() {
		want--
	}
	for int64(want-q.done) >= 0 && !q.closed {
		q.change.Wait()
	}
	if q.closed {
		return ErrClosed
	}
	return nil
}

func (q *Queue) empty() bool { return len(q.batch) == 0 && len(q.stores) == 0 }

// run writes batch after batch until close.
func (q *Queue) run() {
	defer close(q.ended)
	for {
		batch, stores, ok := q.take()
		if !ok {
			return
		}
		for i := range batch {
			q.write(&batch[i])
		}
		for i := range stores {
			q.writeStore(&stores[i])
		}
		q.wrote()
	}
}

// take waits for a batch that is not empty and begins the next.
func (q *Queue) take() ([]note, []store, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.empty() && !q.closed {
		q.change.Wait()
	}
	batch, stores := q.batch, q.stores
	q.batch, q.stores, q.at = nil, nil, map[note]int{}
	q.filled++
	return batch, stores, !q.closed
}

func (q *Queue) wrote() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.done = q.filled
	q.change.Broadcast()
}

// close ends the goroutine and waits for it. What was not written is dropped:
// the connection is gone.
func (q *Queue) close() {
	q.mu.Lock()
	q.closed = true
	q.change.Broadcast()
	q.mu.Unlock()
	<-q.ended
}

func (q *Queue) write(n *note) {
	switch n.kind {
	case 0:
		return
	case notifyInvalInode:
		q.out = appendInode(q.out, n.node)
	case notifyInvalEntry:
		q.out = appendEntry(q.out, n.node, n.name, n.flags)
	case notifyIncEpoch:
		q.out = appendEpoch(q.out)
	}
	_, err := unix.Write(q.fd, q.out)
	q.check(err, n.kind, n.node)
}

func (q *Queue) writeStore(s *store) {
	q.out = appendStore(q.out, s.node, s.off, len(s.data))
	_, err := unix.Writev(q.fd, [][]byte{q.out, s.data})
	q.check(err, notifyStore, s.node)
}

// check logs what is not normal: ENOENT means that the kernel has nothing
// cached, ENODEV and ENOTCONN that the mount is gone.
func (q *Queue) check(err error, kind uint32, node uint64) {
	switch err {
	case nil, unix.ENOENT, unix.ENODEV, unix.ENOTCONN, unix.ENOTDIR:
		return
	}
	q.log.Warn("fuse: notify kernel", "err", err, "kind", kind, "node", node)
}
