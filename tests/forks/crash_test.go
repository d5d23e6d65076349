package forks

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/winkfs/winkfs/tests/harness"
)

// step returns the following k: all small ones, then rising by a tenth.
func step(k int) int { return k + 1 + k/10 }

// TestCloneKilledAtWrite kills winkfs at its k-th write while it makes a fork,
// for rising k until it lives. The parent stays whole; of the fork there is
// all or nothing, and the next one clears away what is left.
func TestCloneKilledAtWrite(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	p := parent(t, "")
	work(t, p.Mount, 5, 60)
	want := harness.MustDump(t, p.Mount)
	p.Umount()
	killed := 0
	for k := 1; ; k = step(k) {
		name := fmt.Sprintf("fork%d", k)
		r := killedAt(p, k, "clone", "-w", p.Name, "--with-changes", name)
		p.Remount() // which mends what the kill left at the journal's end
		p.MustIn("verify")
		p.Umount()
		there := strings.Contains(p.Must("list", "--json"), `"`+name+`"`)
		if there {
			p.Must("verify", name)
		}
		if r.Code == 0 {
			if !there {
				t.Fatalf("k = %d: the fork was made and is not there", k)
			}
			f := p.Prepare(name, p.Source)
			f.Must("mount", "-w", name, f.Mount)
			harness.Same(t, "the fork", harness.MustDump(t, f.Mount), want, harness.OmitIno)
			f.Umount()
			break
		}
		killed++
	}
	if killed < 5 {
		t.Errorf("only %d runs were killed", killed)
	}
	var listed int
	for _, line := range strings.Split(strings.TrimSpace(p.Must("list")), "\n")[1:] {
		if line != "" {
			listed++
		}
	}
	if dirs, err := os.ReadDir(p.State); err != nil || len(dirs) != listed {
		t.Errorf("%d workspaces are listed, %d directories are there (%v)", listed, len(dirs), err)
	}
	p.Remount()
	harness.Same(t, "the parent", harness.MustDump(t, p.Mount), want, 0)
}

// killedAt runs a winkfs command that kills itself at its k-th write.
func killedAt(w *harness.Workspace, k int, args ...string) harness.Result {
	w.Extra = append(w.Extra, fmt.Sprintf("WINKFS_CRASH_AT_WRITE=%d", k))
	defer func() { w.Extra = w.Extra[:len(w.Extra)-1] }()
	return w.Run(args...)
}

// TestMergeKilledAtWrite kills winkfs at its k-th write while it merges. The
// parent has all of the merge or nothing, and the merge can be made then.
func TestMergeKilledAtWrite(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	p := parent(t, "")
	work(t, p.Mount, 6, 60)
	f := fork(p, "fork")
	work(t, f.Mount, 7, 80)
	before, after := harness.MustDump(t, p.Mount), harness.MustDump(t, f.Mount)
	f.Umount()
	p.Umount()
	killed := 0
	const omit = harness.OmitIno | harness.OmitDirMtime
	for k := 1; ; k = step(k) {
		r := killedAt(p, k, "merge", "fork")
		p.Remount()
		p.MustIn("verify")
		got := harness.MustDump(t, p.Mount)
		done := len(harness.Differences(got, before, omit)) > 0
		if done {
			harness.Same(t, fmt.Sprintf("merged, killed at %d", k), got, after, omit)
			if r.Code == 0 {
				p.Umount()
				break
			}
			p.MustIn("undo", lastMerge(p))
		} else if r.Code == 0 {
			t.Fatalf("k = %d: the merge was made and does not show", k)
		}
		p.Umount()
		killed++
	}
	if killed < 3 {
		t.Errorf("only %d runs were killed", killed)
	}
	f.Remount()
	harness.Same(t, "the fork", harness.MustDump(t, f.Mount), after, 0)
	p.Remount()
}
