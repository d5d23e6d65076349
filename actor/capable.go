package actor

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Capable reports whether a thread has a capability (CAP_...) in effect now. A
// thread that is gone, and one in a user namespace of its own, where its
// capabilities mean nothing to our files, has none.
func (r *Resolver) Capable(tid uint32, capability int) bool {
	if tid == 0 {
		return false
	}
	dir := fmt.Sprintf("/proc/%d/", tid)
	status, err := os.ReadFile(dir + "status")
	if err != nil || !sameUserNS(dir) {
		return false
	}
	set, ok := effective(status)
	return ok && set>>capability&1 != 0
}

// InGroup reports whether a thread is in a group now, by the group that its new
// files get or by its supplementary groups. A thread that is gone, and one in a
// user namespace of its own, is in none.
func (r *Resolver) InGroup(tid, gid uint32) bool {
	status, ok := ids(tid)
	if !ok {
		return false
	}
	groups := field(status, "Groups:")
	if own := field(status, "Gid:"); len(own) == 4 {
		groups = append(groups, own[3])
	}
	return slices.Contains(groups, strconv.FormatUint(uint64(gid), 10))
}

// ids reads the status of a thread of our own user namespace.
func ids(tid uint32) (status []byte, ok bool) {
	if tid == 0 {
		return nil, false
	}
	dir := fmt.Sprintf("/proc/%d/", tid)
	status, err := os.ReadFile(dir + "status")
	return status, err == nil && sameUserNS(dir)
}

// field returns the words of a line of proc_pid_status(5).
func field(status []byte, name string) (words []string) {
	for line := range bytes.Lines(status) {
		if v, ok := bytes.CutPrefix(line, []byte(name)); ok {
			return strings.Fields(string(v))
		}
	}
	return nil
}

// effective reads the set from proc_pid_status(5).
func effective(status []byte) (uint64, bool) {
	for line := range bytes.Lines(status) {
		if v, ok := bytes.CutPrefix(line, []byte("CapEff:")); ok {
			set, err := strconv.ParseUint(string(bytes.TrimSpace(v)), 16, 64)
			return set, err == nil
		}
	}
	return 0, false
}

// sameUserNS reports whether a process lives in our own user namespace.
func sameUserNS(dir string) bool {
	theirs, err := os.Readlink(dir + "ns/user")
	if err != nil {
		return false
	}
	ours, err := os.Readlink("/proc/self/ns/user")
	return err == nil && ours == theirs
}
