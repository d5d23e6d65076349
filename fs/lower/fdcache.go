package lower

import (
	"container/list"
	"sync"

	"golang.org/x/sys/unix"
)

// fdCache is a bounded least-recently-used set of open descriptors.
//
// Descriptors are closed without the lock, and those on file systems that may
// hang by a goroutine of their own: close(2) makes a FUSE or network file
// system flush, and whoever happens to push an old descriptor out has nothing
// to do with that file.
type fdCache struct {
	close func(fd int) error // unix.Close, but in tests; immutable

	mu    sync.Mutex
	max   int
	files map[fdKey]*fd // protected by mu
	lru   list.List     // of *fd without users, least recently used first; protected by mu
}

// fdKey names what a descriptor is open on: a directory by its Dir, any other
// file by the Dir it lies in and its name.
type fdKey struct {
	dir  *Dir
	name string // "" for the directory itself
}

// fd is an open descriptor. It stays open while users > 0.
type fd struct {
	n     int // the descriptor; immutable
	key   fdKey
	users int           // protected by fdCache.mu
	elem  *list.Element // in lru while users == 0; protected by fdCache.mu
	gone  bool          // dropped from files; close with the last user
}

func newFDCache(max int) *fdCache {
	return &fdCache{close: unix.Close, max: max, files: make(map[fdKey]*fd)}
}

// get returns the open descriptor for the key, or opens it. The caller must put
// it back.
func (c *fdCache) get(key fdKey, open func() (int, error)) (*fd, error) {
	c.mu.Lock()
	if f := c.use(key); f != nil {
		c.mu.Unlock()
		return f, nil
	}
	c.mu.Unlock()
	n, err := open()
	if err != nil {
		return nil, err
	}
	f, old := c.add(&fd{n: n, key: key, users: 1})
	c.closeAll(old)
	return f, nil
}

// add puts a descriptor that was just opened into the cache. It returns the one
// to use, which is another if some other goroutine was faster, and those to
// close.
func (c *fdCache) add(f *fd) (use *fd, old []*fd) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if there := c.use(f.key); there != nil {
		return there, []*fd{f}
	}
	c.files[f.key] = f
	return f, c.evictLocked()
}

// use returns the cached descriptor with one more user, or nil.
// Preconditions: c.mu is held.
func (c *fdCache) use(key fdKey) *fd {
	f := c.files[key]
	if f == nil {
		return nil
	}
	f.users++
	if f.elem != nil {
		c.lru.Remove(f.elem)
		f.elem = nil
	}
	return f
}

func (c *fdCache) put(f *fd) { c.closeAll(c.giveBack(f)) }

// giveBack takes a user from the descriptor and returns those to close.
func (c *fdCache) giveBack(f *fd) []*fd {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.users--
	switch {
	case f.users > 0:
		return nil
	case f.gone:
		return []*fd{f}
	}
	f.elem = c.lru.PushBack(f)
	return c.evictLocked()
}

func (c *fdCache) evictLocked() (old []*fd) {
	for len(c.files) > c.max && c.lru.Len() > 0 {
		f := c.lru.Front().Value.(*fd)
		c.forgetLocked(f)
		old = append(old, f)
	}
	return old
}

// forgetLocked takes the descriptor out of the cache and reports whether it has
// no user and is to be closed.
func (c *fdCache) forgetLocked(f *fd) (unused bool) {
	delete(c.files, f.key)
	f.gone = true
	if f.elem == nil {
		return false
	}
	c.lru.Remove(f.elem)
	f.elem = nil
	return true
}

// drop forgets the key's descriptor, so that the next get opens it anew.
func (c *fdCache) drop(key fdKey) {
	c.mu.Lock()
	f := c.files[key]
	unused := f != nil && c.forgetLocked(f)
	c.mu.Unlock()
	if unused {
		c.closeOne(f)
	}
}

// dropAll drops every descriptor.
func (c *fdCache) dropAll() {
	c.mu.Lock()
	var old []*fd
	for _, f := range c.files {
		if c.forgetLocked(f) {
			old = append(old, f)
		}
	}
	c.mu.Unlock()
	c.closeAll(old)
}

func (c *fdCache) closeAll(list []*fd) {
	for _, f := range list {
		c.closeOne(f)
	}
}

func (c *fdCache) closeOne(f *fd) {
	if f.key.dir.root.slow {
		go c.close(f.n)
		return
	}
	c.close(f.n)
}
