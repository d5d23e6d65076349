package history

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/winkfs/winkfs/tests/harness"
	"github.com/winkfs/winkfs/tests/model"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// recorded is what rollback must bring back: all but inode numbers.
const recorded = harness.OmitIno

func seed(t *testing.T) uint64 {
	t.Helper()
	s := rand.Uint64N(1 << 32)
	if n, err := strconv.ParseUint(os.Getenv("MODEL_SEED"), 10, 64); err == nil {
		s = n
	}
	t.Logf("seed %d", s)
	return s
}

// point is a place in the history with the tree as it was there.
type point struct {
	name string // as `rollback` takes it
	tree harness.Tree
}

// lowerTree returns a fresh source.
func lowerTree(t *testing.T, e *harness.Env) string {
	t.Helper()
	lower := filepath.Join(e.Dir, "lower")
	if err := os.Mkdir(lower, 0o755); err != nil {
		t.Fatal(err)
	}
	model.MakeLower(t, lower)
	return lower
}

// author makes a random history in a workspace.
type author struct {
	w     *harness.Workspace
	gen   *model.Gen
	world *model.World
	r     *rand.Rand
}

func newAuthor(t *testing.T, w *harness.Workspace, seed uint64) *author {
	t.Helper()
	world, err := model.NewWorld(w.Mount)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(world.Close)
	return &author{w: w, gen: model.NewGen(seed), world: world, r: rand.New(rand.NewPCG(seed, 2))}
}

// step makes a few changes, now and then by a sandboxed command.
func (a *author) step(i int) {
	if a.r.IntN(20) == 0 {
		a.w.Exec("sh", "-c", fmt.Sprintf("echo %d >> by-exec; mkdir -p made/%d; rm -rf d0/sub1; mv a moved-%d 2>/dev/null; true", i, i, i))
		return
	}
	a.gen.Learn(a.w.Mount)
	for range 1 + a.r.IntN(8) {
		a.world.Do(a.gen.Next())
	}
}

// mark records the present point, under a checkpoint's name or its number.
func (a *author) mark(t *testing.T, i int) point {
	t.Helper()
	p := point{tree: harness.MustDump(t, a.w.Mount)}
	if a.r.IntN(10) == 0 {
		p.name = fmt.Sprintf("mark-%d", i)
		a.w.MustIn("checkpoint", p.name)
		return p
	}
	p.name = strconv.FormatUint(a.w.Head(), 10)
	return p
}

func points() int {
	if n, err := strconv.Atoi(os.Getenv("HISTORY_POINTS")); err == nil {
		return n
	}
	return 200
}

func TestRollbackToAnyPoint(t *testing.T) {
	harness.Require(t, "binary", "fuse", "userns")
	e := harness.New(t)
	source := lowerTree(t, e)
	before := harness.MustDump(t, source)
	w := e.NewWorkspace("history", source)
	a := newAuthor(t, w, seed(t))
	marks := []point{a.mark(t, 0)}
	for i := range points() {
		a.step(i)
		marks = append(marks, a.mark(t, i))
	}
	a.world.CloseSlots()
	for i, at := range a.r.Perm(len(marks)) {
		returnTo(t, w, marks[at], i%4 == 0)
		if t.Failed() {
			return
		}
	}
	w.MustIn("verify")
	harness.Same(t, "the source", harness.MustDump(t, source), before, 0)
}

// returnTo rolls back to the point, and with back also redoes what that undid.
// A rollback to where the workspace is already leaves nothing to redo.
func returnTo(t *testing.T, w *harness.Workspace, p point, back bool) {
	t.Helper()
	was, head := harness.MustDump(t, w.Mount), w.Head()
	w.MustIn("rollback", p.name, "--yes")
	harness.Same(t, "rollback to "+p.name, harness.MustDump(t, w.Mount), p.tree, recorded)
	if !back || t.Failed() || w.Head() == head {
		return
	}
	w.MustIn("redo")
	harness.Same(t, "redo after the rollback to "+p.name, harness.MustDump(t, w.Mount), was, recorded)
}

// TestRollbackSurvivesRemount returns to points after the daemon was replaced,
// so that nothing but the journal can know them.
func TestRollbackSurvivesRemount(t *testing.T) {
	harness.Require(t, "binary", "fuse", "userns")
	e := harness.New(t)
	w := e.NewWorkspace("remount", lowerTree(t, e))
	a := newAuthor(t, w, seed(t))
	var marks []point
	for i := range 20 {
		a.step(i)
		marks = append(marks, a.mark(t, i))
	}
	a.world.Close()
	w.Umount()
	w.Remount()
	for _, at := range a.r.Perm(len(marks))[:10] {
		returnTo(t, w, marks[at], false)
	}
	w.Kill()
	w.Remount()
	returnTo(t, w, marks[0], true)
}
