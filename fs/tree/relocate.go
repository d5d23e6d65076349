package tree

import (
	"slices"

	"github.com/winkfs/winkfs/fs/lower"
	"github.com/winkfs/winkfs/journal"
)

// What the host moves keeps its node, and what it puts in a file's place gets
// another. A node with upper state stays with the place that its changes were
// made at, not with the inode.

// maxKept bounds how many lower files that the host has deleted are held open
// for those who use them.
const maxKept = 512

// succeed puts a lower file into the place of one that the host has deleted,
// whose inode number it got. The kernel tells the two apart by their
// generation, but gives the references to both back under the one number.
// Preconditions: t.mu is held.
func (t *Tree) succeed(old *node, f found) *node {
	n := newNode(f)
	n.lookups = old.lookups
	t.nodes[f.id] = n
	t.lists.drop(n.id)
	t.unfollow(old)
	t.setName(old, nil, "")
	old.gone = true
	return n
}

// relocate takes in that a lower node was found at another place than before:
// the host has moved it, or it is another name of the same file.
// Preconditions: t.mu is held.
func (t *Tree) relocate(n *node, f found) {
	if n.up != nil || n.id == journal.RootID || f.low.Dir == nil {
		return
	}
	if f.st != nil && f.st.Nlink > 1 && !n.low.Same(f.low) {
		t.remember(n)
	}
	t.dropKept(n)
	n.low = f.low
	if n.dir != nil && f.dir != nil {
		n.dir.Move(f.dir)
	}
}

// maxNames bounds how many other names of a linked file are remembered.
const maxNames = 16

// remember notes another name of a linked file.
// Preconditions: t.mu is held.
func (t *Tree) remember(n *node) {
	names := t.names[n.id]
	known := slices.ContainsFunc(names, n.low.Same)
	if !known && len(names) < maxNames && n.low.Kept == nil && n.low.Dir != nil {
		t.names[n.id] = append(names, n.low)
	}
}

// otherName makes a linked file follow another of its names if the one that it
// follows is gone. It reports whether it did.
func (t *Tree) otherName(n *node) bool {
	t.mu.RLock()
	low, names := n.low, slices.Clone(t.names[n.id])
	t.mu.RUnlock()
	if len(names) == 0 || low.Dir == nil {
		return false
	}
	if _, err := low.Stat(); !isGone(err) {
		return false
	}
	i := slices.IndexFunc(names, func(l lower.File) bool { _, err := l.Stat(); return err == nil })
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.names, n.id)
	if i < 0 || n.up != nil {
		return false
	}
	n.low, t.names[n.id] = names[i], names[i+1:]
	return true
}

// keep holds on to a lower file that lost its name while the kernel refers to
// it. It reports whether it took the descriptor.
// Preconditions: t.mu is held.
func (t *Tree) keep(k *lower.Kept, dir *lower.Dir, name string) (*node, bool) {
	n := t.nodes[t.lowerID(k.Source(), k.Ino())]
	if n == nil || n.lookups == 0 || n.low.Kept != nil || !n.low.At(dir, name) || t.kept >= maxKept ||
		(n.isDir() && n.up != nil) { // which follows its place
		return nil, false
	}
	t.kept++
	n.low.Kept = k
	if n.dir != nil {
		n.dir.Keep(k)
	}
	return n, true
}

// dropKept undoes keep. Preconditions: t.mu is held.
func (t *Tree) dropKept(n *node) {
	if n.low.Kept == nil {
		return
	}
	t.kept--
	if n.dir != nil {
		n.dir.Keep(nil)
	}
	// Closing may wait for the disk, when the last reference deletes the file.
	go n.low.Kept.Close()
	n.low.Kept = nil
}

// resettle makes a directory with changes below it follow the lower directory
// that the host has put in the place of the one that it had. f is what lies at
// the place by now, if err is nil. It reports whether anything changed, for a
// node that is of that place.
// Preconditions: t.mu is held.
func (t *Tree) resettle(n *node, dir *lower.Dir, name string, f found, err error) bool {
	if n.up == nil || n.dir == nil || !n.low.At(dir, name) {
		return false
	}
	absent := err != nil || f.dir == nil
	known := n.low.Ino != 0
	other := !absent && (n.low.Ino != f.low.Ino || n.low.Btime != f.low.Btime)
	if other {
		n.low.Ino, n.low.Btime = f.low.Ino, f.low.Btime
		n.dir.Become(f.low.Ino)
	}
	if absent == n.absent && (!other || !known) {
		return false
	}
	n.absent, n.tried, n.watched = absent, false, false
	t.lists.drop(n.id)
	return true
}

// lookAgain does for a changed directory in a lower directory that is not
// watched what LowerChanged does for one that is.
func (t *Tree) lookAgain(p *node, dir *lower.Dir, name string, f found) found {
	low, err := t.lowerChild(dir, name)
	t.mu.RLock()
	n := t.nodes[f.id]
	same := n == nil || !n.low.At(dir, name) ||
		n.absent == (err != nil || low.dir == nil) && (err != nil || n.low.Ino == low.low.Ino && n.low.Btime == low.low.Btime)
	t.mu.RUnlock()
	if same {
		return f
	}
	t.LowerChanged(p.id, name)
	t.mu.RLock()
	defer t.mu.RUnlock()
	if n := t.nodes[f.id]; n != nil {
		entry := f.entry
		f = n.found()
		f.entry = entry
	}
	return f
}
