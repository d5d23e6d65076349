package workspace

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxHolders bounds the list of processes that keep a mount busy.
const maxHolders = 50

// holders lists the processes that use the mount, as far as this process may
// look. Paths are compared as text, so that the mount is not asked.
func holders(mountpoint string) []Holder {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []Holder
	for _, n := range names {
		pid, err := strconv.Atoi(n.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if h, ok := holder(pid, mountpoint); ok {
			out = append(out, h)
		}
		if len(out) == maxHolders {
			break
		}
	}
	return out
}

// holder reports how a process uses the mount, if it does.
func holder(pid int, mountpoint string) (Holder, bool) {
	proc := fmt.Sprintf("/proc/%d", pid)
	h := Holder{PID: pid, Comm: comm(proc)}
	for _, what := range []string{"cwd", "root", "exe"} {
		if p, err := os.Readlink(filepath.Join(proc, what)); err == nil && within(p, mountpoint) {
			h.What, h.Path = what, p
			return h, true
		}
	}
	fds, _ := os.ReadDir(proc + "/fd")
	for _, fd := range fds {
		if p, err := os.Readlink(filepath.Join(proc, "fd", fd.Name())); err == nil && within(p, mountpoint) {
			h.What, h.Path = "fd "+fd.Name(), p
			return h, true
		}
	}
	if p, ok := mapped(proc, mountpoint); ok {
		h.What, h.Path = "map", p
		return h, true
	}
	return h, false
}

func comm(proc string) string {
	b, err := os.ReadFile(proc + "/comm")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

// mapped returns a file of the mount that the process has mapped.
func mapped(proc, mountpoint string) (string, bool) {
	f, err := os.Open(proc + "/maps")
	if err != nil {
		return "", false
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if i := strings.IndexByte(s.Text(), '/'); i >= 0 && within(s.Text()[i:], mountpoint) {
			return s.Text()[i:], true
		}
	}
	return "", false
}
