package lower

import (
	"os"
	"strings"
)

// NoID stands for an owner or group that can't be known: the process is in a
// user namespace that does not map it, and stat(2) shows the overflow id.
const NoID = ^uint32(0)

// overflowID is what an id without a mapping is shown as
// (/proc/sys/kernel/overflowuid, user_namespaces(7)).
const overflowID = 65534

// partialIDs reports whether the process is in a user namespace that does not
// map all ids.
func partialIDs() bool {
	b, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false
	}
	f := strings.Fields(string(b))
	return len(f) != 3 || f[0] != "0" || f[2] != "4294967295"
}

// known returns the id, NoID if it only says that the real one has no mapping.
func (f *FS) known(id uint32) uint32 {
	if f.partial && id == overflowID {
		return NoID
	}
	return id
}
