package tree

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/lower"
	"github.com/winkfs/winkfs/journal"
)

// watch begins to watch a lower directory before it is read for the first time
// through p.
func (t *Tree) watch(p *node, dir *lower.Dir) {
	if t.watcher == nil {
		return
	}
	t.mu.RLock()
	tried := p.tried
	t.mu.RUnlock()
	if tried {
		return
	}
	ok := dir.Watch(func(fd int) bool { return t.watcher.Watch(p.id, fd) })
	t.mu.Lock()
	p.tried, p.watched = true, ok
	t.mu.Unlock()
}

// follows reports whether a node must be watched by itself from now on, since
// its attributes may change without its name's directory seeing it: those of a
// directory by what is made in it, those of a file by another name of it.
// Preconditions: t.mu is held.
func (t *Tree) follows(n *node, st *lower.Stat) bool {
	switch {
	case t.watcher == nil || st == nil:
		return false
	case n.isDir():
		return !n.tried && n.lowerDir() != nil
	case !n.isDir() && st.Nlink > 1 && !n.linked:
		n.linked = true
		return true
	}
	return false
}

// watchNode watches a node by itself. What was read of it before is older than
// the watch.
func (t *Tree) watchNode(n *node) {
	t.mu.RLock()
	low, dir := n.low, n.lowerDir()
	t.mu.RUnlock()
	if n.isDir() {
		if dir != nil {
			t.watch(n, dir)
		}
		return
	}
	ok := low.Watch(func(fd int) bool { return t.watcher.Watch(n.id, fd) })
	t.mu.Lock()
	n.tried, n.watched = true, ok
	t.mu.Unlock()
}

// unfollow gives up what was held of the lower for a node that leaves the table.
// Preconditions: t.mu is held.
func (t *Tree) unfollow(n *node) {
	if n.watched && t.watcher != nil {
		t.watcher.Unwatch(n.id)
	}
	t.dropKept(n)
	if n.linked {
		delete(t.names, n.id)
	}
}

// Ttl returns how long the kernel may keep what it was told of a directory's
// entries, or of a file's attributes.
func (t *Tree) Ttl(id journal.NodeID) time.Duration {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := t.nodes[id]
	if n == nil {
		return 0
	}
	return n.ttl()
}

// ttl is Ttl. Preconditions: Tree.mu is held.
func (n *node) ttl() time.Duration {
	if n.own() && (n.ownContent() || n.low.Dir == nil) {
		return ttlLong
	}
	if n.linked && !n.watched {
		return ttlShort
	}
	if !n.isDir() && n.parent != nil {
		n = n.parent
	}
	if n.lowerDir() == nil || n.watched {
		return ttlLong
	}
	return ttlShort
}

// fingerprints is what tells that a lower file has changed.
type fingerprints struct {
	size         uint64
	mtime, ctime int64
}

// compare tells the kernel to drop what it has cached of a node whose lower part
// is not watched, if that has changed since it was last looked at, and reports
// whether it has. The kernel itself compares nothing: it drops cached data only
// when it is told to.
// Preconditions: t.mu is held, for reading at least.
func (t *Tree) compare(n *node, st *lower.Stat) bool {
	if st == nil || n.ttl() == ttlLong || n.mode != unix.S_IFREG && !n.isDir() {
		return false
	}
	now := &fingerprints{st.Size, st.Mtime, st.Ctime}
	before := n.seen.Swap(now)
	if before == nil || *before == *now {
		return false
	}
	t.lists.drop(n.id)
	t.notifier.Inode(n.id)
	return true
}
