package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRunUser wants a kernel id that is not root's, seen from outside, and
// OnStart before the first instruction.
func TestRunUser(t *testing.T) {
	s := workspace(t)
	started := make(chan Started, 1)
	s.OnStart = func(st Started) {
		started <- st
		if entries, _ := os.ReadDir(s.Mount); len(entries) != 0 {
			t.Errorf("the command has begun before OnStart: %v", entries)
		}
		if ns, err := pidNamespace(st.PID); err != nil || ns != st.PIDNS {
			t.Errorf("pid namespace %d, %v, want %d", ns, err, st.PIDNS)
		}
	}
	s.Command = []string{"sh", "-c", "echo >begun; sleep 30"}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan result)
	go func() { done <- runContext(t, ctx, s) }()
	init := <-started
	waitFor(t, func() bool { _, err := os.Stat(filepath.Join(s.Mount, "begun")); return err == nil })
	for _, pid := range pidsOf(init.PIDNS) {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		uid := strings.Fields(after(string(status), "Uid:"))
		if len(uid) < 4 || probed().Initial && slices.Contains(uid[:4], "0") {
			t.Errorf("process %d has the ids %v", pid, uid)
		}
	}
	cancel()
	r := <-done
	if !errors.Is(r.err, context.Canceled) || r.ExitCode != 137 {
		t.Errorf("got %v, code %d", r.err, r.ExitCode)
	}
	if left := pidsOf(init.PIDNS); len(left) != 0 {
		t.Errorf("processes %v are left", left)
	}
}

func TestRunNothingSurvives(t *testing.T) {
	daemonise := "setsid sh -c '(while :; do echo x >>alive; sleep 0.01; done) & ' & "
	tests := []struct {
		name, script string
		timeout      time.Duration
		code         int
	}{
		{"background", daemonise + "sleep 0.1; exit 0", 0, 0},
		{"timeout", daemonise + "sleep 60", 300 * time.Millisecond, ExitTimeout},
		{"ignores signals", "trap '' TERM INT HUP; " + daemonise + "sleep 60", 300 * time.Millisecond, ExitTimeout},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := workspace(t)
			var init Started
			s.OnStart = func(st Started) { init = st }
			s.Timeout, s.Command = tt.timeout, []string{"sh", "-c", tt.script}
			begun := time.Now()
			r := runSpec(t, s)
			if r.err != nil || r.ExitCode != tt.code || r.TimedOut != (tt.code == ExitTimeout) {
				t.Errorf("got %+v, %v, want code %d", r.Status, r.err, tt.code)
			}
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("took %s", took)
			}
			if left := pidsOf(init.PIDNS); len(left) != 0 {
				t.Errorf("processes %v are left", left)
			}
			before, err := os.Stat(filepath.Join(s.Mount, "alive"))
			must(t, err)
			time.Sleep(50 * time.Millisecond)
			if after, _ := os.Stat(filepath.Join(s.Mount, "alive")); after.Size() != before.Size() {
				t.Error("something still writes")
			}
		})
	}
}

// TestRunDiesWithDaemon kills a daemon in the middle of a run.
func TestRunDiesWithDaemon(t *testing.T) {
	s := workspace(t)
	if os.Getenv("WINKFS_TEST_DAEMON") != "" {
		s.Command, s.Timeout = []string{"sleep", "60"}, 0
		s.OnStart = func(st Started) { fmt.Println("namespace", st.PIDNS) }
		runSpec(t, s)
		return
	}
	needUserNS(t)
	cmd := osexec.Command("/proc/self/exe", "-test.run=^TestRunDiesWithDaemon$")
	cmd.Env = append(os.Environ(), "WINKFS_TEST_DAEMON=1", "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var ns uint64
	if _, err := fmt.Fscanf(out, "namespace %d", &ns); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return len(pidsOf(ns)) >= 2 })
	begun := time.Now()
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	waitFor(t, func() bool { return len(pidsOf(ns)) == 0 })
	t.Logf("gone after %s", time.Since(begun))
}

// pidsOf lists the processes of a pid namespace, but for those that are dead
// and not yet waited for.
func pidsOf(ns uint64) []int {
	var pids []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		var pid int
		if _, err := fmt.Sscan(e.Name(), &pid); err != nil {
			continue
		}
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if got, err := pidNamespace(pid); err == nil && got == ns && !strings.Contains(string(status), "State:\tZ") {
			pids = append(pids, pid)
		}
	}
	return pids
}
