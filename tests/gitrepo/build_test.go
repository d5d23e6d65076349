package gitrepo

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winkfs/winkfs/tests/harness"
)

// TestWinkfsBuildsItself builds and tests winkfs with its own source in a
// workspace.
func TestWinkfsBuildsItself(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	root, err := harness.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "journal")); err != nil {
		t.Skip("the source is not at hand: root's pass runs this")
	}
	e := harness.New(t)
	source := filepath.Join(e.Dir, "source")
	copySource(t, root, source)
	before := harness.MustDump(t, source)
	w := e.NewWorkspace("self", source)
	goInside(t, w.Mount, "build", "-buildvcs=false", "-o", "bin/winkfs", "./cmd/winkfs")
	if out := harness.Output(t, w.Mount+"/bin/winkfs", "version"); !strings.Contains(out, "winkfs") {
		t.Errorf("the binary built inside says %q", out)
	}
	goInside(t, w.Mount, "test", "-count=1", "./journal/...", "./policy/...", "./fs/tree/...", "./diffview/...", "./hydrate/...")
	harness.Same(t, "the source", harness.MustDump(t, source), before, 0)
}

// copySource copies the files that git knows or would add.
func copySource(t *testing.T, root, to string) {
	t.Helper()
	list := osexec.Command("git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z")
	out, err := list.Output()
	if err != nil {
		t.Skipf("the source is no git repository: %v", err)
	}
	for name := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // deleted but not yet committed
		}
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, path, string(data))
	}
}

func goInside(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := osexec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "TMPDIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
