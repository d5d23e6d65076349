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

// TestDaemonKilledAtWrite kills the parent's daemon at its k-th write while it
// has a fork made, and then merges one. The parent is whole at every k, and what
// was answered is there.
func TestDaemonKilledAtWrite(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	p := parent(t, "")
	work(t, p.Mount, 8, 60)
	f := fork(p, "fork")
	work(t, f.Mount, 9, 60)
	before, after := harness.MustDump(t, p.Mount), harness.MustDump(t, f.Mount)
	f.Umount()
	p.Umount()
	const omit = harness.OmitIno | harness.OmitDirMtime
	killed := 0
	for k := 1; ; k = step(k) {
		name := fmt.Sprintf("clone%d", k)
		cloned, merged, alive := underDaemon(t, p, k, name)
		p.Remount()
		p.MustIn("verify")
		got := harness.MustDump(t, p.Mount)
		there := strings.Contains(p.Must("list", "--json"), `"`+name+`"`)
		if cloned && !there {
			t.Errorf("k = %d: the fork was answered and is not there", k)
		}
		if there {
			p.Must("verify", name)
		}
		changed := len(harness.Differences(got, before, omit)) > 0
		if merged && !changed {
			t.Errorf("k = %d: the merge was answered and is not there", k)
		}
		if changed {
			harness.Same(t, fmt.Sprintf("merged, killed at %d", k), got, after, omit)
			p.MustIn("undo", lastMerge(p))
		}
		p.Umount()
		if alive || t.Failed() {
			break
		}
		killed++
	}
	if killed < 10 {
		t.Errorf("only %d daemons were killed", killed)
	}
}

// underDaemon clones and merges under a daemon that kills itself at its k-th
// write, and reports what was answered and whether the daemon came to its end.
func underDaemon(t *testing.T, p *harness.Workspace, k int, name string) (cloned, merged, alive bool) {
	t.Helper()
	d, err := p.Foreground([]string{fmt.Sprintf("WINKFS_CRASH_AT_WRITE=%d", k)}, "-w", p.Name, p.Mount)
	if err != nil {
		if !strings.Contains(err.Error(), "killed") {
			t.Fatalf("k = %d: mount: %v", k, err)
		}
		return false, false, false
	}
	cloned = p.Run("clone", "-w", p.Name, "--with-changes", name).Code == 0
	merged = p.Run("merge", "fork").Code == 0
	p.Run("umount", p.Name)
	return cloned, merged, d.Wait() == nil
}
