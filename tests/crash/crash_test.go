package crash

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/winkfs/winkfs/tests/harness"
	"github.com/winkfs/winkfs/tests/model"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

const (
	operations = 120
	omit       = harness.OmitMtime | harness.OmitIno
)

func number(name string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

// TestKilledAtWrite raises k until a run ends without reaching it, then goes on
// with random ones. Small k hit the birth of the workspace, the last ones its
// orderly end.
func TestKilledAtWrite(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	if at := number("CRASH_AT", 0); at > 0 {
		kill(t, at)
		return
	}
	runs := int(number("CRASH_RUNS", 30))
	k, end := uint64(1), uint64(0)
	for range runs {
		if !kill(t, k) && end == 0 {
			end = k
		}
		if end == 1 {
			t.Fatal("the daemon does not die at its first write: nothing is tested")
		}
		if t.Failed() {
			return
		}
		k = next(k, end)
	}
	if end == 0 {
		t.Logf("no run got to its end before write %d", k)
	}
}

// next returns the following k: rising by a fifth until the end of a run is
// known, then any before it.
func next(k, end uint64) uint64 {
	if end == 0 {
		return k + 1 + rand.Uint64N(2+k/3)
	}
	return 1 + rand.Uint64N(end)
}

// kill does one run and reports whether the daemon died.
func kill(t *testing.T, k uint64) (died bool) {
	t.Run(fmt.Sprintf("at write %d", k), func(t *testing.T) {
		seed := number("MODEL_SEED", rand.Uint64N(1<<32))
		t.Logf("MODEL_SEED=%d CRASH_AT=%d", seed, k)
		r := newRun(t, seed)
		died = r.workUntilKilled(k)
		r.recover(seed % 20)
		r.check()
	})
	return died
}

// run is one workspace that is worked in, killed and mounted again.
type run struct {
	*testing.T
	w      *harness.Workspace
	plain  string
	source harness.Tree
	load   *workload
	seed   uint64
}

func newRun(t *testing.T, seed uint64) *run {
	e := harness.New(t)
	lower := filepath.Join(e.Dir, "lower")
	if err := os.Mkdir(lower, 0o755); err != nil {
		t.Fatal(err)
	}
	model.MakeLower(t, lower)
	r := &run{T: t, plain: filepath.Join(e.Dir, "plain"), seed: seed}
	harness.CopyTree(t, lower, r.plain)
	r.source = harness.MustDump(t, lower)
	r.w = e.Prepare("crash", lower)
	return r
}

// workUntilKilled mounts with a daemon that dies at its k-th write, works in
// the mount and, if the daemon lives, ends it in good order.
func (r *run) workUntilKilled(k uint64) (died bool) {
	r.Helper()
	env := []string{fmt.Sprintf("WINKFS_CRASH_AT_WRITE=%d", k)}
	f, err := r.w.Foreground(env, "--name", "crash", r.w.Source, r.w.Mount)
	if err != nil {
		if !killed(err) {
			r.Fatalf("mount: %v", err)
		}
		return true
	}
	r.load, err = newWorkload(r.w.Mount, r.plain, r.seed)
	if err != nil {
		return r.mustBeDead(f, err)
	}
	if err := r.load.run(operations, r.plain); err != nil {
		r.Errorf("before the kill: %v\ndaemon: %s", err, f.Log())
	}
	r.load.subject.Close()
	if r.load.inFlight == nil {
		r.end()
	}
	return r.died(f.Wait())
}

// end unmounts, which fails when the daemon dies of it.
func (r *run) end() {
	r.Helper()
	if res := r.w.Run("umount", r.w.Name); res.Code != 0 {
		r.Logf("umount: exit status %d\n%s", res.Code, res.Stderr)
	}
}

// mustBeDead accepts an error of the workload's start only from a dead daemon.
func (r *run) mustBeDead(f *harness.Foreground, err error) bool {
	r.Helper()
	if exit := f.Wait(); !killed(exit) {
		r.Fatalf("start workload: %v; daemon: %v", err, exit)
	}
	return true
}

// died reports whether the daemon killed itself. Another bad end is a failure.
func (r *run) died(exit error) bool {
	r.Helper()
	switch {
	case exit == nil:
		return false
	case !killed(exit):
		r.Errorf("the daemon ended by itself: %v", exit)
	}
	return true
}

func killed(err error) bool { return err != nil && strings.Contains(err.Error(), "signal: killed") }

// recover mounts again, at first with a daemon that dies during recovery.
func (r *run) recover(k uint64) {
	r.Helper()
	if k > 0 {
		env := []string{fmt.Sprintf("WINKFS_CRASH_AT_WRITE=%d", k)}
		if f, err := r.w.Foreground(env, r.mountArgs()...); err == nil {
			r.end()
			f.Wait()
		} else if !killed(err) {
			r.Fatalf("mount again: %v", err)
		}
	}
	if _, err := r.w.Foreground(nil, r.mountArgs()...); err != nil {
		r.Fatalf("mount again: %v", err)
	}
}

// mountArgs resumes the workspace or, when it was killed before it was born,
// makes it.
func (r *run) mountArgs() []string {
	if list := r.w.Must("list", "--json"); strings.Contains(list, `"crash"`) {
		return []string{"-w", "crash", r.w.Mount}
	}
	return []string{"--name", "crash", r.w.Source, r.w.Mount}
}

// check compares with what was answered.
func (r *run) check() {
	r.Helper()
	if v := r.w.In("verify"); v.Code != 0 {
		r.Errorf("verify: exit status %d\n%s%s", v.Code, v.Stdout, v.Stderr)
	}
	got := harness.MustDump(r.T, r.w.Mount)
	if r.load != nil {
		r.load.reference.CloseSlots()
	}
	diffs := harness.Differences(got, harness.MustDump(r.T, r.plain), omit)
	if len(diffs) > 0 && r.load != nil && r.load.inFlight != nil {
		r.load.finishInFlight()
		with := harness.Differences(got, harness.MustDump(r.T, r.plain), omit)
		if len(with) == 0 {
			diffs = nil
		}
	}
	if len(diffs) > 0 {
		r.Errorf("after %s the tree differs:\n\t%s", r.story(), strings.Join(diffs, "\n\t"))
	}
	harness.Same(r.T, "the source", harness.MustDump(r.T, r.w.Source), r.source, 0)
}

// story tells the last operations.
func (r *run) story() string {
	if r.load == nil {
		return "no operation"
	}
	last := r.load.answered[max(0, len(r.load.answered)-5):]
	lines := make([]string, len(last))
	for i, o := range last {
		lines[i] = o.String()
	}
	if r.load.inFlight != nil {
		lines = append(lines, "in flight: "+r.load.inFlight.String())
	}
	return fmt.Sprintf("%d operations, the last of them\n\t%s\n", len(r.load.answered), strings.Join(lines, "\n\t"))
}
