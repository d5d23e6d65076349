package history

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
	"github.com/winkfs/winkfs/tests/model"
)

// inPatch is what a git patch does not carry.
const inPatch = harness.OmitMtime | harness.OmitOwner | harness.OmitXattrs | harness.OmitLinks |
	harness.OmitModes | harness.OmitDirs | harness.OmitIno

func TestPatchMakesTheSameTree(t *testing.T) {
	harness.Require(t, "binary", "fuse", "git")
	for range 3 {
		s := seed(t)
		e := harness.New(t)
		source := lowerTree(t, e)
		if err := os.Remove(source + "/fifo"); err != nil {
			t.Fatal(err)
		}
		w := e.NewWorkspace("patch", source)
		a := newAuthor(t, w, s)
		changeMuch(t, a)
		patch := filepath.Join(e.Dir, "patch")
		if err := os.WriteFile(patch, []byte(w.MustIn("diff", "--binary")), 0o644); err != nil {
			t.Fatal(err)
		}
		elsewhere := filepath.Join(e.Dir, "elsewhere")
		harness.CopyTree(t, source, elsewhere)
		gitApply(t, e, elsewhere, "--check", patch)
		gitApply(t, e, elsewhere, patch)
		harness.Same(t, "the tree that the patch makes", harness.MustDump(t, elsewhere), harness.MustDump(t, w.Mount), inPatch)
		a.world.Close()
		w.Umount()
	}
}

// changeMuch makes random changes that a git patch can carry.
func changeMuch(t *testing.T, a *author) {
	t.Helper()
	for range 300 / model.Slots {
		a.gen.Learn(a.w.Mount)
		for range model.Slots {
			if o := a.gen.Next(); o.Kind != model.Mkfifo {
				a.world.Do(o)
			}
		}
	}
	for name, entry := range harness.MustDump(t, a.w.Mount) {
		if entry.Mode&unix.S_IFMT == unix.S_IFIFO {
			t.Fatalf("%q is a FIFO", name)
		}
	}
}

func gitApply(t *testing.T, e *harness.Env, dir string, args ...string) {
	t.Helper()
	cmd := osexec.Command("git", append([]string{"apply", "--whitespace=nowarn"}, args...)...)
	cmd.Dir = dir
	// Whatever repository the temporary directory may lie in is none of ours.
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+e.Dir, "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git apply %v: %v\n%s", args, err, out)
	}
}
