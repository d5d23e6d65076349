package history

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/winkfs/winkfs/tests/harness"
	"github.com/winkfs/winkfs/tests/model"
)

// likeReference is what a plain directory can't have as the mount has it.
const likeReference = harness.OmitMtime | harness.OmitIno

// maxSpaces bounds the workspaces that are there at once.
const maxSpaces = 4

// TestEverything does random operations, commands, undos, redos, checkpoints,
// rollbacks, collections, crashes, clones, merges and removals in a family of
// workspaces, and in a plain reference that keeps full copies of directories:
// outcomes are equal at every step, and so is what the step can have changed,
// in full.
//
//	HISTORY_STEPS  steps, 400
//	HISTORY_EVERY  one step in so many is more than an operation on files, 12
//	HISTORY_VIEWS  if set, all points are looked at after each such step
//	MODEL_SEED     plays this seed alone
func TestEverything(t *testing.T) {
	harness.Require(t, "binary", "fuse", "userns")
	f := newFull(t, seed(t))
	steps := number("HISTORY_STEPS", 400)
	for i := range steps {
		f.step()
		if t.Failed() {
			t.Fatalf("at step %d", i)
		}
		if i%1000 == 999 {
			f.sweep()
			t.Logf("%d steps, %v", i+1, f.counts)
		}
	}
	f.focus.close()
	for _, s := range slices.Backward(f.spaces) {
		s.compare("the end")
		s.remount()
		s.compare("a remount")
		s.w.MustIn("verify")
	}
	t.Logf("%d steps, %v", steps, f.counts)
}

// full is a family of workspaces and what the reference knows of all.
type full struct {
	*testing.T
	e      *harness.Env
	r      *rand.Rand
	gen    *model.Gen
	source string
	spaces []*space // the first was made of no other
	focus  focus
	serial int // of names, stamps and identities
	counts map[string]int
}

func newFull(t *testing.T, seed uint64) *full {
	t.Helper()
	e := harness.New(t)
	f := &full{
		T: t, e: e, r: rand.New(rand.NewPCG(seed, 5)), gen: model.NewGen(seed),
		source: filepath.Join(e.Dir, "lower"), counts: map[string]int{},
	}
	f.gen.Small = true
	for _, dir := range []string{"", "/execs", "/ops", "/ops/first", "/text"} {
		if err := os.Mkdir(f.source+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := &space{full: f, ref: filepath.Join(e.Dir, "reference"), now: newFacts(), points: map[string]*fullCopy{}, merges: map[string]bool{}}
	model.MakeLower(t, f.source+"/ops/first")
	s.now.areas["first"] = f.next()
	for i := range texts / 2 {
		name := fmt.Sprint("t", i)
		s.now.text[name] = f.newText()
		s.now.text[name].write(t, f.source, name, "new")
	}
	s.owned = []string{"first"}
	harness.CopyTree(t, f.source, s.ref)
	s.w = e.NewWorkspace("root", f.source)
	f.spaces = []*space{s}
	t.Cleanup(func() { f.focus.close() })
	return f
}

// next returns a number that was never used.
func (f *full) next() int {
	f.serial++
	return f.serial
}

func (f *full) someSpace() *space { return f.spaces[f.r.IntN(len(f.spaces))] }

func (f *full) step() {
	f.Helper()
	switch {
	case f.r.IntN(number("HISTORY_EVERY", 12)) == 0:
		f.history()
	case f.r.IntN(20) == 0:
		f.someSpace().editText()
	default:
		f.operation()
	}
}

// history does one step that is more than an operation on files.
func (f *full) history() {
	f.Helper()
	f.focus.close()
	s := f.someSpace()
	all := []struct {
		weight int
		name   string
		fn     func()
	}{
		{6, "exec", s.exec},
		{5, "undo", s.undo},
		{4, "checkpoint", s.checkpoint},
		{3, "rollback", s.rollback},
		{2, "view", s.view},
		{1, "delete", s.deleteCheckpoint},
		{2, "gc", s.gc},
		{2, "crash", s.crash},
		{1, "remount", s.remount},
		{1, "verify", s.verify},
		{4, "clone", s.clone},
		{6, "merge", s.mergeSome},
		{2, "remove", s.remove},
		{1, "clear", s.clear},
	}
	total := 0
	for _, a := range all {
		total += a.weight
	}
	n := f.r.IntN(total)
	for _, a := range all {
		if n -= a.weight; n < 0 {
			f.counts[a.name]++
			a.fn()
			if os.Getenv("HISTORY_VIEWS") != "" {
				f.views()
			}
			if f.Failed() {
				f.Errorf("that was %s in %s", a.name, s.w.Name)
			}
			return
		}
	}
}

// views compares all points of all workspaces.
func (f *full) views() {
	f.Helper()
	for _, s := range f.spaces {
		for _, name := range keys(s.points) {
			s.viewOf(name, s.points[name])
		}
	}
}

// sweep removes the copies that no point needs any more.
func (f *full) sweep() {
	f.Helper()
	needed := map[string]bool{}
	for _, s := range f.spaces {
		for _, p := range s.points {
			needed[p.dir] = true
		}
	}
	copies, err := filepath.Glob(f.e.Dir + "/copy*")
	if err != nil {
		f.Fatal(err)
	}
	for _, dir := range copies {
		if !needed[dir] {
			if err := harness.RemoveTree(dir); err != nil {
				f.Fatal(err)
			}
		}
	}
}
