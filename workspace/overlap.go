package workspace

import (
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/dev"
)

// checkStateRoot refuses sources that overlap the state root: the workspace
// would see, and record, its own journal. A workspace over the mount of
// another is refused, too: what it is based on would not lie still.
func (c *Config) checkStateRoot(root string) error {
	root = resolved(root)
	mounts, err := dev.Mounts()
	if err != nil {
		return err
	}
	for _, dir := range c.dirs() {
		for _, m := range mounts {
			if within(dir, m.Dir) {
				return overlap(dir, "the source lies in the mount of workspace %s", strings.TrimPrefix(m.Source, "winkfs:")).
					Hinted("name that workspace's own source")
			}
		}
	}
	for _, dir := range c.dirs() {
		switch {
		case dir == root:
			return overlap(dir, "the source is the state directory").Hinted("choose another state directory by --state-dir or WINKFS_STATE_DIR")
		case within(root, dir):
			return overlap(dir, "the state directory %s lies inside the source, so the workspace would contain its own journal", root).
				Hinted("choose another state directory by --state-dir or WINKFS_STATE_DIR")
		case within(dir, root):
			return overlap(dir, "the source lies inside the state directory %s", root).Hinted("choose another source")
		}
	}
	return nil
}

func overlap(path, format string, args ...any) *Error {
	return Fail(CodeUsage, "use "+path+": "+format, args...).At(path)
}

// Mountpoint returns the mount point without symbolic links. One that a dead
// daemon left behind is cleared first.
func Mountpoint(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", Wrap(CodeUsage, err, "find mount point %s", path)
	}
	if _, err := Heal(abs); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, iofs.ErrNotExist) {
		return "", Fail(CodeUsage, "find mount point: %s does not exist", path).At(path).Hinted("mkdir -p %s", path)
	}
	if err != nil {
		return "", Wrap(CodeUsage, err, "find mount point").At(path)
	}
	fi, err := os.Stat(real)
	if err != nil {
		return "", Wrap(CodeUsage, err, "find mount point").At(path)
	}
	if !fi.IsDir() {
		return "", Fail(CodeUsage, "find mount point: %s is not a directory", path).At(path)
	}
	return real, nil
}

// CheckMount refuses a mount point that overlaps a source or the state
// directory, that something is mounted on, or that isn't empty.
func CheckMount(root string, cfg *Config, mountpoint string) error {
	root = resolved(root)
	private := filepath.Dir(mountpoint) == filepath.Join(root, dirPrefix+cfg.ID) // of a run
	if !private && (within(mountpoint, root) || within(root, mountpoint)) {
		return overlap(mountpoint, "the mount point and the state directory %s lie inside each other", root)
	}
	for _, dir := range cfg.dirs() {
		host := resolved(dir)
		switch {
		case host == mountpoint:
			return overlap(mountpoint, "the mount point is the source itself, which must stay reachable").
				Hinted("mount elsewhere; `winkfs run` shows a workspace at the source's own path")
		case within(mountpoint, host):
			return overlap(mountpoint, "the mount point lies inside the source %s, so the workspace would contain itself", host)
		case within(host, mountpoint):
			return overlap(mountpoint, "the source %s lies inside the mount point, which would hide it", host)
		}
	}
	return checkFree(mountpoint)
}

// checkFree refuses a mount point in use.
func checkFree(mountpoint string) error {
	mounts, err := dev.Mounts()
	if err != nil {
		return err
	}
	for _, m := range mounts {
		if m.Dir == mountpoint {
			return Fail(CodeUsage, "mount at %s: workspace %s is mounted there already", mountpoint, strings.TrimPrefix(m.Source, "winkfs:")).
				At(mountpoint).Hinted("winkfs umount %s", mountpoint)
		}
	}
	var st unix.Statx_t
	err = unix.Statx(unix.AT_FDCWD, mountpoint, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &st)
	if err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return Fail(CodeUsage, "mount at %s: something is mounted there already", mountpoint).At(mountpoint).Hinted("choose another mount point")
	}
	return checkEmpty(mountpoint)
}

func checkEmpty(mountpoint string) error {
	f, err := os.Open(mountpoint)
	if err != nil {
		return Wrap(CodeUsage, err, "look into mount point").At(mountpoint)
	}
	defer f.Close()
	names, _ := f.Readdirnames(1)
	if len(names) > 0 {
		return Fail(CodeUsage, "mount at %s: the directory is not empty, and the mount would hide what is in it", mountpoint).
			At(mountpoint).Hinted("choose an empty directory")
	}
	return nil
}

// Heal unmounts what a dead daemon left mounted at the directory, and reports
// whether there was something. Other mounts are left alone.
func Heal(dir string) (bool, error) {
	if dir == "" {
		return false, nil
	}
	healed, err := dev.Heal(dir)
	if err != nil {
		return false, Wrap(CodeNotMounted, err, "clear stale mount %s", dir)
	}
	return healed, nil
}

// CanOpenFuse reports whether this process may open /dev/fuse itself.
func CanOpenFuse() bool {
	fd, err := unix.Open(fuseDevice, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// HasFusermount reports whether the setuid helper is installed.
func HasFusermount() bool {
	for _, dir := range []string{"/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/sbin"} {
		for _, name := range []string{"fusermount3", "fusermount"} {
			fi, err := os.Stat(filepath.Join(dir, name))
			if err == nil && (fi.Mode()&os.ModeSetuid != 0 || os.Geteuid() == 0) {
				return true
			}
		}
	}
	return false
}
