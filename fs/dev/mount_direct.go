package dev

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const devicePath = "/dev/fuse"

// mountDirect opens the device and mounts it by mount(2). The directory is
// held by a descriptor, so that nobody can put another one in its place
// between looking and mounting.
func mountDirect(dir string, o options) (int, error) {
	at, err := openDir(dir)
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	fd, err := openDevice()
	if err != nil {
		return -1, err
	}
	err = unix.Mount(o.source, fmt.Sprintf("/proc/self/fd/%d", at), FSType, directFlags(o), directData(fd, o))
	if err != nil {
		unix.Close(fd)
		return -1, mountError(dir, err)
	}
	return fd, nil
}

// directFlags is mount(2)'s flags.
func directFlags(o options) uintptr {
	var flags uintptr
	for _, f := range []struct {
		on  bool
		bit uintptr
	}{{!o.suid, unix.MS_NOSUID}, {!o.dev, unix.MS_NODEV}, {o.noExec, unix.MS_NOEXEC}, {o.readOnly, unix.MS_RDONLY}} {
		if f.on {
			flags |= f.bit
		}
	}
	return flags
}

// directData is mount(2)'s data for FUSE. The owner is given as the process
// sees itself: in a user namespace these are ids of that namespace.
func directData(fd int, o options) string {
	data := []string{
		fmt.Sprintf("fd=%d", fd),
		fmt.Sprintf("rootmode=%o", unix.S_IFDIR),
		fmt.Sprintf("user_id=%d", os.Geteuid()),
		fmt.Sprintf("group_id=%d", os.Getegid()),
		fmt.Sprintf("max_read=%d", MaxWrite),
		"default_permissions",
	}
	if o.allowOther {
		data = append(data, "allow_other")
	}
	return strings.Join(data, ",")
}

func openDir(dir string) (int, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("mount %q: %w: %w", dir, ErrMountPoint, err)
	}
	return fd, nil
}

func openDevice() (int, error) {
	fd, err := unix.Open(devicePath, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, deviceError(err)
	}
	return fd, nil
}

// deviceError tells how to mend a device that can't be opened.
func deviceError(err error) error {
	mend := "see dmesg"
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		mend = "allow it to users (chmod 666 /dev/fuse), install fusermount3, or in a container pass --device /dev/fuse"
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		mend = "load the module (modprobe fuse), or in a container pass --device /dev/fuse"
	}
	return fmt.Errorf("open %s: %w: %w: %s", devicePath, ErrNoDevice, err, mend)
}

// mountError sorts mount(2)'s errors.
func mountError(dir string, err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("mount %q: %w: %w", dir, ErrPermission, err)
	case errors.Is(err, unix.ENODEV):
		return deviceError(err)
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("mount %q: %w: %w", dir, ErrMountPointBusy, err)
	}
	return fmt.Errorf("mount %q: %w", dir, err)
}
