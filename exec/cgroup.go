package exec

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// leafPrefix begins the names of our cgroups; the daemon's pid and a counter
// follow.
const leafPrefix = "winkfs-"

var leafCounter atomic.Uint64

// leaves are the cgroups of one run, at most one a hierarchy.
type leaves []string

// newLeaves makes the plan's cgroups and writes their limits, before any
// process is in them.
func newLeaves(groups []Group) (leaves, error) {
	name := fmt.Sprintf("%s%d-%d", leafPrefix, os.Getpid(), leafCounter.Add(1))
	var l leaves
	for _, g := range groups {
		dir := filepath.Join(g.Dir, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			l.remove()
			return nil, fail(limitLayer(g), "make cgroup", err)
		}
		l = append(l, dir)
		if err := configure(dir, g); err != nil {
			l.remove()
			return nil, err
		}
	}
	return l, nil
}

func configure(dir string, g Group) error {
	for _, s := range g.Settings {
		err := writeControl(filepath.Join(dir, s.File), s.Value)
		if err != nil && !(s.Optional && errors.Is(err, os.ErrNotExist)) {
			return fail(limitLayer(g), "set "+s.File, err)
		}
	}
	return nil
}

// limitLayer names the limit whose cgroup failed.
func limitLayer(g Group) string {
	switch first, _, _ := strings.Cut(g.Controller, ","); first {
	case "pids":
		return layerPids
	case "cpu":
		return layerCPU
	default:
		return layerMemory
	}
}

// writeControl writes a control file, which unlike os.WriteFile must exist.
func writeControl(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// add puts a process into every leaf.
func (l leaves) add(pid int) error {
	for _, dir := range l {
		if err := writeControl(filepath.Join(dir, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			return fail(layerMemory, "enter cgroup "+dir, err)
		}
	}
	return nil
}

// oomKilled says that the memory limit has ended a process.
func (l leaves) oomKilled() bool {
	for _, dir := range l {
		for _, file := range []string{"memory.events", "memory.oom_control"} {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err == nil && counter(string(text), "oom_kill") > 0 {
				return true
			}
		}
	}
	return false
}

// counter reads the value of a name from lines of "name value".
func counter(text, name string) int {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			n, _ := strconv.Atoi(f[1])
			return n
		}
	}
	return 0
}

// remove deletes the leaves. A process leaves its cgroup a moment after it was
// waited for, so an early refusal is tried again.
func (l leaves) remove() {
	for _, dir := range l {
		for wait := time.Millisecond; wait < time.Second; wait *= 2 {
			if err := unix.Rmdir(dir); !errors.Is(err, unix.EBUSY) {
				break
			}
			time.Sleep(wait)
		}
	}
}

// SweepCgroups removes leaves that a daemon which is no longer there has left.
// The daemon calls it once at start.
func SweepCgroups(h Host) {
	for _, c := range h.Controllers {
		found, _ := filepath.Glob(filepath.Join(c.Dir, leafPrefix+"*"))
		for _, dir := range found {
			owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), leafPrefix), "-")
			pid, err := strconv.Atoi(owner)
			if err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
				_ = unix.Rmdir(dir)
			}
		}
	}
}
