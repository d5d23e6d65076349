package main

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/dev"
	"github.com/winkfs/winkfs/workspace"
)

// remountFlags are mount(8)'s words for flags of mount(2), with what they set and
// what they clear.
var remountFlags = map[string]struct{ set, clear uintptr }{
	"ro": {unix.MS_RDONLY, 0}, "rw": {0, unix.MS_RDONLY},
	"nosuid": {unix.MS_NOSUID, 0}, "suid": {0, unix.MS_NOSUID},
	"nodev": {unix.MS_NODEV, 0}, "dev": {0, unix.MS_NODEV},
	"noexec": {unix.MS_NOEXEC, 0}, "exec": {0, unix.MS_NOEXEC},
	"noatime": {unix.MS_NOATIME, unix.MS_RELATIME}, "atime": {0, unix.MS_NOATIME},
	"relatime": {unix.MS_RELATIME, unix.MS_NOATIME}, "strictatime": {unix.MS_STRICTATIME, unix.MS_NOATIME | unix.MS_RELATIME},
	"nodiratime": {unix.MS_NODIRATIME, 0}, "diratime": {0, unix.MS_NODIRATIME},
}

// kernelWords are words that mount(8) takes from the mount table.
var kernelWords = []string{"remount", "user_id", "group_id", "default_permissions", "max_read", "blksize", "rootmode", "fd", "subtype"}

// remounts reports whether the options ask for a change of a mount.
func (o *mountOptions) remounts() bool {
	return slices.ContainsFunc(o.options, func(list string) bool { return slices.Contains(splitWords(list, ','), "remount") })
}

// runRemount changes the flags of a mounted workspace, as mount -o remount does.
// What else the options say is the workspace's and stays as it is.
func runRemount(o mountOptions, args []string) error {
	if len(args) == 0 {
		return usage("-o remount needs a mount point")
	}
	dir, err := workspace.Mountpoint(args[len(args)-1])
	if err != nil {
		return err
	}
	m, err := mountedAt(dir)
	if err != nil || o.fake {
		return err
	}
	flags, err := o.remountFlags()
	if err != nil {
		return err
	}
	// A mount that was made without them has files for which this is the only
	// protection.
	has := strings.Split(m.Options, ",")
	for _, kept := range []string{"nosuid", "nodev"} {
		if slices.Contains(has, kept) {
			flags |= remountFlags[kept].set
		}
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|flags, ""); err != nil {
		return workspace.Wrap(workspace.CodeFailure, err, "remount %s", dir).At(dir).
			Hinted("only root can, and only while nobody has a file open to write, if it is to be read-only")
	}
	return nil
}

// mountedAt returns the workspace's mount at the directory that is on top.
func mountedAt(dir string) (*dev.MountEntry, error) {
	mounts, err := dev.Mounts()
	if err != nil {
		return nil, err
	}
	for _, m := range slices.Backward(mounts) {
		if m.Dir == dir {
			return &m, nil
		}
	}
	return nil, workspace.Fail(workspace.CodeNotMounted, "remount %s: no workspace is mounted there", dir).At(dir)
}

// remountFlags returns the flags that the words make, the later over the earlier.
func (o *mountOptions) remountFlags() (flags uintptr, err error) {
	for _, list := range o.options {
		for _, w := range splitWords(list, ',') {
			key, _, _ := strings.Cut(w, "=")
			if f, ok := remountFlags[key]; ok {
				flags = flags&^f.clear | f.set
				continue
			}
			if slices.Contains(kernelWords, key) {
				continue
			}
			var known mountOptions
			if err := known.word(&env{}, w); err != nil {
				return 0, err
			}
		}
	}
	return flags, nil
}
