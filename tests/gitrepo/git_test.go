package gitrepo

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/winkfs/winkfs/tests/harness"
)

// mountBudget is what mounting over a tree of any size may take, the start of
// the daemon included.
const mountBudget = 50 * time.Millisecond

func TestGitWorks(t *testing.T) {
	harness.Require(t, "binary", "fuse", "git", "diff")
	e := harness.New(t)
	source := filepath.Join(e.Dir, "source")
	makeRepository(t, source)
	before := harness.MustDump(t, source)
	w := e.NewWorkspace("git", source)

	t.Run("equal before any change", func(t *testing.T) {
		harness.Output(t, "diff", "-r", "--no-dereference", source, w.Mount)
		clean(t, w.Mount)
		git(t, w.Mount, "fsck", "--full")
	})
	t.Run("stash", func(t *testing.T) {
		write(t, w.Mount+"/part01/dir1/file00001.txt", "changed\n")
		write(t, w.Mount+"/new.txt", "new\n")
		git(t, w.Mount, "stash", "push", "-q", "-u")
		clean(t, w.Mount)
		git(t, w.Mount, "stash", "pop", "-q")
		if data, _ := os.ReadFile(w.Mount + "/part01/dir1/file00001.txt"); string(data) != "changed\n" {
			t.Errorf("content after the stash: %q", data)
		}
		git(t, w.Mount, "checkout", "-q", "--", ".")
		git(t, w.Mount, "clean", "-qfd")
		clean(t, w.Mount)
	})
	t.Run("checkout and back", func(t *testing.T) {
		head := harness.MustDump(t, w.Mount+"/moved")
		git(t, w.Mount, "checkout", "-q", "HEAD~1")
		clean(t, w.Mount)
		if _, err := os.Stat(w.Mount + "/part39"); err != nil {
			t.Error(err)
		}
		git(t, w.Mount, "checkout", "-q", "main")
		clean(t, w.Mount)
		harness.Same(t, "after going there and back", harness.MustDump(t, w.Mount+"/moved"), head, harness.OmitMtime|harness.OmitIno)
	})
	t.Run("gc", func(t *testing.T) {
		git(t, w.Mount, "gc", "-q", "--prune=now")
		git(t, w.Mount, "fsck", "--full")
		clean(t, w.Mount)
	})
	t.Run("after a remount", func(t *testing.T) {
		w.Umount()
		w.Remount()
		git(t, w.Mount, "fsck", "--full")
		clean(t, w.Mount)
		w.MustIn("verify")
	})
	harness.Same(t, "the source", harness.MustDump(t, source), before, 0)
	clean(t, source)
}

func TestGitInTheSandbox(t *testing.T) {
	harness.Require(t, "binary", "fuse", "userns", "git")
	e := harness.New(t)
	source := filepath.Join(e.Dir, "source")
	if err := os.Mkdir(source, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, source+"/a", "one\n")
	git(t, source, "init", "-q", "-b", "main")
	commit(t, source, "first")
	w := e.NewWorkspace("inside", source)
	script := `git status --porcelain && echo two >> a && git -c user.name=t -c user.email=t@example.org commit -qam second && git log --oneline | wc -l`
	if r := w.Exec("sh", "-ec", script); r.Code != 0 || r.Stdout != "2\n" {
		t.Errorf("exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	clean(t, w.Mount)
}

// TestMountIsQuick mounts until one mount is within the budget, since other
// work on the machine can only make it slower.
func TestMountIsQuick(t *testing.T) {
	e := harness.New(t)
	source := filepath.Join(e.Dir, "source")
	makeRepository(t, source)
	best := time.Hour
	for i := range 40 {
		begin := time.Now()
		w := e.NewWorkspace(fmt.Sprintf("quick%d", i), source)
		best = min(best, time.Since(begin))
		w.Umount()
		if best <= mountBudget {
			t.Logf("mounted in %v", best)
			return
		}
	}
	t.Errorf("mounting takes %v, more than %v", best, mountBudget)
}

func write(t *testing.T, path, s string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(s), 0o644); err != nil {
		t.Fatal(err)
	}
}
