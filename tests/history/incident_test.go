package history

import (
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
)

// incidents are the accidents that people report of agents' shells.
var incidents = []struct{ name, script string }{
	{"sed in place", `sed -i s/colour/color/ src/main.c notes.txt .env`},
	{"rm of a build", `rm -rf build`},
	{"mv of the sources", `mv src lib`},
	{"git clean", `git clean -qfdx`},
	{"git reset", `git reset -q --hard`},
	{"chmod of all", `chmod -R a-x,u+rwX .`},
	{"find and delete", `find . -name '*.c' -delete; find . -type d -empty -delete`},
	{"touch of all", `find . -exec touch -h -d 2001-01-01 {} +`},
	{"links cut", `for f in twin notes.txt; do cp $f $f.new; mv $f.new $f; done; rm link; ln -s nowhere link`},
}

// project makes a source with all that an undo could lose: a repository with
// staged, changed, untracked and ignored files, modes, old times, extended
// attributes, hard and symbolic links, empty directories, a FIFO.
func project(t *testing.T, e *harness.Env) string {
	t.Helper()
	dir := filepath.Join(e.Dir, "project")
	script := `set -e
mkdir -p src/deep/deeper build/obj empty/inner
printf 'int colour;\n' > src/main.c
printf 'int deep;\n' > src/deep/deeper/x.c
printf 'colour notes\n' > notes.txt
printf 'build/\n.env\n' > .gitignore
git init -q; git add .gitignore src notes.txt
git -c user.name=a -c user.email=a@b commit -qm first
printf 'more colour\n' >> src/main.c; git add src/main.c
printf 'unstaged colour\n' >> src/main.c
printf 'SECRET=colour\n' > .env; chmod 600 .env
printf 'untracked\n' > untracked.c
head -c 300000 /dev/zero | tr '\0' x > build/obj/big.o
printf '#!/bin/sh\n' > build/run; chmod 755 build/run
chmod 444 build/obj/big.o; chmod 700 build
ln notes.txt twin; ln -s notes.txt link; ln -s /nowhere build/dangling
mkfifo -m 640 fifo
`
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := osexec.Command("sh", "-c", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make project: %v\n%s", err, out)
	}
	if err := unix.Setxattr(filepath.Join(dir, ".env"), "user.owner", []byte("me"), 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr(filepath.Join(dir, "build"), "user.kind", []byte("made"), 0); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2020, 3, 4, 5, 6, 7, 123456789, time.UTC)
	for _, p := range []string{"src/main.c", "build/obj/big.o", "build/obj", "build", "empty", "src"} {
		if err := os.Chtimes(filepath.Join(dir, p), at, at); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestIncidents replays the accidents by a command and by a shell in the mount,
// in one workspace after another's undo, and undoes each with one command.
func TestIncidents(t *testing.T) {
	harness.Require(t, "binary", "fuse", "userns", "git")
	e := harness.New(t)
	source := project(t, e)
	before := harness.MustDump(t, source)
	w := e.NewWorkspace("incident", source)
	for i, in := range incidents {
		t.Run(in.name+"/command", func(t *testing.T) {
			mustExec(t, w, "git config --global --add safe.directory '*'; "+in.script)
			undoIncident(t, w, fmt.Sprintf("exec:%d", i+1), before)
		})
		t.Run(in.name+"/shell", func(t *testing.T) {
			head := w.Head()
			cmd := osexec.Command("sh", "-ec", in.script)
			cmd.Dir = w.Mount
			cmd.Env = append(os.Environ(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			undoIncident(t, w, strconv.FormatUint(head, 10)+"..", before)
		})
	}
	harness.Same(t, "the source", harness.MustDump(t, source), before, 0)
	w.MustIn("verify")
}

// undoIncident undoes what must have changed something, redoes it, and undoes
// that.
func undoIncident(t *testing.T, w *harness.Workspace, what string, want harness.Tree) {
	t.Helper()
	broken := harness.MustDump(t, w.Mount)
	if len(harness.Differences(broken, want, recorded)) == 0 {
		t.Fatal("the accident changed nothing")
	}
	w.MustIn("undo", what)
	harness.Same(t, "after the undo", harness.MustDump(t, w.Mount), want, recorded)
	w.MustIn("redo")
	harness.Same(t, "after the redo", harness.MustDump(t, w.Mount), broken, recorded)
	w.MustIn("undo", what)
	harness.Same(t, "after the second undo", harness.MustDump(t, w.Mount), want, recorded)
}
