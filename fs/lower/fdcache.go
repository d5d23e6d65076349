package lower

import (
	"container/list"
	"sync"

	"golang.org/x/sys/unix"
)

// fdCache is a bounded least-recently-used set of open descriptors.
type fdCache struct {
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
	n     int // the descriptor
	key   fdKey
	users int           // protected by fdCache.mu
	elem  *list.Element // in lru while users == 0; protected by fdCache.mu
	gone  bool          // dropped from files; close with the last user
}

func newFDCache(max int) *fdCache {
	return &fdCache{max: max, files: make(map[fdKey]*fd)}
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
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.use(key); f != nil { // another goroutine was faster
		unix.Close(n)
		return f, nil
	}
	f := &fd{n: n, key: key, users: 1}
	c.files[key] = f
	c.evictLocked()
	return f, nil
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

func (c *fdCache) put(f *fd) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.users--
	if f.users > 0 {
		return
	}
	if f.gone {
		unix.Close(f.n)
		return
	}
	f.elem = c.lru.PushBack(f)
	c.evictLocked()
}

func (c *fdCache) evictLocked() {
	for len(c.files) > c.max && c.lru.Len() > 0 {
		c.dropLocked(c.lru.Front().Value.(*fd))
	}
}

func (c *fdCache) dropLocked(f *fd) {
	delete(c.files, f.key)
	f.gone = true
	if f.elem != nil {
		c.lru.Remove(f.elem)
		f.elem = nil
		unix.Close(f.n)
	}
}

// drop forgets the key's descriptor, so that the next get opens it anew.
func (c *fdCache) drop(key fdKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.files[key]; f != nil {
		c.dropLocked(f)
	}
}

// closeAll drops every descriptor.
func (c *fdCache) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.files {
		c.dropLocked(f)
	}
}
