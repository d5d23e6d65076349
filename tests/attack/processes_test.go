package attack

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	probes["processes"] = probeProcesses
	probes["background"] = probeBackground
}

// marker is an argument by which a test finds its processes.
func marker(t *testing.T) string { return "winkfs-" + t.Name() + "-" + strconv.Itoa(os.Getpid()) }

// processes returns the processes whose arguments, joined by spaces, match.
func processes(match func(argv string) bool) []string {
	entries, _ := os.ReadDir("/proc")
	var pids []string
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		argv, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err == nil && match(strings.ReplaceAll(string(argv), "\x00", " ")) {
			pids = append(pids, e.Name())
		}
	}
	return pids
}

// probeProcesses looks for processes that are not the sandbox's: args are the
// pid of one and a word of its arguments.
func probeProcesses(args []string) {
	for _, pid := range processes(func(argv string) bool { return strings.Contains(argv, args[1]) }) {
		if pid != strconv.Itoa(os.Getpid()) {
			breach("sees process %s", pid)
		}
	}
	if n := len(processes(func(string) bool { return true })); n > 8 {
		breach("sees %d processes", n)
	}
	if pid, err := strconv.Atoi(args[0]); err == nil && unix.Kill(pid, 0) == nil {
		breach("can signal process %d", pid)
	}
	for _, name := range []string{"root/etc", "cwd/.", "fd/0", "mem", "environ"} {
		if f, err := os.Open("/proc/1/" + name); err == nil {
			f.Close()
			breach("can open /proc/1/%s", name)
		}
	}
}

func TestNoHostProcesses(t *testing.T) {
	j := newJail(t)
	daemon := strconv.Itoa(j.Status().PID)
	j.probe("processes", daemon, j.State)
}

// probeBackground leaves processes behind in the ways there are.
func probeBackground(args []string) {
	mark := args[0]
	for _, attr := range []*syscall.SysProcAttr{{}, {Setsid: true}, {Setpgid: true}} {
		p, err := os.StartProcess("/proc/self/exe", []string{"left", probeMark + "sleep", "elsewhere", mark}, &os.ProcAttr{Sys: attr})
		if err != nil {
			breach("could not start a process: %v", err)
			continue
		}
		p.Release()
	}
}

func TestNothingSurvives(t *testing.T) {
	j := newJail(t)
	j.probe("background", marker(t))
	left := func() []string {
		return processes(func(argv string) bool { return strings.Contains(argv, marker(t)) })
	}
	// The command has returned, so nothing may be left at once; a zombie that
	// is not reaped yet has no arguments.
	if pids := left(); len(pids) > 0 {
		t.Errorf("processes %v survive", pids)
	}
	if r := j.In("exec", "--timeout", "1", "--", "./probe", probeMark+"sleep", namespaces(), marker(t)); r.Code != 124 {
		t.Errorf("timeout: exit status %d, want 124\n%s", r.Code, r.Stderr)
	}
	time.Sleep(10 * time.Millisecond)
	if pids := left(); len(pids) > 0 {
		t.Errorf("processes %v survive the timeout", pids)
	}
}
