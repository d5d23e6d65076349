package workspace

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/exec"
)

// DoctorResult is the document winkfs.doctor/v1.
type DoctorResult struct {
	Schema string  `json:"schema"`
	OK     bool    `json:"ok"` // nothing that is needed is missing
	Checks []Check `json:"checks"`
}

// Check is one thing that the host has or lacks.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"` // winkfs doesn't work without it
	Detail string `json:"detail"`
	Mend   string `json:"mend,omitempty"`
}

// neededLayers are the layers of the sandbox without which no command runs.
var neededLayers = map[string]bool{"namespaces": true, "proc": true}

// Doctor looks at what this host and this process can do.
func Doctor(stateRoot string) *DoctorResult {
	res := &DoctorResult{Schema: "winkfs.doctor/v1", OK: true}
	res.Checks = append(res.Checks, checkDevice(), checkMounting(), checkAllowOther(), checkStateRoot(stateRoot), checkWatches())
	for _, l := range exec.Probe().Layers {
		c := Check{Name: "sandbox: " + l.Name, OK: l.OK, Needed: neededLayers[l.Name], Detail: l.Detail, Mend: l.Mend}
		if c.OK && c.Detail == "" {
			c.Detail = "works"
		}
		res.Checks = append(res.Checks, c)
	}
	for _, c := range res.Checks {
		res.OK = res.OK && (c.OK || !c.Needed)
	}
	return res
}

func checkDevice() Check {
	c := Check{Name: fuseDevice, Needed: true}
	var st unix.Stat_t
	if err := unix.Stat(fuseDevice, &st); err != nil {
		c.Detail, c.Mend = err.Error(), mendDevice
		return c
	}
	if !isFuseDevice() {
		c.Detail, c.Mend = "it is not the FUSE device", mendDevice
		return c
	}
	c.OK, c.Detail = true, "there"
	if !CanOpenFuse() {
		c.Detail = fmt.Sprintf("there, but not open to this user (mode %04o): fusermount3 has to mount", st.Mode&0o7777)
	}
	return c
}

const (
	fuseDevice = "/dev/fuse"
	mendDevice = "sudo modprobe fuse; in a container, start it with --device /dev/fuse"
)

// isFuseDevice reports whether /dev/fuse is what its name says: character
// device 10:229.
func isFuseDevice() bool {
	var st unix.Stat_t
	err := unix.Stat(fuseDevice, &st)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == unix.Mkdev(10, 229)
}

func checkMounting() Check {
	c := Check{Name: "mounting", Needed: true}
	switch {
	case os.Geteuid() == 0:
		c.OK, c.Detail = true, "root mounts by itself"
	case HasFusermount():
		c.OK, c.Detail = true, "fusermount3 is installed"
	case CanOpenFuse():
		c.OK, c.Detail = true, "`winkfs run` mounts in a user namespace of its own; `winkfs mount` needs fusermount3"
		c.Mend = installFuse
	default:
		c.Detail, c.Mend = "an ordinary user needs fusermount3", installFuse
	}
	return c
}

const installFuse = "sudo apt-get install fuse3"

func checkAllowOther() Check {
	c := Check{Name: "allow_other", OK: true, Detail: "possible"}
	if os.Geteuid() == 0 {
		return c
	}
	b, err := os.ReadFile("/etc/fuse.conf")
	if err != nil || !hasLine(string(b), "user_allow_other") {
		c.OK, c.Detail = false, "other users can't enter a mount, even when asked to"
		c.Mend = "echo user_allow_other | sudo tee -a /etc/fuse.conf"
	}
	return c
}

func checkStateRoot(root string) Check {
	c := Check{Name: "state directory", Needed: true, Detail: root}
	dir := root
	for !exists(dir) && dir != "/" {
		dir = filepath.Dir(dir)
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		c.Detail = fmt.Sprintf("%s can't be written: %v", dir, err)
		c.Mend = "name another by --state-dir or WINKFS_STATE_DIR"
		return c
	}
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) == nil {
		c.Detail += fmt.Sprintf(", %d MiB free", uint64(st.Bavail)*uint64(st.Bsize)>>20)
	}
	c.OK = true
	return c
}

func checkWatches() Check {
	c := Check{Name: "inotify watches", OK: true}
	n := 0
	b, err := os.ReadFile("/proc/sys/fs/inotify/max_user_watches")
	if err == nil {
		_, err = fmt.Sscan(string(b), &n)
	}
	c.Detail = fmt.Sprintf("%d", n)
	if err != nil || n < 16384 {
		c.OK = false
		c.Detail += ": few; edits on the host show after a second in what can't be watched"
		c.Mend = "sudo sysctl fs.inotify.max_user_watches=524288"
	}
	return c
}
