package exec

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// securebits that keep a process with id 0 from getting capabilities at execve,
// and all of them locked (linux/securebits.h).
const (
	secbitNoRoot            = 1 << 0
	secbitNoSetuidFixup     = 1 << 2
	secbitNoCapAmbientRaise = 1 << 6
	secbitAll               = secbitNoRoot | secbitNoSetuidFixup | secbitNoCapAmbientRaise
	secbitLocks             = secbitAll<<1 | 1<<5 // and KEEP_CAPS locked off
)

// maxCap is beyond every capability that a kernel has.
const maxCap = 63

// capSets are the lines of /proc/PID/status that must be zero.
var capSets = []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}

// dropCaps takes every capability away from the calling thread, for good, and
// reads all five sets back. Preconditions: the thread holds CAP_SETPCAP.
func dropCaps() error {
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, secbitAll|secbitLocks, 0, 0, 0); err != nil {
		return fmt.Errorf("set securebits: %w", err)
	}
	for c := uintptr(0); c <= maxCap; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // one more than the last
		}
		if err != nil {
			return fmt.Errorf("drop capability %d from the bounding set: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clear ambient set: %w", err)
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&head, &none[0]); err != nil {
		return fmt.Errorf("clear sets: %w", err)
	}
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	return checkNoCaps(string(status))
}

// checkNoCaps refuses a status in which any of the five sets is not zero, or is
// not there.
func checkNoCaps(status string) error {
	seen := 0
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		for _, set := range capSets {
			if name != set {
				continue
			}
			seen++
			if strings.Trim(value, "0 \t\n") != "" || strings.TrimSpace(value) == "" {
				return fmt.Errorf("read back: %s is %s", set, strings.TrimSpace(value))
			}
		}
	}
	if seen != len(capSets) {
		return fmt.Errorf("read back: %d of %d sets found", seen, len(capSets))
	}
	return nil
}
