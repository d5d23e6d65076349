package gitrepo

import (
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winkfs/winkfs/tests/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// files is the number of files in the repository.
const files = 10_000

// makeRepository makes a repository with two commits.
func makeRepository(t *testing.T, dir string) {
	t.Helper()
	for i := range files {
		name := fmt.Sprintf("%s/part%02d/dir%d/file%05d.txt", dir, i%40, i%7, i)
		if i < 280 {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		line := fmt.Sprintf("line of file %d\n", i)
		if err := os.WriteFile(name, []byte(strings.Repeat(line, 1+i%90)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "config", "gc.auto", "0")
	commit(t, dir, "first")
	for i := 0; i < files; i += 50 {
		name := fmt.Sprintf("%s/part%02d/dir%d/file%05d.txt", dir, i%40, i%7, i)
		if err := os.WriteFile(name, []byte("second\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "mv", "part39", "moved")
	commit(t, dir, "second")
	git(t, dir, "update-index", "--refresh")
}

func commit(t *testing.T, dir, message string) {
	t.Helper()
	git(t, dir, "add", "-A")
	git(t, dir, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", message)
}

// git runs git, which must succeed, and returns its output.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := osexec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.org", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// clean checks that git sees no change.
func clean(t *testing.T, dir string) {
	t.Helper()
	if out := git(t, dir, "status", "--porcelain"); out != "" {
		t.Errorf("git status is not clean:\n%.500s", out)
	}
}
