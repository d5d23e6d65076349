package workspace

import (
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
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
	for _, s := range c.Sources {
		for _, m := range mounts {
			if within(s.Host, m.Dir) {
				return overlap(s.Host, "the source lies in the mount of workspace %s", strings.TrimPrefix(m.Source, "winkfs:")).
					Hinted("name that workspace's own source")
			}
		}
	}
	for _, s := range c.Sources {
		switch {
		case s.Host == root:
			return overlap(s.Host, "the source is the state directory").Hinted("choose another state directory by --state-dir or WINKFS_STATE_DIR")
		case within(root, s.Host):
			return overlap(s.Host, "the state directory %s lies inside the source, so the workspace would contain its own journal", root).
				Hinted("choose another state directory by --state-dir or WINKFS_STATE_DIR")
		case within(s.Host, root):
			return overlap(s.Host, "the source lies inside the state directory %s", root).Hinted("choose another source")
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
	for _, s := range cfg.Sources {
		host := resolved(s.Host)
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

// Resume returns the workspace that goes on when this configuration is mounted
// there: the one of the same name, or the one that was mounted there before
// over the same sources. nil means that a new one is to be made. explicit says
// that the configuration was read from a file; one that differs from the frozen
// one is then refused, as it would not take effect.
func (r *Registry) Resume(cfg *Config, mountpoint string, explicit bool) (*Entry, error) {
	all, err := r.List()
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(all) {
		if e.Config == nil || e.Config.Ephemeral != cfg.Ephemeral {
			continue
		}
		named := cfg.Name != "" && e.Name() == cfg.Name
		here := e.Mountpoint() == mountpoint && (cfg.Name == "" || named)
		if !named && !here {
			continue
		}
		if !sameSources(e.Config.Sources, cfg.Sources) {
			if named {
				return nil, Fail(CodeUsage, "mount %s: a workspace of that name exists over %s", cfg.Name, sourcesText(e.Config.Sources)).
					Hinted("choose another name, or go on with it: winkfs mount -w %s %s", cfg.Name, mountpoint)
			}
			continue
		}
		if explicit && !reflect.DeepEqual(e.Config.Exec, cfg.Exec) {
			return nil, Fail(CodeUsage, "mount workspace %s: its configuration was frozen when it was made, and differs from the one given", e.ID).
				Hinted("go on with the frozen one: winkfs mount -w %s %s; or make another workspace by --name", e.ID, mountpoint)
		}
		return e, nil
	}
	return nil, nil
}

// sameSources compares the kept sources with those asked for; none asked for
// means whichever there are.
func sameSources(kept, asked []Source) bool {
	if len(asked) == 0 {
		return true
	}
	return slices.EqualFunc(kept, asked, func(a, b Source) bool {
		abs, err := filepath.Abs(b.Host)
		return err == nil && a.Host == resolved(abs)
	})
}

func sourcesText(sources []Source) string {
	hosts := make([]string, len(sources))
	for i, s := range sources {
		hosts[i] = s.Host
	}
	return strings.Join(hosts, ", ")
}
