package tree

import (
	"slices"
	"sync"

	"github.com/winkfs/winkfs/journal"
)

// maxLists is how many directories' listings are kept between the pieces in
// which the kernel asks for them.
const maxLists = 16

// listCache keeps the sorted listings of the directories that are being read.
// Names that vanish meanwhile stay in it and are left out when they are
// emitted; names that come are put in when the listing is next asked for. The zero value is empty.
type listCache struct {
	mu    sync.Mutex
	lists []cachedList // least recently begun first; protected by mu
}

type cachedList struct {
	id    journal.NodeID
	ready bool
	names []listed // never changed in place once handed out
	added []listed // came since, or while the listing was being made
}

func (c *listCache) find(id journal.NodeID) *cachedList {
	for i := range c.lists {
		if c.lists[i].id == id {
			return &c.lists[i]
		}
	}
	return nil
}

func (c *listCache) get(id journal.NodeID) ([]listed, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.find(id)
	if l == nil || !l.ready {
		return nil, false
	}
	l.settle()
	return l.names, true
}

// settle puts the names that came into their places.
func (l *cachedList) settle() {
	if len(l.added) == 0 {
		return
	}
	// Of several of one name the last counts.
	last := make(map[string]int, len(l.added))
	for i, a := range l.added {
		last[a.name] = i
	}
	var added []listed
	for i, a := range l.added {
		if last[a.name] == i {
			added = append(added, a)
		}
	}
	slices.SortFunc(added, compareListed)
	names := make([]listed, 0, len(l.names)+len(added))
	for _, n := range l.names {
		for len(added) > 0 && compareListed(added[0], n) < 0 {
			names, added = append(names, added[0]), added[1:]
		}
		if _, ok := last[n.name]; !ok {
			names = append(names, n)
		}
	}
	l.names, l.added = append(names, added...), nil
}

// begin says that a listing is being made: from here on, names that come are
// remembered.
func (c *listCache) begin(id journal.NodeID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(id)
	if len(c.lists) >= maxLists {
		c.lists = slices.Delete(c.lists, 0, 1)
	}
	c.lists = append(c.lists, cachedList{id: id})
}

// put stores the listing that begin announced.
func (c *listCache) put(id journal.NodeID, names []listed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.find(id)
	if l == nil {
		return
	}
	l.names, l.ready = names, true
}

// insert adds a name that came.
func (c *listCache) insert(id journal.NodeID, name string, node journal.NodeID, mode uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.find(id); l != nil {
		l.added = append(l.added, listed{cookie: cookieOf(name), name: name, id: node, mode: mode})
	}
}

func (c *listCache) drop(id journal.NodeID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(id)
}

func (c *listCache) removeLocked(id journal.NodeID) {
	c.lists = slices.DeleteFunc(c.lists, func(l cachedList) bool { return l.id == id })
}
