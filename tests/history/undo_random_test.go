package history

import (
	"fmt"
	"strings"
	"testing"

	"github.com/winkfs/winkfs/tests/harness"
)

// TestUndoAnyOrder makes random changes in groups and undoes them in a random
// order. What conflicts must change nothing; what is undone must come back by
// redo. At last the groups that are left are undone from the newest on, after
// which the mount must look like the source, but for times that more than one
// group set. What conflicts even then, because an undo out of order has merged
// texts, ends the test.
//
//	HISTORY_GROUPS  number of groups, 16
func TestUndoAnyOrder(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	e := harness.New(t)
	source := lowerTree(t, e)
	base := harness.MustDump(t, source)
	w := e.NewWorkspace("order", source)
	a := newAuthor(t, w, seed(t))
	groups := number("HISTORY_GROUPS", 16)
	for range groups {
		w.MustIn("begin")
		for range 1 + a.r.IntN(3) {
			a.gen.Learn(w.Mount)
			for range 1 + a.r.IntN(8) {
				a.world.Do(a.gen.Next())
			}
		}
		a.world.CloseSlots()
		w.MustIn("end")
	}
	done := map[int]bool{}
	for _, i := range a.r.Perm(groups)[:groups/2] {
		done[i+1] = undoGroup(t, w, i+1)
		if t.Failed() {
			return
		}
	}
	t.Logf("undone out of order: %v", done)
	for i := groups; i > 0; i-- {
		if done[i] {
			continue
		}
		r := w.In("undo", fmt.Sprintf("group:%d", i))
		if r.Code == 5 {
			t.Logf("group %d can't be undone:\n%s", i, r.Stdout)
			w.MustIn("verify")
			return
		}
		if r.Code != 0 && !strings.Contains(r.Stderr, "changed nothing") {
			t.Fatalf("undo of group %d, the newest left: exit status %d\n%s%s", i, r.Code, r.Stdout, r.Stderr)
		}
	}
	a.world.Close()
	harness.Same(t, "after all undos", harness.MustDump(t, w.Mount), base, harness.OmitIno|harness.OmitMtime)
	w.MustIn("verify")
	w.Umount()
	w.Remount()
	harness.Same(t, "after a remount", harness.MustDump(t, w.Mount), base, harness.OmitIno|harness.OmitMtime)
}

// undoGroup undoes a group, takes that back and undoes it again. It returns
// whether the group is undone.
func undoGroup(t *testing.T, w *harness.Workspace, i int) bool {
	t.Helper()
	what := fmt.Sprintf("group:%d", i)
	before := harness.MustDump(t, w.Mount)
	const same = harness.OmitIno | harness.OmitDirMtime
	r := w.In("undo", what)
	switch r.Code {
	case 3:
		return false // it changed nothing
	case 5:
		harness.Same(t, "after the refused undo of "+what, harness.MustDump(t, w.Mount), before, 0)
		return false
	case 0:
	default:
		t.Fatalf("undo %s: exit status %d\n%s", what, r.Code, r.Stderr)
	}
	undone := harness.MustDump(t, w.Mount)
	w.MustIn("redo")
	harness.Same(t, "after the redo of "+what, harness.MustDump(t, w.Mount), before, same)
	w.MustIn("undo", what)
	harness.Same(t, "after the second undo of "+what, harness.MustDump(t, w.Mount), undone, same)
	return true
}
