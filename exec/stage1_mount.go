package exec

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// doTmpfs mounts a tmpfs; the first one becomes the root of the tree.
func (t *tree) doTmpfs(s Step) error {
	var options []string
	for _, o := range strings.Split(s.Data, ",") {
		key, value, _ := strings.Cut(o, "=")
		options = append(options, key, value)
	}
	attrs := unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	if t.root >= 0 {
		return t.doMount(s.Target, "tmpfs", attrs, options...)
	}
	fd, err := newMount("tmpfs", attrs, options...)
	if err != nil {
		return err
	}
	t.root = fd
	for _, base := range bases {
		err = unix.MoveMount(fd, "", unix.AT_FDCWD, base, unix.MOVE_MOUNT_F_EMPTY_PATH)
		if err == nil {
			break
		}
	}
	return err
}

func (t *tree) doMount(target, fstype string, attrs int, options ...string) error {
	fd, err := newMount(fstype, attrs, options...)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return t.attach(fd, target)
}

// newMount makes a mount that is attached nowhere. Options are pairs of key and
// value; a key without a value is a flag.
func newMount(fstype string, attrs int, options ...string) (int, error) {
	fs, err := unix.Fsopen(fstype, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(fs) }()
	for i := 0; i < len(options); i += 2 {
		if options[i+1] == "" {
			err = unix.FsconfigSetFlag(fs, options[i])
		} else {
			err = unix.FsconfigSetString(fs, options[i], options[i+1])
		}
		if err != nil {
			return -1, fmt.Errorf("option %s: %w", options[i], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attrs)
}

func (t *tree) doAttach(i int, s Step) error {
	fd, ok := t.sources[i]
	if !ok {
		return unix.ENOENT
	}
	return t.attach(fd, s.Target)
}

// attach moves a detached mount to a path inside, which is made if it does not
// exist.
func (t *tree) attach(fd int, target string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	at, err := t.place(target, st.Mode&unix.S_IFMT == unix.S_IFDIR)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(at) }()
	return unix.MoveMount(fd, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// cloneTo attaches another instance of a mount.
func (t *tree) cloneTo(fd int, at int) error {
	clone, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(clone) }()
	return unix.MoveMount(clone, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// doReadonly makes a mount read-only, or a part of one by a bind of it on
// itself.
func (t *tree) doReadonly(s Step) error {
	fd, err := t.open(s.Target, unix.O_PATH)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if s.Target == "/" {
		return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr)
	}
	clone, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(clone) }()
	if err := unix.MountSetattr(clone, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return err
	}
	return unix.MoveMount(clone, "", fd, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// doMask covers a directory with an empty one and anything else with /dev/null.
func (t *tree) doMask(s Step) error {
	at, err := t.open(s.Target, unix.O_PATH)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(at) }()
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		empty, err := emptyDir()
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(empty) }()
		return unix.MoveMount(empty, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	}
	return t.cloneTo(t.null, at)
}

// emptyDir makes a detached read-only mount with nothing in it.
func emptyDir() (int, error) {
	return newMount("tmpfs", safeMount|unix.MOUNT_ATTR_NOEXEC, "size", "4k", "nr_inodes", "2", "mode", "0555")
}

// doPivot makes the tree the root of the mount namespace and lets go of the
// host's. pivot_root(2) describes the form with the same directory twice.
func (t *tree) doPivot() error {
	if err := unix.Fchdir(t.root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	t.inside = true
	return unix.Chdir("/")
}
