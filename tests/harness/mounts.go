package harness

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func itoa(n int) string { return strconv.Itoa(n) }

// mountPoints returns the mount points of this process's namespace, inner ones
// last.
func mountPoints() []string {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	var points []string
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 4 {
			points = append(points, unescape(f[4]))
		}
	}
	return points
}

// unescape undoes the octal escapes of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// IsMounted reports whether something is mounted exactly at the directory.
func IsMounted(dir string) bool { return slices.Contains(mountPoints(), resolved(dir)) }

// resolved resolves the links in the directories above, which a stale mount
// does not hinder.
func resolved(dir string) string {
	parent, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if err != nil {
		return dir
	}
	return filepath.Join(parent, filepath.Base(dir))
}

// UnmountBelow detaches every mount at or below the directory, answering or
// not.
func UnmountBelow(dir string) {
	dir = resolved(dir)
	points := mountPoints()
	slices.Reverse(points)
	for _, p := range points {
		if p != dir && !strings.HasPrefix(p, dir+"/") {
			continue
		}
		if err := unix.Unmount(p, unix.MNT_DETACH); err != nil {
			osexec.Command("fusermount3", "-uz", p).Run()
		}
	}
}
