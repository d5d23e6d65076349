package tree

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
)

// Revert returns the changes that make some files of now as they are in then,
// and leave all else but the names that only held a file in its place. changed
// lists what differs from then to now, as
// ChangesOfNodes returns it, or a part of that. A file whose directory then does not exist now
// and is not reverted with it is an error.
//
// Both views must be of the same workspace and now must be its head.
func Revert(then, now *View, changed []Changed) ([]journal.Change, error) {
	r := reverter{
		then: then.l.state, now: now.l.state,
		nodes: map[journal.NodeID]*journal.Node{}, entries: map[entryKey]journal.Entry{}, back: map[entryKey]bool{},
	}
	for _, c := range changed {
		if err := r.file(then, now, c); err != nil {
			return nil, err
		}
	}
	r.links(then, now, changed)
	if err := r.names(now); err != nil {
		return nil, err
	}
	if err := r.check(now); err != nil {
		return nil, err
	}
	r.unpin(now)
	return r.changes(), nil
}

type entryKey struct {
	parent journal.NodeID
	name   string
}

// reverter collects the values to set, in the order in which they came up.
type reverter struct {
	then, now *journal.State
	nodes     map[journal.NodeID]*journal.Node
	nodeOrder []journal.NodeID
	entries   map[entryKey]journal.Entry
	order     []entryKey
	back      map[entryKey]bool // entries that lead to something then
}

func (r *reverter) file(then, now *View, c Changed) error {
	if c.New != nil {
		if _, err := r.entry(now, c.New.Path); err != nil {
			return err
		}
		r.node(c.New.ID(), r.then.Nodes[c.New.ID()])
	}
	if c.Old == nil {
		return nil
	}
	k, err := r.entry(then, c.Old.Path)
	if err != nil {
		return err
	}
	r.back[k] = true
	r.node(c.Old.ID(), r.then.Nodes[c.Old.ID()])
	return nil
}

// entry reverts the entry that a path has in one of the views.
func (r *reverter) entry(v *View, path string) (k entryKey, err error) {
	if path == "" {
		return k, nil
	}
	dir, name := splitPath(path)
	p, err := v.Find(dir)
	if err != nil {
		return k, fmt.Errorf("revert %s: %w", path, err)
	}
	k = entryKey{p.ID(), name}
	if _, ok := r.entries[k]; !ok {
		r.order = append(r.order, k)
	}
	r.entries[k] = r.then.Entries[k.parent][k.name]
	return k, nil
}

func splitPath(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}

func (r *reverter) node(id journal.NodeID, after *journal.Node) {
	if _, ok := r.nodes[id]; !ok {
		r.nodeOrder = append(r.nodeOrder, id)
	}
	r.nodes[id] = after
}

// links corrects the link counts of directories that are not reverted
// themselves but gain or lose a subdirectory.
func (r *reverter) links(then, now *View, changed []Changed) {
	for _, c := range changed {
		if c.New != nil && c.New.f.mode == unix.S_IFDIR {
			r.addLink(now, c.New.Path, -1)
		}
		if c.Old != nil && c.Old.f.mode == unix.S_IFDIR {
			r.addLink(then, c.Old.Path, +1)
		}
	}
}

func (r *reverter) addLink(v *View, path string, delta int) {
	if path == "" {
		return
	}
	dir, _ := splitPath(path)
	p, err := v.Find(dir)
	if err != nil {
		return
	}
	if _, ok := r.nodes[p.ID()]; ok {
		// Reverted with its own count, or corrected before.
		if r.nodes[p.ID()] == r.then.Nodes[p.ID()] {
			return
		}
	}
	cur := r.now.Nodes[p.ID()]
	if edited := r.nodes[p.ID()]; edited != nil {
		cur = edited
	}
	if cur == nil || !cur.Own {
		return
	}
	up := cur.Clone()
	up.Attr.Nlink = uint32(int(up.Attr.Nlink) + delta)
	r.node(p.ID(), up)
}

// ErrOtherName says that a file can't be returned to what it was because it has
// a name since then that is not to be returned with it.
var ErrOtherName = errors.New("it has another name since")

// names reverts the entries that hold a file in the place where the lower has
// it: without state the file is found there by itself, and the entry would lead
// nowhere. Other names that the file has got since must be among what is
// reverted.
func (r *reverter) names(now *View) error {
	var held []entryKey
	for parent, entries := range r.now.Entries {
		for name, e := range entries {
			k := entryKey{parent, name}
			_, reverted := r.nodes[e.Node]
			_, done := r.entries[k]
			if e.Kind != journal.EntryNode || !reverted || done || r.then.Entries[parent][name] == e {
				continue
			}
			if !r.holds(now, k, e.Node) {
				return fmt.Errorf("return the file named %q: name all its names: %w", name, ErrOtherName)
			}
			held = append(held, k)
		}
	}
	slices.SortFunc(held, func(a, b entryKey) int { return cmp.Or(cmp.Compare(a.parent, b.parent), cmp.Compare(a.name, b.name)) })
	for _, k := range held {
		r.order = append(r.order, k)
		r.entries[k] = r.then.Entries[k.parent][k.name]
	}
	return nil
}

// holds reports whether the name leads to the node also without its entry.
func (r *reverter) holds(now *View, k entryKey, id journal.NodeID) bool {
	if r.then.Entries[k.parent][k.name].Kind != journal.EntryNone {
		return false
	}
	now.mu.Lock()
	p, ok := now.l.byID(k.parent)
	now.mu.Unlock()
	dir := visible(r.then.Nodes[k.parent], p.dir)
	if !ok || dir == nil {
		return false
	}
	f, err := now.l.lowerChild(dir, k.name)
	if err != nil {
		return false
	}
	now.mu.Lock()
	defer now.mu.Unlock()
	now.l.attach(&f)
	return f.id == id
}

// unpin frees the directories that were only held in place for what is reverted
// below them: they follow the lower again, also when the host removes them.
func (r *reverter) unpin(now *View) {
	at := make(map[journal.NodeID]entryKey) // where the held directories lie
	left := make(map[journal.NodeID]int)    // how many names something is said of in each, afterwards
	for parent, entries := range r.now.Entries {
		for name, e := range entries {
			if e.Kind == journal.EntryNode && r.pinned(e.Node) {
				at[e.Node] = entryKey{parent, name}
			}
			left[parent] += said(e)
		}
	}
	for _, k := range r.order {
		left[k.parent] += said(r.entries[k]) - said(r.now.Entries[k.parent][k.name])
	}
	for i := 0; i < len(r.order); i++ { // grows by those above
		id := r.order[i].parent
		k, ok := at[id]
		if !ok || left[id] > 0 || !r.holds(now, k, id) {
			continue
		}
		delete(at, id)
		left[k.parent]--
		r.node(id, nil)
		r.order = append(r.order, k)
		r.entries[k] = journal.Entry{}
	}
}

func said(e journal.Entry) int {
	if e.Kind == journal.EntryNone {
		return 0
	}
	return 1
}

// pinned reports whether a node is a directory that is held in place and nothing
// else, and was not then.
func (r *reverter) pinned(id journal.NodeID) bool {
	up := r.now.Nodes[id]
	if _, reverted := r.nodes[id]; reverted || up == nil || r.then.Nodes[id] != nil {
		return false
	}
	return up.Attr.Mode&unix.S_IFMT == unix.S_IFDIR && !up.Own && !up.Opaque
}

// check refuses entries in directories that are not there: neither now nor
// brought back.
func (r *reverter) check(now *View) error {
	for _, k := range r.order {
		if !r.back[k] || k.parent == journal.RootID {
			continue
		}
		up, reverted := r.nodes[k.parent]
		if !reverted {
			up = now.l.state.Nodes[k.parent]
		}
		if up != nil && up.Own && up.Attr.Nlink == 0 {
			return fmt.Errorf("bring back %q: its directory was removed, too: name the directory: %w", k.name, ErrNotExist)
		}
	}
	return nil
}

func (r *reverter) changes() []journal.Change {
	var out []journal.Change
	for _, id := range r.nodeOrder {
		before, after := r.now.Nodes[id], r.nodes[id]
		if before == nil && after == nil {
			continue
		}
		out = append(out, journal.Change{Node: &journal.NodeChange{ID: id, Before: before, After: after}})
	}
	for _, k := range r.order {
		out = append(out, journal.Change{Entry: &journal.EntryChange{Parent: k.parent, Name: k.name, Before: r.now.Entries[k.parent][k.name], After: r.entries[k]}})
	}
	for _, id := range r.nodeOrder {
		out = append(out, r.contentChange(id)...)
	}
	return out
}

// contentChange returns the change of a node's whole content, none if it is
// empty in both states.
func (r *reverter) contentChange(id journal.NodeID) []journal.Change {
	before, after := extents(r.now.Contents[id]), extents(r.then.Contents[id])
	if len(before) == 0 && len(after) == 0 {
		return nil
	}
	end := uint64(0)
	for _, es := range [][]journal.Extent{before, after} {
		if len(es) > 0 {
			end = max(end, es[len(es)-1].End())
		}
	}
	return []journal.Change{{Content: &journal.ContentChange{ID: id, Len: end, Before: before, After: after}}}
}

func extents(c *journal.Content) []journal.Extent {
	if c == nil {
		return nil
	}
	return c.Range(0, ^uint64(0))
}
