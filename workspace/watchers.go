package workspace

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
)

// watchers are the files of the mount that some process watches by inotify or
// fanotify, as far as /proc shows it to us: of other users' processes only root
// sees it.
type watchers struct {
	nodes map[journal.NodeID]bool
	all   bool // a whole mount or file system is watched
}

// findWatchers reads the marks of all processes (proc_pid_fdinfo(5)). Inode
// numbers in the mount are our node numbers.
func findWatchers(dev uint64) *watchers {
	w := &watchers{nodes: map[journal.NodeID]bool{}}
	sdev := strconv.FormatUint(uint64(unix.Major(dev))<<20|uint64(unix.Minor(dev)), 16)
	procs, _ := os.ReadDir("/proc")
	for _, p := range procs {
		if p.Name()[0] < '0' || p.Name()[0] > '9' {
			continue
		}
		fds, _ := os.ReadDir(filepath.Join("/proc", p.Name(), "fd"))
		for _, fd := range fds {
			target, err := os.Readlink(filepath.Join("/proc", p.Name(), "fd", fd.Name()))
			if err == nil && (target == "anon_inode:inotify" || target == "anon_inode:[fanotify]") {
				w.read(filepath.Join("/proc", p.Name(), "fdinfo", fd.Name()), sdev)
			}
		}
	}
	return w
}

// read takes in the marks of one descriptor.
func (w *watchers) read(path, sdev string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		w.mark(s.Text(), sdev)
	}
}

// mark takes in one line: "inotify wd:1 ino:2a sdev:2f mask:...", the same of
// fanotify, or fanotify's "mnt_id:" and "sdev:" without an inode.
func (w *watchers) mark(line, sdev string) {
	kind, rest, _ := strings.Cut(line, " ")
	if kind != "inotify" && kind != "fanotify" {
		return
	}
	word := map[string]string{}
	for _, f := range strings.Fields(rest) {
		key, val, _ := strings.Cut(f, ":")
		word[key] = val
	}
	switch {
	case word["mnt_id"] != "", word["sdev"] == sdev && word["ino"] == "":
		w.all = true
	case word["sdev"] == sdev:
		if ino, err := strconv.ParseUint(word["ino"], 16, 64); err == nil {
			w.nodes[journal.NodeID(ino)] = true
		}
	}
}

// see reports whether one of the nodes is watched.
func (w *watchers) see(ids ...journal.NodeID) bool {
	for _, id := range ids {
		if w.nodes[id] {
			return true
		}
	}
	return w.all
}
