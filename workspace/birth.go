package workspace

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// incompleteFile marks a directory of the state root that is being made or
// removed. Without workspace.yaml beside it, and with nobody who holds the
// directory's lock, it is what a crash left: sweep removes it. A directory that
// lost its workspace.yaml in another way has no mark and is left alone.
const incompleteFile = "incomplete"

// snapPrefix begins the names of directories that hold a workspace's journal
// as it was at some moment, for as long as a command reads it.
const snapPrefix = "snap-"

// birth is a directory of the state root that its maker holds the lock of.
type birth struct {
	r   *Registry
	dir string
	f   *os.File // the directory, locked
}

// begin makes a directory that doesn't count as a workspace yet. It first
// removes what crashes left of earlier ones.
func (r *Registry) begin(name string) (*birth, error) {
	if err := os.MkdirAll(r.root, 0o700); err != nil {
		return nil, fmt.Errorf("make state root: %w", err)
	}
	unlock, err := r.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	r.sweep()
	b := &birth{r: r, dir: filepath.Join(r.root, name)}
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	if err := b.hold(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(b.dir))
	}
	return b, nil
}

// hold takes the directory's lock and marks it. The state root is locked.
func (b *birth) hold() error {
	f, err := os.Open(b.dir)
	if err != nil {
		return fmt.Errorf("open state directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return fmt.Errorf("lock state directory: %w", err)
	}
	b.f = f
	return os.WriteFile(filepath.Join(b.dir, incompleteFile), nil, 0o600)
}

// end makes the directory a workspace with the configuration. The name is
// checked again: another may have taken it meanwhile.
func (b *birth) end(cfg *Config) error {
	unlock, err := b.r.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := b.r.checkName(cfg.Name); err != nil {
		return err
	}
	if err := cfg.freeze(b.dir); err != nil {
		return err
	}
	// It is a workspace; the mark means nothing any more.
	_ = os.Remove(filepath.Join(b.dir, incompleteFile))
	b.f.Close()
	return syncDir(b.r.root)
}

// abandon removes the directory.
func (b *birth) abandon() error {
	defer b.f.Close()
	return os.RemoveAll(b.dir)
}

// lock takes the state root's lock, which is held for short changes of the set
// of workspaces only.
func (r *Registry) lock() (unlock func(), err error) {
	f, err := os.Open(r.root)
	if err != nil {
		return nil, fmt.Errorf("open state root: %w", err)
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock state root: %w", err)
	}
	return func() { f.Close() }, nil
}

// sweep removes directories that a crash left half-made or half-removed. The
// state root is locked, so none is between its making and its lock.
func (r *Registry) sweep() {
	names, err := os.ReadDir(r.root)
	if err != nil {
		return
	}
	for _, n := range names {
		if n.IsDir() && (strings.HasPrefix(n.Name(), dirPrefix) || strings.HasPrefix(n.Name(), snapPrefix)) {
			sweepDir(filepath.Join(r.root, n.Name()))
		}
	}
}

// sweepDir removes one directory if it is incomplete and nobody's.
func sweepDir(dir string) {
	if !incomplete(dir) {
		_ = unix.Rmdir(dir) // only an empty one, which was not even marked
		return
	}
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && incomplete(dir) {
		_ = os.RemoveAll(dir)
	}
}

// incomplete reports whether the directory is marked and no workspace.
func incomplete(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, configFile))
	return errors.Is(err, iofs.ErrNotExist) && exists(filepath.Join(dir, incompleteFile))
}
