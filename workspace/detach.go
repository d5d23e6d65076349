package workspace

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// detached reaches a state directory by a copy of the mount that it lies on
// (open_tree(2)), as overlayfs does with its upper directory: what is left to be
// written down after umount(8) does not keep that mount busy. While the
// workspace is mounted, pin does.
type detached struct {
	dir    string // the state directory, as long as copied is open
	copied int
	pin    int
}

// detach copies the mount of a workspace's state root.
func detach(e *Entry) (*detached, error) {
	pin, err := unix.Open(stateRootOf(e), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open state root: %w", err)
	}
	const flags = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH
	copied, err := unix.OpenTree(pin, "", flags)
	if err != nil {
		unix.Close(pin)
		return nil, fmt.Errorf("copy mount of state root: %w", err)
	}
	dir := filepath.Join(fmt.Sprintf("/proc/self/fd/%d", copied), filepath.Base(e.Dir))
	return &detached{dir: dir, copied: copied, pin: pin}, nil
}

// release lets the mount of the state root go. It is called once.
func (d *detached) release() { unix.Close(d.pin) }

// close ends the use of the directory.
func (d *detached) close() { unix.Close(d.copied) }

// StateDir returns the path by which this process reaches the state directory.
func (w *Workspace) StateDir() string {
	if w.detached != nil {
		return w.detached.dir
	}
	return w.entry.Dir
}
