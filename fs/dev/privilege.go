package dev

import (
	"bufio"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// canMount reports whether the process may call mount(2): whether it has
// CAP_SYS_ADMIN in its own user namespace.
func canMount() bool {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return os.Geteuid() == 0
	}
	return data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// InitialUserNS reports whether the process is in the initial user namespace.
func InitialUserNS() bool { return initialUserNS() }

// initialUserNS reports whether the process is in the initial user namespace,
// by its map of all ids to themselves. Without /proc it assumes so.
func initialUserNS() bool {
	b, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return true
	}
	f := strings.Fields(string(b))
	return len(f) == 3 && f[0] == "0" && f[1] == "0" && f[2] == "4294967295"
}

// userAllowOther reports whether /etc/fuse.conf lets ordinary users ask for
// allow_other.
func userAllowOther() bool {
	f, err := os.Open("/etc/fuse.conf")
	if err != nil {
		return false
	}
	defer f.Close()
	return parseAllowOther(f)
}

// parseAllowOther looks for the option on a line by itself, as fusermount3
// does.
func parseAllowOther(r io.Reader) bool {
	s := bufio.NewScanner(r)
	for s.Scan() {
		if strings.TrimSpace(s.Text()) == "user_allow_other" {
			return true
		}
	}
	return false
}
