package hydrate

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

const limitReason = "not all lower directories are watched, the limit of inotify watches is reached: " +
	"changes by the host show after a second there; raise fs.inotify.max_user_watches with sysctl"

// defaultWatchLimit is the kernel's old default, for hosts that hide theirs.
const defaultWatchLimit = 8192

// watchLimit returns fs.inotify.max_user_watches.
func watchLimit() int {
	b, err := os.ReadFile("/proc/sys/fs/inotify/max_user_watches")
	if err != nil {
		return defaultWatchLimit
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || n <= 0 {
		return defaultWatchLimit
	}
	return n
}

// remote lists the file systems whose contents change without this kernel's
// doing, where inotify keeps silent.
var remote = map[int64]string{
	unix.NFS_SUPER_MAGIC:    "nfs",
	unix.SMB_SUPER_MAGIC:    "smb",
	unix.CIFS_SUPER_MAGIC:   "cifs",
	unix.SMB2_SUPER_MAGIC:   "smb",
	unix.FUSE_SUPER_MAGIC:   "fuse",
	unix.V9FS_MAGIC:         "9p",
	unix.CEPH_SUPER_MAGIC:   "ceph",
	unix.AFS_SUPER_MAGIC:    "afs",
	unix.AFS_FS_MAGIC:       "afs",
	unix.CODA_SUPER_MAGIC:   "coda",
	unix.OCFS2_SUPER_MAGIC:  "ocfs2",
	unix.PROC_SUPER_MAGIC:   "proc",
	unix.SYSFS_MAGIC:        "sysfs",
	unix.CGROUP_SUPER_MAGIC: "cgroup",
}

// unwatchable returns why the directory at fd can't be watched, or "".
func unwatchable(fd int) string {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return fmt.Sprintf("a lower directory can't be watched (%v)", err)
	}
	if name := remote[int64(st.Type)]; name != "" {
		return fmt.Sprintf("a source is on %s, which tells nothing of changes by others: they show after a second", name)
	}
	return ""
}

// maxReasons bounds the list, whatever fails.
const maxReasons = 16

// reasons is a set of texts.
type reasons struct {
	mu  sync.Mutex
	all []string // protected by mu; sorted
}

func (r *reasons) add(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, found := slices.BinarySearch(r.all, s)
	if !found && len(r.all) < maxReasons {
		r.all = slices.Insert(r.all, i, s)
	}
}

func (r *reasons) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}
