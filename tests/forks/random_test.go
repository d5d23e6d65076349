package forks

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
	"github.com/winkfs/winkfs/tests/model"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

func number(name string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

// runs calls fn with random seeds, as many as FORK_RUNS says.
func runs(t *testing.T, n uint64, fn func(t *testing.T, seed uint64)) {
	harness.Require(t, "binary", "fuse")
	if s := number("MODEL_SEED", 0); s != 0 {
		fn(t, s)
		return
	}
	for range number("FORK_RUNS", n) {
		seed := rand.Uint64N(1<<32) + 1
		t.Run(fmt.Sprint(seed), func(t *testing.T) { fn(t, seed) })
		if t.Failed() {
			t.Logf("MODEL_SEED=%d", seed)
			return
		}
	}
}

// parent mounts a workspace over a fresh tree with names in the directories.
func parent(t *testing.T, dirs ...string) *harness.Workspace {
	t.Helper()
	e := harness.New(t)
	lower := filepath.Join(e.Dir, "lower")
	mkdir(t, lower)
	for _, d := range dirs {
		sub := filepath.Join(lower, d)
		if d != "" {
			mkdir(t, sub)
		}
		model.MakeLower(t, sub)
	}
	return e.NewWorkspace("parent", lower)
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

// fork clones a workspace with its changes and mounts the clone.
func fork(w *harness.Workspace, name string, flags ...string) *harness.Workspace {
	w.Must(append(append([]string{"clone", "-w", w.Name, "--with-changes"}, flags...), name)...)
	f := w.Prepare(name, w.Source)
	f.Must("mount", "-w", name, f.Mount)
	return f
}

// work does n random operations in a directory.
func work(t *testing.T, dir string, seed uint64, n int) {
	t.Helper()
	w, err := model.NewWorld(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	g := model.NewGen(seed)
	for i := range n {
		if i%10 == 0 {
			g.Learn(dir)
		}
		w.Do(g.Next())
	}
}

// whole checks what must hold of any workspace: its journal, that each file
// has as many names as it says, and that it is the same when mounted again.
func whole(t *testing.T, w *harness.Workspace) {
	t.Helper()
	tree := harness.MustDump(t, w.Mount)
	names := map[uint64]uint64{}
	for _, e := range tree {
		names[e.Ino]++
	}
	for path, e := range tree {
		if e.Mode&unix.S_IFMT != unix.S_IFDIR && e.Nlink != names[e.Ino] {
			t.Errorf("%q says it has %d names, it has %d", path, e.Nlink, names[e.Ino])
		}
	}
	w.Umount()
	w.MustIn("verify")
	w.Remount()
	harness.Same(t, w.Name+" mounted again", harness.MustDump(t, w.Mount), tree, 0)
}

// merged merges a fork into its parent, whose tree must be the one wanted, and
// takes the merge back and makes it again.
func merged(t *testing.T, f, into *harness.Workspace, want harness.Tree) {
	t.Helper()
	before := harness.MustDump(t, into.Mount)
	into.Must("merge", f.Name)
	const omit = harness.OmitIno | harness.OmitDirMtime
	harness.Same(t, "after the merge", harness.MustDump(t, into.Mount), want, omit)
	whole(t, into)
	if seq := lastMerge(into); seq != "" {
		into.MustIn("undo", seq)
		harness.Same(t, "after its undo", harness.MustDump(t, into.Mount), before, 0)
		into.Must("merge", f.Name)
		harness.Same(t, "merged again", harness.MustDump(t, into.Mount), want, omit)
	}
}

func lastMerge(w *harness.Workspace) string {
	fields := strings.Fields(w.MustIn("log", "--op", "merge", "--limit", "1"))
	if len(fields) == 0 {
		return ""
	}
	return fields[0]
}

// TestForkAlone merges into a parent that did nothing since: it then is what
// the fork is.
func TestForkAlone(t *testing.T) {
	runs(t, 4, func(t *testing.T, seed uint64) {
		p := parent(t, "")
		work(t, p.Mount, seed, 80)
		f := fork(p, "fork")
		harness.Same(t, "the fork", harness.MustDump(t, f.Mount), harness.MustDump(t, p.Mount), harness.OmitIno)
		work(t, f.Mount, seed+1, 120)
		merged(t, f, p, harness.MustDump(t, f.Mount))
		// Both went on since.
		work(t, f.Mount, seed+2, 60)
		f.Must("merge", f.Name)
		harness.Same(t, "after another merge", harness.MustDump(t, p.Mount), harness.MustDump(t, f.Mount), harness.OmitIno|harness.OmitDirMtime)
		whole(t, f)
	})
}

// TestForkBeside merges into a parent that worked in another directory.
func TestForkBeside(t *testing.T) {
	runs(t, 4, func(t *testing.T, seed uint64) {
		p := parent(t, "ours", "theirs")
		work(t, p.Mount+"/ours", seed, 40)
		work(t, p.Mount+"/theirs", seed+1, 40)
		f := fork(p, "fork")
		work(t, f.Mount+"/theirs", seed+2, 100)
		work(t, p.Mount+"/ours", seed+3, 100)
		want := harness.Tree{}
		for path, e := range harness.MustDump(t, p.Mount) {
			if !strings.HasPrefix(path, "theirs/") {
				want[path] = e
			}
		}
		for path, e := range harness.MustDump(t, f.Mount) {
			if strings.HasPrefix(path, "theirs") {
				want[path] = e
			}
		}
		merged(t, f, p, want)
	})
}

// TestForkOverlap merges whatever both did in the same places: it is done and
// can be undone, or is refused and changes nothing.
func TestForkOverlap(t *testing.T) {
	done := 0
	n := uint64(0)
	runs(t, 8, func(t *testing.T, seed uint64) {
		p := parent(t, "")
		work(t, p.Mount, seed, 40)
		f := fork(p, "fork")
		work(t, f.Mount, seed+1, 3+int(n%3)*6)
		work(t, p.Mount, seed+2, 3+int(n%3)*6)
		n++
		before, theirs := harness.MustDump(t, p.Mount), harness.MustDump(t, f.Mount)
		switch r := p.Run("merge", f.Name); r.Code {
		case 5:
			harness.Same(t, "after the refused merge", harness.MustDump(t, p.Mount), before, 0)
			if !strings.Contains(r.Stderr, "fork: ") {
				t.Errorf("the conflicts don't say whose they are:\n%s", r.Stderr)
			}
		case 0:
			done++
			onlySides(t, harness.MustDump(t, p.Mount), before, theirs)
			whole(t, p)
			if seq := lastMerge(p); seq != "" {
				p.MustIn("undo", seq)
				harness.Same(t, "after its undo", harness.MustDump(t, p.Mount), before, 0)
			}
		default:
			t.Errorf("exit status %d\n%s", r.Code, r.Stderr)
		}
	})
	t.Logf("%d merges were made", done)
}

// onlySides checks that no bytes come from nowhere: each file of the result is
// one of the two sides', by content, unless both changed it.
func onlySides(t *testing.T, got, a, b harness.Tree) {
	t.Helper()
	known := map[string]bool{}
	for _, side := range []harness.Tree{a, b} {
		for _, e := range side {
			known[e.Hash+e.Target] = true
		}
	}
	strange := 0
	for path, e := range got {
		if !known[e.Hash+e.Target] {
			strange++
			t.Logf("%q has bytes of neither side: merged by lines", path)
		}
	}
	if strange > 3 {
		t.Errorf("%d files have bytes of neither side", strange)
	}
}

// TestForksNested makes ten forks, each of the one before and with work of its
// own, and merges them all the way up.
func TestForksNested(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	p := parent(t, "")
	chain := []*harness.Workspace{p}
	for depth := range 10 {
		f := fork(chain[depth], fmt.Sprintf("deep%d", depth))
		work(t, f.Mount, number("MODEL_SEED", 77)+uint64(depth), 25)
		chain = append(chain, f)
	}
	want := harness.MustDump(t, chain[10].Mount)
	for depth := 10; depth > 0; depth-- {
		p.Must("merge", chain[depth].Name)
		harness.Same(t, chain[depth-1].Name, harness.MustDump(t, chain[depth-1].Mount), want, harness.OmitIno|harness.OmitDirMtime)
	}
	whole(t, p)
}
