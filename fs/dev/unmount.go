package dev

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Unmount unmounts the workspace at the directory. Lazy takes it out of the
// namespace at once and lets those who use it go on until they are done;
// without it a mount in use stays, with ErrBusy. Only a mount of winkfs that is
// on top at that place is touched, else the error is ErrNotMounted.
func Unmount(dir string, lazy bool) error {
	path, err := resolveParent(dir)
	if err != nil {
		return err
	}
	e, err := top(path)
	if err != nil {
		return err
	}
	if e == nil || e.Type != FSType {
		return fmt.Errorf("unmount %q: %w", dir, ErrNotMounted)
	}
	if canMount() {
		return unmountDirect(path, lazy)
	}
	return unmountFusermount(path, lazy)
}

func unmountDirect(dir string, lazy bool) error {
	flags := unix.UMOUNT_NOFOLLOW
	if lazy {
		flags |= unix.MNT_DETACH
	}
	err := unix.Unmount(dir, flags)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("unmount %q: %w", dir, ErrBusy)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("unmount %q: %w: %w", dir, ErrPermission, err)
	}
	return fmt.Errorf("unmount %q: %w", dir, err)
}

func unmountFusermount(dir string, lazy bool) error {
	args := []string{"-u", "--", dir}
	if lazy {
		args = []string{"-u", "-z", "--", dir}
	}
	text, err := fusermount(nil, args...)
	if err == nil {
		return nil
	}
	err = fusermountError(dir, text, err)
	if errors.Is(err, ErrMountPoint) {
		return fmt.Errorf("unmount %q: %w: %s", dir, ErrPermission, text)
	}
	return fmt.Errorf("unmount: %w", err)
}

// resolveParent resolves symbolic links above the last component: the last
// one is the mount's root, which may be dead.
func resolveParent(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolve mount point: %w", err)
	}
	if path, err := filepath.EvalSymlinks(abs); err == nil {
		return path, nil
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", fmt.Errorf("resolve mount point: %w", err)
	}
	return filepath.Join(parent, filepath.Base(abs)), nil
}

// deadTimeout is how long a live daemon may take to answer a statfs.
const deadTimeout = 2 * time.Second

// IsStale reports whether the mount of winkfs at the directory is dead: nobody
// serves it any more. A daemon that does not answer in time is not dead.
func IsStale(dir string) bool {
	path, err := resolveParent(dir)
	if err != nil {
		return false
	}
	e, err := top(path)
	return err == nil && e != nil && e.Type == FSType && dead(path)
}

// dead asks for statfs, which the kernel never answers from a cache.
func dead(dir string) bool {
	answer := make(chan error, 1)
	go func() {
		var st unix.Statfs_t
		answer <- unix.Statfs(dir, &st)
	}()
	select {
	case err := <-answer:
		return errors.Is(err, unix.ENOTCONN)
	case <-time.After(deadTimeout):
		return false
	}
}

// Heal unmounts a dead mount of winkfs at the directory, lazily if something
// still holds it, since nothing works in it any more. It reports whether there
// was one; everything else it leaves alone.
func Heal(dir string) (bool, error) {
	if !IsStale(dir) {
		return false, nil
	}
	err := Unmount(dir, false)
	if errors.Is(err, ErrBusy) {
		err = Unmount(dir, true)
	}
	if err != nil {
		return false, fmt.Errorf("heal: %w", err)
	}
	return true, nil
}
