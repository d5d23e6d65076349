package fsx

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/winkfs/winkfs/tests/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// starts lists what the file is before the first operation.
var starts = []struct {
	name string
	max  int64
	make func(r *rand.Rand, path string) error // nil: it does not exist
}{
	{"new", 256 << 10, nil},
	{"small", 64 << 10, func(r *rand.Rand, p string) error { return os.WriteFile(p, random(r, 20_000), 0o644) }},
	{"large", 3 << 20, func(r *rand.Rand, p string) error { return os.WriteFile(p, random(r, 2_500_000), 0o644) }},
	{"sparse", 2 << 20, makeSparse},
	{"huge", 32 << 20, func(r *rand.Rand, p string) error { return os.WriteFile(p, random(r, 30<<20), 0o644) }},
}

func random(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func makeSparse(r *rand.Rand, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, off := range []int64{0, 400_000, 1 << 20, 1_500_000} {
		if _, err := f.WriteAt(random(r, 50_000), off); err != nil {
			return err
		}
	}
	return f.Truncate(1_800_000)
}

func TestFSX(t *testing.T) {
	for _, s := range starts {
		for range number("FSX_RUNS", 1) {
			seed := rand.Uint64N(1 << 32)
			if n, err := strconv.ParseUint(os.Getenv("FSX_SEED"), 10, 64); err == nil {
				seed = n
			}
			t.Run(fmt.Sprintf("%s/%d", s.name, seed), func(t *testing.T) {
				run(t, rand.New(rand.NewPCG(seed, 1)), s.max, s.make)
			})
		}
	}
}

func run(t *testing.T, r *rand.Rand, max int64, make func(*rand.Rand, string) error) {
	lower := harness.TempDir(t)
	m := &model{}
	if make != nil {
		path := filepath.Join(lower, "file")
		if err := make(r, path); err != nil {
			t.Fatal(err)
		}
		var err error
		if m.data, err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if dir := os.Getenv("FSX_DIR"); dir != "" {
		plain(t, r, dir, lower, max, m)
		return
	}
	w := harness.New(t).NewWorkspace("fsx", lower)
	original := bytes.Clone(m.data)
	play(t, r, w.Mount, max, m, func() { w.Umount(); w.Remount() })
	if t.Failed() {
		return
	}
	back(t, w, make != nil, original, m.data)
	if make != nil {
		expect(t, "the lower file", filepath.Join(lower, "file"), original)
	}
}

// plain plays in a copy of the directory below dir.
func plain(t *testing.T, r *rand.Rand, dir, lower string, max int64, m *model) {
	here, err := os.MkdirTemp(dir, "fsx-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(here)
	if len(m.data) > 0 {
		harness.Output(t, "cp", "--sparse=always", filepath.Join(lower, "file"), here)
	}
	play(t, r, here, max, m, func() {})
}

// play plays random operations on the file in dir.
func play(t *testing.T, r *rand.Rand, dir string, max int64, m *model, again func()) {
	f, err := openFile(filepath.Join(dir, "file"), max)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	g := &gen{r: r, max: max}
	var done []op
	for i := range number("FSX_OPS", 600) {
		o := g.next(m.size())
		if o.kind == appendTo {
			o.off = m.size()
		}
		done = append(done, o)
		if err := errors.Join(step(f, o, m, again), f.checkSize(m)); err != nil {
			t.Fatalf("step %d: %v: %v\n%s", i, o, err, history(done, err))
		}
	}
	if err := f.whole(m); err != nil {
		t.Fatalf("at the end: %v\n%s", err, history(done, err))
	}
}

// step does one operation, those on the mount too.
func step(f *file, o op, m *model, again func()) error {
	switch o.kind {
	case dropCaches:
		harness.DropCaches()
		return nil
	case remount:
		f.close()
		again()
		return errors.Join(f.open(), f.whole(m))
	}
	return f.do(o, m)
}

// history lists the latest operations that may have to do with the error.
func history(done []op, err error) string {
	var d *difference
	var lines []string
	for i, o := range done {
		if !errors.As(err, &d) || o.concerns(d.off) || i > len(done)-5 {
			lines = append(lines, fmt.Sprintf("%5d %v", i, o))
		}
	}
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// back rolls the workspace back to its beginning and redoes everything.
func back(t *testing.T, w *harness.Workspace, existed bool, original, last []byte) {
	path := filepath.Join(w.Mount, "file")
	w.MustIn("rollback", "0", "--yes")
	if existed {
		expect(t, "after the rollback", path, original)
	} else if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("after the rollback the file is there: %v", err)
	}
	w.MustIn("redo")
	expect(t, "after the redo", path, last)
	w.MustIn("verify")
}

func expect(t *testing.T, what, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err == nil {
		err = same(got, want, 0)
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}
