package hydrate

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// mask is what is asked of a lower directory or file. IN_CLOSE_WRITE stands in for
// stores through a mapping, which cause no IN_MODIFY.
const mask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CLOSE_WRITE |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF

// Sink is told what the host changed. The Watcher calls it from one goroutine
// of its own, one call at a time, holding no lock.
type Sink interface {
	// LowerChanged says that the name in the lower directory of dir, what it
	// leads to, or the listing and times of dir itself may have changed.
	LowerChanged(dir journal.NodeID, name string)
	// LowerSelfChanged says that the lower directory or file itself changed: its
	// attributes or bytes, or that it moved or was deleted.
	LowerSelfChanged(id journal.NodeID)
	// LowerOverflow says that changes were lost: anything in any watched
	// directory may have changed.
	LowerOverflow()
}

// Options of a Watcher. The zero value is ready to use.
type Options struct {
	Logger *slog.Logger // nil = silent
	// MaxWatches bounds the number of watched directories; 0 = half of
	// fs.inotify.max_user_watches.
	MaxWatches int
}

// Watcher watches lower directories. It is safe for concurrent use.
type Watcher struct {
	file   *os.File // the inotify instance, for reading
	fd     int      // the same as a number, valid until closed
	log    *slog.Logger
	queue  *pending
	max    int
	failed reasons
	done   sync.WaitGroup

	// add is inotify_add_watch on an open directory; tests replace it.
	add func(fd int) (int, error)

	mu     sync.Mutex
	closed bool                       // protected by mu; only ever set
	byWD   map[int32][]journal.NodeID // protected by mu; one directory may be several nodes
	byNode map[journal.NodeID]int32   // protected by mu
	idle   map[journal.NodeID]bool    // watched nodes that nobody needs; protected by mu
	sweep  *time.Timer                // ends the watches of idle; nil: none is idle; protected by mu
}

var _ tree.Watcher = (*Watcher)(nil)

// NewWatcher makes a watcher that gathers events from the first Watch on and
// delivers them once Start was called.
func NewWatcher(o Options) (*Watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("create inotify instance: %w", err)
	}
	w := &Watcher{
		file:   os.NewFile(uintptr(fd), "inotify"),
		fd:     fd,
		log:    o.Logger,
		queue:  newPending(),
		max:    o.MaxWatches,
		byWD:   map[int32][]journal.NodeID{},
		byNode: map[journal.NodeID]int32{},
		idle:   map[journal.NodeID]bool{},
	}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	if w.max == 0 {
		w.max = watchLimit() / 2
	}
	w.add = w.addWatch
	return w, nil
}

// addWatch names the directory by its descriptor, so that no path is looked up
// and no race can lead elsewhere.
func (w *Watcher) addWatch(fd int) (int, error) {
	return unix.InotifyAddWatch(w.fd, fmt.Sprintf("/proc/self/fd/%d", fd), mask)
}

// Start begins to deliver events to the sink. It must be called once.
func (w *Watcher) Start(sink Sink) {
	w.done.Add(2)
	go func() {
		defer w.done.Done()
		w.read()
	}()
	go func() {
		defer w.done.Done()
		w.queue.deliver(sink)
	}()
}

// Watch begins to watch the directory or file open at fd for the node. It reports
// false when the directory can't be watched; Degraded then says why. Watching
// a directory again is cheap and changes nothing.
func (w *Watcher) Watch(id journal.NodeID, fd int) bool {
	if reason := unwatchable(fd); reason != "" {
		w.failed.add(reason)
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	delete(w.idle, id)
	if _, ok := w.byNode[id]; !ok && len(w.byWD) >= w.max && !w.sweepLocked(1) {
		w.failed.add(limitReason)
		return false
	}
	wd, err := w.add(fd)
	if err != nil {
		w.refuse(id, err)
		return false
	}
	w.bindLocked(id, int32(wd))
	return true
}

// refuse notes why a directory can't be watched.
func (w *Watcher) refuse(id journal.NodeID, err error) {
	if errors.Is(err, unix.ENOSPC) {
		w.failed.add(limitReason)
		return
	}
	w.log.Warn("watch lower directory", "node", id, "err", err)
	w.failed.add(fmt.Sprintf("a lower directory can't be watched (%v): changes by the host there show after a second", err))
}

// bindLocked makes events of wd events of the node. Preconditions: w.mu held.
func (w *Watcher) bindLocked(id journal.NodeID, wd int32) {
	if old, ok := w.byNode[id]; ok && old != wd {
		w.unbindLocked(id, old)
	}
	w.byNode[id] = wd
	if !slices.Contains(w.byWD[wd], id) {
		w.byWD[wd] = append(w.byWD[wd], id)
	}
}

// unbindLocked undoes bindLocked and removes the watch when no node needs it.
// Preconditions: w.mu held.
func (w *Watcher) unbindLocked(id journal.NodeID, wd int32) {
	delete(w.byNode, id)
	ids := slices.DeleteFunc(w.byWD[wd], func(n journal.NodeID) bool { return n == id })
	if len(ids) > 0 {
		w.byWD[wd] = ids
		return
	}
	delete(w.byWD, wd)
	// EINVAL means that the kernel removed the watch with the directory.
	if _, err := unix.InotifyRmWatch(w.fd, uint32(wd)); err != nil && !errors.Is(err, unix.EINVAL) {
		w.log.Warn("remove watch", "node", id, "err", err)
	}
}

// Unwatch says that the watch of a node is not needed any more. It ends soon, or
// when its place is needed, so that a node that is watched again meanwhile costs
// little. Nothing happens for a node that is not watched.
func (w *Watcher) Unwatch(id journal.NodeID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.byNode[id]; !ok || w.closed {
		return
	}
	w.idle[id] = true
	if w.sweep == nil {
		w.sweep = time.AfterFunc(idleTime, w.sweepIdle)
	}
}

const (
	idleTime   = time.Second
	sweepBatch = 256 // watches ended while the lock is held
)

// sweepIdle ends the idle watches, a batch each time, so that others get their
// turn in between.
func (w *Watcher) sweepIdle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sweepLocked(sweepBatch)
	if len(w.idle) > 0 && !w.closed {
		w.sweep.Reset(time.Millisecond)
		return
	}
	w.sweep = nil
}

// sweepLocked ends up to n idle watches and reports whether it ended any.
// Preconditions: w.mu held.
func (w *Watcher) sweepLocked(n int) bool {
	ended := false
	for id := range w.idle {
		if n--; n < 0 || w.closed {
			break
		}
		delete(w.idle, id)
		if wd, ok := w.byNode[id]; ok {
			w.unbindLocked(id, wd)
			ended = true
		}
	}
	return ended
}

// Len returns the number of watched nodes that are needed.
func (w *Watcher) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.byNode) - len(w.idle)
}

// Degraded names what can't be watched and how to mend it; empty when all is
// well.
func (w *Watcher) Degraded() []string { return w.failed.list() }

// Close ends all watches and waits until the sink is called no more. It must
// not be called from the sink.
func (w *Watcher) Close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	if w.sweep != nil {
		w.sweep.Stop()
	}
	w.mu.Unlock()
	err := w.file.Close()
	w.queue.close()
	w.done.Wait()
	return err
}

// read moves events from the kernel into the queue until Close.
func (w *Watcher) read() {
	buf := make([]byte, 64<<10)
	for {
		n, err := w.file.Read(buf)
		switch {
		case errors.Is(err, os.ErrClosed):
			return
		case err != nil:
			w.log.Error("read inotify events", "err", err)
			w.queue.overflow()
			time.Sleep(time.Second)
		default:
			w.gather(buf[:n])
		}
	}
}

// gather queues what one read brought.
func (w *Watcher) gather(buf []byte) {
	ok := decode(buf, func(e event) {
		if e.mask&unix.IN_Q_OVERFLOW != 0 {
			w.queue.overflow()
			return
		}
		for _, id := range w.nodes(e) {
			w.queue.add(key{id, e.name})
		}
	})
	if !ok {
		w.queue.overflow()
	}
}

// nodes returns the nodes that the event is for. The kernel's last word on a
// watch (IN_IGNORED) also ends it here.
func (w *Watcher) nodes(e event) []journal.NodeID {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := slices.Clone(w.byWD[e.wd])
	if e.mask&unix.IN_IGNORED == 0 {
		return slices.DeleteFunc(ids, func(id journal.NodeID) bool { return w.idle[id] })
	}
	for _, id := range ids {
		if w.byNode[id] == e.wd {
			delete(w.byNode, id)
			delete(w.idle, id)
		}
	}
	delete(w.byWD, e.wd)
	return ids
}
