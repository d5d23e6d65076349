package posix

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hanwen/go-fuse/v2/posixtest"

	"github.com/winkfs/winkfs/tests/harness"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(lockHolder); path != "" {
		tryLock(path)
		return
	}
	os.Exit(harness.Main(m))
}

// skips lists the cases of posixtest that are not run, each with the reason.
var skips = map[string]string{
	// go-fuse's own run on a plain directory skips it too: F_SETLK locks belong
	// to the process, so its two descriptors never conflict. It only passes where
	// the daemon keeps the locks; ours are the kernel's, as on a plain directory.
	"FcntlFlockLocksFile": "expects record locks that conflict within one process",
}

func TestGoFuse(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	for name := range skips {
		if posixtest.All[name] == nil {
			t.Errorf("skipped case %s does not exist", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(posixtest.All)) {
		t.Run(name, func(t *testing.T) {
			if why := skips[name]; why != "" {
				t.Skip(why)
			}
			posixtest.All[name](t, mount(t))
		})
	}
}

// mount returns the mount point of a workspace over an empty directory.
func mount(t *testing.T, flags ...string) string {
	t.Helper()
	e := harness.New(t)
	public(t, e.Dir)
	lower := filepath.Join(e.Dir, "lower")
	if err := os.Mkdir(lower, 0o755); err != nil {
		t.Fatal(err)
	}
	return e.NewWorkspace("posix", lower, flags...).Mount
}

// families are our own cases. Each gets an empty directory.
var families = []struct {
	name  string
	cases map[string]func(t *testing.T, dir string)
}{
	{"data", dataCases},
	{"names", nameCases},
	{"directories", directoryCases},
	{"attributes", attributeCases},
	{"special", specialCases},
	{"acl", aclCases},
	{"io", ioCases},
	{"async", asyncCases},
	{"scale", scaleCases},
}

// TestOwn runs the families on a plain directory, then on a mount.
func TestOwn(t *testing.T) {
	if dir := os.Getenv("POSIX_DIR"); dir != "" {
		t.Run("POSIX_DIR", func(t *testing.T) { all(t, dir) })
		return
	}
	t.Run("plain", func(t *testing.T) { all(t, public(t, t.TempDir())) })
	t.Run("mount", func(t *testing.T) {
		harness.Require(t, "binary", "fuse")
		all(t, mount(t))
	})
	if os.Geteuid() == 0 {
		t.Run("full", func(t *testing.T) {
			harness.Require(t, "binary", "fuse")
			all(t, mount(t, "-o", "profile=posix-full"))
		})
	}
}

// public lets other users into a directory of t.TempDir and returns it.
func public(t *testing.T, dir string) string {
	t.Helper()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		check(t, os.Chmod(d, 0o755))
	}
	return dir
}

func all(t *testing.T, dir string) {
	for _, f := range families {
		for _, name := range slices.Sorted(maps.Keys(f.cases)) {
			t.Run(f.name+"/"+name, func(t *testing.T) {
				own, err := os.MkdirTemp(dir, "case-")
				check(t, err)
				t.Cleanup(func() { os.RemoveAll(own) })
				f.cases[name](t, own)
			})
		}
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fails checks for an error number.
func fails(t testing.TB, what string, got, want error) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// equal compares two values.
func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
