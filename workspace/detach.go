package workspace

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// detached reaches a state directory by a copy of the mount that it lies on
// (open_tree(2)), as overlayfs does with its layers: what is left to be written
// down after umount(8) does not keep that mount busy, nor does the workspace
// while it is mounted. A descriptor that kept it busy until then would be closed
// some time after umount(2) has returned, and who unmounts both would lose the
// race on a busy machine.
type detached struct {
	dir    string // the state directory, as long as copied is open
	copied int
}

// detach copies the mount of a workspace's state root.
func detach(e *Entry) (*detached, error) {
	copied, err := unix.OpenTree(unix.AT_FDCWD, stateRootOf(e), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("copy mount of state root: %w", err)
	}
	dir := filepath.Join(fmt.Sprintf("/proc/self/fd/%d", copied), filepath.Base(e.Dir))
	return &detached{dir: dir, copied: copied}, nil
}

// close ends the use of the directory.
func (d *detached) close() { unix.Close(d.copied) }

// StateDir returns the path by which this process reaches the state directory.
func (w *Workspace) StateDir() string {
	if w.detached != nil {
		return w.detached.dir
	}
	return w.entry.Dir
}
