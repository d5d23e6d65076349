package exec

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openSources opens what the host contributes, before the new root covers any
// of it.
func (t *tree) openSources() (err error) {
	for i, s := range t.plan.Steps {
		switch s.Op {
		case OpBind:
			err = t.openSource(i, s, safeMount, unix.AT_RECURSIVE)
		case OpDevice:
			err = t.openSource(i, s, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, 0)
			if err == nil {
				err = checkDevice(t.sources[i], s)
			}
		case OpWorkspace:
			err = t.openWorkspace(i, s)
		case OpCopy:
			t.copies[i], err = os.ReadFile(s.Source)
		}
		if err != nil && !(s.Optional && isMissing(err)) {
			return stepError(s, err)
		}
	}
	return nil
}

// openSource clones a mount of the host's tree and sets its attributes before
// it is visible anywhere.
func (t *tree) openSource(i int, s Step, attrs uint64, flags uint) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, s.Source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|flags)
	if err != nil {
		return err
	}
	attr := unix.MountAttr{Attr_set: attrs, Propagation: unix.MS_PRIVATE}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|flags, &attr); err != nil {
		_ = unix.Close(fd)
		return fmt.Errorf("set attributes: %w", err)
	}
	t.sources[i] = fd
	if s.Source == "/dev/null" {
		t.null = fd
	}
	return nil
}

// openWorkspace takes the workspace from the descriptors that the daemon passed,
// one for each place, or from its path, and makes sure that it is the mount
// that was meant.
func (t *tree) openWorkspace(i int, s Step) error {
	if t.plan.IDs.Map {
		t.sources[i] = mountFD + t.shown
		t.shown++
		return t.verifyWorkspace(t.sources[i])
	}
	fd, err := cloneWorkspace(s.Source)
	if err != nil {
		return err
	}
	t.sources[i] = fd
	return t.verifyWorkspace(fd)
}

// cloneWorkspace makes a detached instance of the mount at path.
func cloneWorkspace(path string) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err == unix.EINVAL {
		return -1, refuse(layerMount, "unmount what lies below "+path, "something is mounted inside the workspace's mount")
	}
	if err != nil {
		return -1, err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("set attributes: %w", err)
	}
	return fd, nil
}

func (t *tree) verifyWorkspace(fd int) error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if fs.Type != t.plan.MountType || st.Dev != t.plan.MountDev {
		return refuse(layerMount, "mount the workspace again",
			"%s is not the workspace's mount (type %#x device %d, expected type %#x device %d)",
			t.plan.Mount, fs.Type, st.Dev, t.plan.MountType, t.plan.MountDev)
	}
	return nil
}

// checkDevice makes sure that a descriptor is the device that it is called.
func checkDevice(fd int, s Step) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	number := fmt.Sprintf("%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev))
	if st.Mode&unix.S_IFMT != unix.S_IFCHR || number != s.Data {
		return refuse(layerDev, "", "%s is not the device %s", s.Source, s.Data)
	}
	return nil
}

func isMissing(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
}
