package exec

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestRunPidLimit(t *testing.T) {
	s := workspace(t)
	s.Limits.Pids, s.Timeout = 40, time.Second
	s.Command = []string{"sh", "-c", "f() { f | f & }; f; sleep 60"}
	most := 0
	done := make(chan struct{})
	s.OnStart = func(st Started) {
		go func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(20 * time.Millisecond):
					most = max(most, len(pidsOf(st.PIDNS)))
				}
			}
		}()
	}
	r := runSpec(t, s)
	done <- struct{}{}
	if most > 40+stageThreads {
		t.Errorf("%d processes ran", most)
	}
	if r.err != nil {
		t.Errorf("got %+v, %v", r.Status, r.err)
	}
}

func TestRunMemoryLimit(t *testing.T) {
	s := workspace(t)
	s.Limits.Memory = 64 << 20
	s.Command = []string{"sh", "-c", "head -c 500000000 /dev/zero | tail -c 400000000 | wc -c"}
	r := runSpec(t, s)
	if r.err != nil || strings.TrimSpace(r.out) == "400000000" {
		t.Errorf("got %+v, %v, %q", r.Status, r.err, r.out)
	}
	if _, ok := probed().controller("memory"); ok && !r.OOMKilled {
		t.Error("nothing was killed for its memory")
	}
}

func TestRunCPULimit(t *testing.T) {
	if _, ok := probed().controller("cpu"); !ok {
		t.Skip("processor time can't be limited here")
	}
	s := workspace(t)
	s.Limits.CPUs = 0.1
	s.Timeout = 1 * time.Second
	s.Command = []string{"sh", "-c", "(while :; do :; done) & while :; do :; done"}
	var before, after unix.Rusage
	must(t, unix.Getrusage(unix.RUSAGE_CHILDREN, &before))
	runSpec(t, s)
	must(t, unix.Getrusage(unix.RUSAGE_CHILDREN, &after))
	// Only stage 1 and what it has waited for is counted, which is enough to
	// see a limit that does nothing: the loop it waits for in its end.
	if used := after.Utime.Nano() - before.Utime.Nano(); used > int64(600*time.Millisecond) {
		t.Errorf("used %s of a second", time.Duration(used))
	}
}

func TestRunLeavesNoCgroup(t *testing.T) {
	s := workspace(t)
	s.Limits = Limits{CPUs: 1, Memory: 256 << 20, Pids: 50}
	s.Command = []string{"true"}
	if r := runSpec(t, s); r.err != nil || r.ExitCode != 0 {
		t.Fatalf("got %+v, %v", r.Status, r.err)
	}
	for _, c := range probed().Controllers {
		if left, _ := filepath.Glob(filepath.Join(c.Dir, fmt.Sprintf("%s%d-*", leafPrefix, os.Getpid()))); len(left) > 0 {
			t.Errorf("left %v", left)
		}
	}
}

func TestRunNoLeakedDescriptors(t *testing.T) {
	count := func() int {
		entries, _ := os.ReadDir("/proc/self/fd")
		return len(entries)
	}
	s := workspace(t)
	s.Command, s.Stdin = []string{"true"}, strings.NewReader("x")
	runSpec(t, s)
	before := count()
	for range 5 {
		runSpec(t, s)
		s.Command = []string{"missing"}
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors are open, %d before", after, before)
	}
}

// TestRunCost guards the order of magnitude only; `make bench` measures.
func TestRunCost(t *testing.T) {
	s := workspace(t)
	s.Command = []string{"true"}
	var took []time.Duration
	for range 15 {
		begun := time.Now()
		if r := runSpec(t, s); r.err != nil {
			t.Fatal(r.err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	t.Logf("median %s, worst %s", took[len(took)/2], took[len(took)-1])
	if took[0] > 500*time.Millisecond {
		t.Errorf("the quickest of %d took %s", len(took), took[0])
	}
}

func TestSweepCgroups(t *testing.T) {
	dir := t.TempDir()
	names := []string{leafPrefix + "999999999-1", fmt.Sprintf("%s%d-1", leafPrefix, os.Getpid()), leafPrefix + "x", "other-999999999-1"}
	for _, n := range names {
		must(t, os.Mkdir(filepath.Join(dir, n), 0o755))
	}
	SweepCgroups(Host{Controllers: []Controller{{"pids", 1, dir}}})
	for i, n := range names {
		_, err := os.Stat(filepath.Join(dir, n))
		if swept := err != nil; swept != (i == 0) {
			t.Errorf("%s: swept %v", n, swept)
		}
	}
}
