package history

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/winkfs/winkfs/tests/harness"
	"github.com/winkfs/winkfs/tests/model"
)

// likeReference is what a plain directory can't have as the mount has it.
const likeReference = harness.OmitMtime | harness.OmitIno

// TestEverything does random operations, commands, undos, redos, checkpoints,
// rollbacks, collections and crashes in a workspace, and in a plain reference
// that keeps a full copy of its directory for each point: outcomes are equal at
// every step, trees behind every step that is not an operation.
//
//	HISTORY_STEPS  steps, 400
//	MODEL_SEED     plays this seed alone
func TestEverything(t *testing.T) {
	harness.Require(t, "binary", "fuse", "userns")
	f := newFull(t, seed(t))
	for i := range number("HISTORY_STEPS", 400) {
		f.step(i)
		if t.Failed() {
			t.Fatalf("at step %d", i)
		}
	}
	f.compare("the end")
	f.w.MustIn("verify")
	t.Logf("%v", f.counts)
}

// full is a workspace and its reference.
type full struct {
	*testing.T
	e                  *harness.Env
	w                  *harness.Workspace
	r                  *rand.Rand
	gen                *model.Gen
	ref                string
	subject, reference *model.World // nil while a change of history runs

	copies int
	points map[string]fullCopy // by checkpoint
	live   map[uint64]bool     // commands that stand
	execs  uint64
	counts map[string]int
}

// fullCopy is a copy of the reference.
type fullCopy struct {
	dir  string
	live map[uint64]bool
}

func newFull(t *testing.T, seed uint64) *full {
	t.Helper()
	e := harness.New(t)
	source := filepath.Join(e.Dir, "lower")
	for _, d := range []string{source, source + "/execs"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	made := lowerTree(t, &harness.Env{Dir: source})
	if err := os.Rename(made, source+"/ops"); err != nil {
		t.Fatal(err)
	}
	f := &full{
		T: t, e: e, r: rand.New(rand.NewPCG(seed, 5)), gen: model.NewGen(seed), ref: filepath.Join(e.Dir, "reference"),
		points: map[string]fullCopy{}, live: map[uint64]bool{}, counts: map[string]int{},
	}
	harness.CopyTree(t, source, f.ref)
	f.w = e.NewWorkspace("full", source)
	f.open()
	t.Cleanup(f.close)
	return f
}

func (f *full) open() {
	f.Helper()
	var err error
	if f.subject, err = model.NewWorld(f.w.Mount + "/ops"); err != nil {
		f.Fatal(err)
	}
	if f.reference, err = model.NewWorld(f.ref + "/ops"); err != nil {
		f.Fatal(err)
	}
}

// close lets go of both directories.
func (f *full) close() {
	if f.subject != nil {
		f.subject.Close()
		f.reference.Close()
	}
	f.subject, f.reference = nil, nil
}

func (f *full) step(i int) {
	f.Helper()
	if f.r.IntN(12) > 0 {
		f.operation(i)
		return
	}
	name, fn := f.pick()
	f.counts[name]++
	f.close()
	fn()
	f.open()
	f.compare(name)
}

func (f *full) pick() (string, func()) {
	switch k := f.r.IntN(20); {
	case k < 7:
		return "exec", f.exec
	case k < 11:
		return "undo", f.undo
	case k < 13:
		return "checkpoint", f.checkpoint
	case k < 15:
		return "rollback", f.rollback
	case k < 16:
		return "delete", f.deleteCheckpoint
	case k < 18:
		return "gc", f.gc
	}
	return "crash", f.crash
}

func (f *full) operation(i int) {
	f.Helper()
	if i%10 == 0 {
		f.gen.Learn(f.ref + "/ops")
	}
	o := f.gen.Next()
	got, _ := f.subject.Do(o)
	if want, _ := f.reference.Do(o); got != want {
		f.Errorf("%s: got %q, want %q", o, got, want)
	}
}

func (f *full) compare(what string) {
	f.Helper()
	got, want := harness.MustDump(f.T, f.w.Mount), harness.MustDump(f.T, f.ref)
	if diffs := harness.Differences(got, want, likeReference); len(diffs) > 0 {
		f.Errorf("after %s the tree differs:\n\t%s", what, strings.Join(diffs, "\n\t"))
	}
}

// exec runs a command that writes a file of its own.
func (f *full) exec() {
	f.Helper()
	f.execs++
	script := fmt.Sprintf("mkdir execs/%d && echo %d > execs/%d/file && ln execs/%d/file execs/%d/link", f.execs, f.execs, f.execs, f.execs, f.execs)
	mustExec(f.T, f.w, script)
	cmd := osexec.Command("sh", "-ec", script)
	cmd.Dir = f.ref
	if out, err := cmd.CombinedOutput(); err != nil {
		f.Fatalf("%s: %v %s", script, err, out)
	}
	f.live[f.execs] = true
}

// undo takes a command back that stands, and now and then redoes it.
func (f *full) undo() {
	f.Helper()
	if len(f.live) == 0 {
		return
	}
	ids := slices.Sorted(maps.Keys(f.live))
	id := ids[f.r.IntN(len(ids))]
	res := f.w.In("undo", fmt.Sprintf("exec:%d", id))
	if res.Code == 3 && strings.Contains(res.Stderr, "gc") {
		f.counts["undo of what gc dropped"]++
		return
	}
	if res.Code != 0 {
		f.Errorf("undo exec:%d: exit status %d\n%s", id, res.Code, res.Stderr)
		return
	}
	if f.r.IntN(3) == 0 {
		f.w.MustIn("redo")
		return
	}
	delete(f.live, id)
	if err := harness.RemoveTree(fmt.Sprintf("%s/execs/%d", f.ref, id)); err != nil {
		f.Fatal(err)
	}
}

// copyOf copies the reference.
func (f *full) copyOf() fullCopy {
	f.Helper()
	f.copies++
	p := fullCopy{fmt.Sprintf("%s/copy%d", f.e.Dir, f.copies), maps.Clone(f.live)}
	harness.CopyTree(f.T, f.ref, p.dir)
	return p
}

// become makes the reference what a copy is.
func (f *full) become(p fullCopy) {
	f.Helper()
	if err := harness.RemoveTree(f.ref); err != nil {
		f.Fatal(err)
	}
	harness.CopyTree(f.T, p.dir, f.ref)
	f.live = maps.Clone(p.live)
}

func (f *full) checkpoint() {
	f.Helper()
	name := fmt.Sprintf("c%d", f.copies)
	f.w.MustIn("checkpoint", name)
	f.points[name] = f.copyOf()
}

func (f *full) deleteCheckpoint() {
	f.Helper()
	if name, p, ok := f.somePoint(); ok {
		f.w.MustIn("checkpoint", "--delete", name)
		delete(f.points, name)
		harness.RemoveTree(p.dir)
	}
}

func (f *full) somePoint() (string, fullCopy, bool) {
	names := slices.Sorted(maps.Keys(f.points))
	if len(names) == 0 {
		return "", fullCopy{}, false
	}
	name := names[f.r.IntN(len(names))]
	return name, f.points[name], true
}

func (f *full) rollback() {
	f.Helper()
	name, p, ok := f.somePoint()
	if !ok {
		return
	}
	head := f.w.Head()
	f.w.MustIn("rollback", "--yes", name)
	if f.r.IntN(3) == 0 && f.w.Head() > head {
		f.w.MustIn("redo")
		return
	}
	f.become(p)
}

func (f *full) gc() {
	f.Helper()
	f.w.MustIn("gc", "--bytes", "1")
}

// crash kills the daemon.
func (f *full) crash() {
	f.Helper()
	f.w.Kill()
	harness.UnmountBelow(f.w.Mount)
	f.w.Remount()
}
