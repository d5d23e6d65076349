package lower

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// OpenSource opens a source directory for FS.Add. The last component must not be
// a symbolic link.
//
// Where the process may, the descriptor is open on a copy of the mount that is
// read-only and moves no access times: O_NOATIME does not reach readlink(2), and
// the kernel then guarantees what the package promises. What the host mounts
// below the source later does not show there. A source that has mounts below it
// already is opened itself, since a copy would either show what they hide or
// keep them busy.
func OpenSource(dir string) (int, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return -1, fmt.Errorf("open source: %w", err)
	}
	if mountsBelow(dir) {
		return fd, nil
	}
	copied, err := copyMount(fd)
	if err != nil {
		return fd, nil
	}
	unix.Close(fd)
	return copied, nil
}

// mountsBelow reports whether something is mounted below the directory, or may
// be (proc_pid_mountinfo(5)).
func mountsBelow(dir string) bool {
	list, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || !filepath.IsAbs(dir) {
		return true
	}
	below := strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace(strings.TrimSuffix(dir, "/")) + "/"
	for line := range strings.Lines(string(list)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], below) && f[4] != below {
			return true
		}
	}
	return false
}

// copyMount returns a descriptor of the same directory in a detached copy of the
// mount (open_tree(2), mount_setattr(2)). It goes away with its last descriptor.
func copyMount(fd int) (int, error) {
	const flags = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH
	n, err := unix.OpenTree(fd, "", flags)
	if err != nil {
		return -1, err
	}
	attr := unix.MountAttr{
		Attr_set:    unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOATIME,
		Attr_clr:    unix.MOUNT_ATTR__ATIME,
		Propagation: unix.MS_PRIVATE,
	}
	if err := unix.MountSetattr(n, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		unix.Close(n)
		return -1, err
	}
	return n, nil
}
