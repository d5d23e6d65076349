package lower

import (
	"slices"
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
	files map[fdKey][]*fd // by name, the latest last: a name may have led to several; protected by mu
	count int             // of files; protected by mu
	takes [256]taken      // by takeKey; protected by mu
	lru   fdList          // those without users, least recently used first; protected by mu
}

// taken is what take was last called with for one of the names that share it.
type taken struct {
	times uint64
	but   uint64
}

func takeKey(name string) uint8 {
	h := uint32(2166136261) // FNV-1a
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return uint8(h ^ h>>8 ^ h>>16)
}

// fdKey names what a descriptor is open on: a name in a directory, open as a
// directory or as a file.
type fdKey struct {
	dir   *Dir
	name  string
	isDir bool
}

// fd is an open descriptor. It stays open while users > 0.
type fd struct {
	n     int    // the descriptor; immutable
	ino   uint64 // what it is open on; immutable
	key   fdKey
	users int  // protected by fdCache.mu
	gone  bool // dropped from files; close with the last user
	// Neighbours in lru while users == 0; protected by fdCache.mu.
	before, after *fd
	listed        bool
}

func newFDCache(max int) *fdCache {
	return &fdCache{close: unix.Close, max: max, files: make(map[fdKey][]*fd)}
}

// get returns the open descriptor for the key, or opens it. One that is open on
// another inode than ino is not taken, unless ino is 0. The caller must put it
// back.
func (c *fdCache) get(key fdKey, ino uint64, open func() (int, uint64, error)) (*fd, error) {
	c.mu.Lock()
	if f := c.useLocked(key, ino); f != nil {
		c.mu.Unlock()
		return f, nil
	}
	times := c.takes[takeKey(key.name)].times
	c.mu.Unlock()
	n, opened, err := open()
	if err != nil {
		return nil, err
	}
	f, old := c.add(&fd{n: n, ino: opened, key: key, users: 1}, times)
	c.closeAll(old)
	return f, nil
}

// add puts a descriptor that was just opened into the cache, unless its name was
// taken since and led to another file then. It returns the one to use, which is
// another if some other goroutine was faster, and those to close.
func (c *fdCache) add(f *fd, times uint64) (use *fd, old []*fd) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if there := c.useLocked(f.key, f.ino); there != nil {
		return there, []*fd{f}
	}
	if last := c.takes[takeKey(f.key.name)]; last.times != times && last.but != f.ino {
		f.gone = true
		return f, nil
	}
	c.files[f.key] = append(c.files[f.key], f)
	c.count++
	return f, c.evictLocked()
}

// useLocked returns the cached descriptor with one more user, or nil.
// Preconditions: c.mu is held.
func (c *fdCache) useLocked(key fdKey, ino uint64) *fd {
	for _, f := range slices.Backward(c.files[key]) {
		if ino == 0 || f.ino == ino {
			c.refLocked(f)
			return f
		}
	}
	return nil
}

// refLocked adds a user.
// Preconditions: c.mu is held; f is open.
func (c *fdCache) refLocked(f *fd) {
	f.users++
	c.lru.remove(f)
}

// take removes a descriptor of the key's from the cache and returns it with one
// more user, nil if there is none or only one that is open on the inode but. It
// is closed when the last user puts it back.
func (c *fdCache) take(key fdKey, but uint64) *fd {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := &c.takes[takeKey(key.name)]
	last.times, last.but = last.times+1, but
	i := slices.IndexFunc(c.files[key], func(f *fd) bool { return f.ino != but })
	if i < 0 {
		return nil
	}
	f := c.files[key][i]
	c.refLocked(f)
	c.forgetLocked(f)
	return f
}

// ref adds a user to a descriptor that was taken. It reports false if it is
// closed already.
func (c *fdCache) ref(f *fd) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.users == 0 {
		return false
	}
	f.users++
	return true
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
	c.lru.push(f)
	return c.evictLocked()
}

func (c *fdCache) evictLocked() (old []*fd) {
	for c.count > c.max && c.lru.first != nil {
		f := c.lru.first
		c.forgetLocked(f)
		old = append(old, f)
	}
	return old
}

// forgetLocked takes the descriptor out of the cache and reports whether it has
// no user and is to be closed.
func (c *fdCache) forgetLocked(f *fd) (unused bool) {
	rest := slices.DeleteFunc(c.files[f.key], func(g *fd) bool { return g == f })
	if len(rest) == 0 {
		delete(c.files, f.key)
	} else {
		c.files[f.key] = rest
	}
	c.count--
	f.gone = true
	return c.lru.remove(f)
}

// dropAll drops every descriptor.
func (c *fdCache) dropAll() {
	c.mu.Lock()
	var old []*fd
	for _, list := range c.files {
		for _, f := range slices.Clone(list) {
			if c.forgetLocked(f) {
				old = append(old, f)
			}
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
