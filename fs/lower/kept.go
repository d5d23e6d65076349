package lower

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// Kept is a descriptor of a file or a directory whose name the host may have
// taken away: who still uses the file goes on seeing it. Safe for concurrent
// use.
type Kept struct {
	fs   *FS
	dir  *Dir // in which it was opened
	f    *fd
	once sync.Once
}

// Ino returns the inode number of what is kept.
func (k *Kept) Ino() uint64 { return k.f.ino }

// Source returns the number of the source that it was opened in.
func (k *Kept) Source() uint32 { return k.dir.source }

// Close gives the descriptor up. Uses after that are ErrStale.
func (k *Kept) Close() { k.once.Do(func() { k.fs.cache.put(k.f) }) }

func (k *Kept) with(fn func(fd int) error) error {
	if !k.fs.cache.ref(k.f) {
		return ErrStale
	}
	defer k.fs.cache.put(k.f)
	return fn(k.f.n)
}

func (k *Kept) stat() (Stat, error) {
	var sx unix.Statx_t
	err := k.with(func(fd int) error { return unix.Statx(fd, "", unix.AT_EMPTY_PATH, statMask, &sx) })
	if err != nil {
		return Stat{}, fmt.Errorf("stat kept lower file: %w", err)
	}
	return k.dir.convert(&sx), nil
}
