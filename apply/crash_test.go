package apply

import (
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The variables by which TestCrash talks to the process that it kills.
const (
	envCrashDir = "WINKFS_TEST_APPLY_DIR"
	envCrashAt  = "WINKFS_TEST_APPLY_KILL"
	envState    = "WINKFS_TEST_APPLY_STATE"
	envSlow     = "WINKFS_TEST_APPLY_NOEXCHANGE"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(envCrashDir); dir != "" {
		os.Exit(crashChild(dir))
	}
	os.Exit(m.Run())
}

// crashChild applies the workload and kills itself before the k-th step. With
// the tree made by the parent the items' bases are those of the tree.
func crashChild(dir string) int {
	t := &testing.T{}
	b := &bench{t: t, root: dir + "/source", state: os.Getenv(envState), v: variant{noExchange: os.Getenv(envSlow) != ""}}
	fd, err := unix.Open(b.root, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	b.fd = fd
	k, _ := strconv.Atoi(os.Getenv(envCrashAt))
	n := 0
	o := b.options()
	o.Step = func(string) error {
		if n == k {
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {}
		}
		n++
		return nil
	}
	if ids, _ := listIntents(o.Dir); len(ids) > 0 {
		_, err = Recover(context.Background(), o)
	} else {
		_, err = Run(context.Background(), workloadItems(b), o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestCrash kills an apply before its k-th step, for rising k, and its recovery
// before each of its steps too: the tree is always the old or the new one.
func TestCrash(t *testing.T) {
	for name, v := range variants {
		t.Run(name, func(t *testing.T) { crashAtEveryStep(t, v) })
	}
}

func crashAtEveryStep(t *testing.T, v variant) {
	stride := 1
	if testing.Short() {
		stride = 7
	}
	asBefore, asAfter := 0, 0
	for k := 0; ; k += stride {
		b := newBenchOf(t, v)
		workload(b)
		before := b.tree()
		if !crash(t, b, k) {
			checkDone(b)
			t.Logf("%d steps: %d times as before, %d times done", k, asBefore, asAfter)
			if asBefore == 0 || asAfter == 0 {
				t.Error("one of the two outcomes never came about")
			}
			return
		}
		for j := k % 5; crash(t, b, j); j += 5 { // the recovery dies as well
		}
		if _, err := Recover(context.Background(), b.options()); err != nil {
			t.Fatalf("step %d: recover: %v", k, err)
		}
		if b.tree() == before {
			asBefore++
		} else {
			asAfter++
			checkDone(b)
		}
		if t.Failed() {
			t.Fatalf("step %d", k)
		}
		if strings.Contains(b.tree(), ".winkfs-apply") {
			t.Fatalf("step %d: temporary names are left:\n%s", k, b.tree())
		}
		if _, err := b.run(b.item("later", file("x"))); err != nil {
			t.Fatalf("step %d: the next apply: %v", k, err)
		}
	}
}

// crash runs the child until its k-th step and reports whether it was killed.
func crash(t *testing.T, b *bench, k int) bool {
	t.Helper()
	cmd := osexec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envCrashDir+"="+strings.TrimSuffix(b.root, "/source"), envCrashAt+"="+strconv.Itoa(k), envState+"="+b.state)
	if b.v.noExchange {
		cmd.Env = append(cmd.Env, envSlow+"=1")
	}
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	if ws, ok := cmd.ProcessState.Sys().(interface{ Signaled() bool }); ok && ws.Signaled() {
		return true
	}
	t.Fatalf("child: %v\n%s", err, out)
	return false
}
