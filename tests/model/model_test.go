package model

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/winkfs/winkfs/tests/harness"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(workerEnv); dir != "" {
		os.Exit(runWorker(dir, os.Stdin, os.Stdout))
	}
	os.Exit(harness.Main(m))
}

// number returns an environment variable's number or what stands in for it.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

func seeds(runs int) []uint64 {
	if n, err := strconv.ParseUint(os.Getenv("MODEL_SEED"), 10, 64); err == nil {
		return []uint64{n}
	}
	all := make([]uint64, number("MODEL_RUNS", runs))
	for i := range all {
		all[i] = rand.Uint64N(1 << 32)
	}
	return all
}

// TestPlainDirectories proves the test itself: two directories of one file
// system don't differ.
func TestPlainDirectories(t *testing.T) {
	dir := plainDir(t)
	for _, seed := range seeds(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			n := 0
			compare(t, seed, func(t *testing.T) *Pair {
				n++
				return PlainPair(t, dir, fmt.Sprintf("%d-%d", seed, n))
			})
		})
	}
}

func plainDir(t *testing.T) string {
	if dir := os.Getenv("MODEL_DIR"); dir != "" {
		return dir
	}
	return harness.TempDir(t)
}

func TestMount(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	for _, seed := range seeds(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			compare(t, seed, func(t *testing.T) *Pair { return MountPair(t, harness.New(t), "model") })
		})
	}
}

// compare plays one seed. What differs is shortened on fresh pairs.
func compare(t *testing.T, seed uint64, fresh func(t *testing.T) *Pair) {
	compareWith(t, seed, func() *Gen { return NewGen(seed) }, fresh)
}

func compareWith(t *testing.T, seed uint64, gen func() *Gen, fresh func(t *testing.T) *Pair) {
	p := fresh(t)
	var before harness.Tree
	if p.Source != "" {
		before = harness.MustDump(t, p.Source)
	}
	ops, err := Play(t, p, Random(gen(), p, number("MODEL_OPS", 1000)))
	if err != nil {
		t.Errorf("seed %d: %v", seed, err)
		report(t, ops, fresh)
		return
	}
	if p.Source != "" {
		harness.Same(t, "the source", harness.MustDump(t, p.Source), before, 0)
	}
	if p.Again != nil {
		later(t, p)
	}
}

// later looks at the same tree after dropped caches and after a remount.
func later(t *testing.T, p *Pair) {
	t.Helper()
	was := harness.MustDump(t, p.Subject)
	harness.DropCaches()
	harness.Same(t, "with dropped caches", harness.MustDump(t, p.Subject), was, 0)
	p.Again()
	harness.Same(t, "after a remount", harness.MustDump(t, p.Subject), was, 0)
	if err := sameTrees(p, "after a remount"); err != nil {
		t.Error(err)
	}
}

// report prints the shortest failing sequence found within a minute.
func report(t *testing.T, ops []Op, fresh func(t *testing.T) *Pair) {
	deadline := time.Now().Add(time.Minute)
	attempt := 0
	var last string
	ops = Shorten(ops, func(ops []Op) (failed bool) {
		attempt++
		t.Run(fmt.Sprintf("shorten%d", attempt), func(t *testing.T) {
			if _, err := Play(t, fresh(t), Recorded(ops)); err != nil {
				failed, last = true, err.Error()
			}
		})
		return failed
	}, func() bool { return time.Now().Before(deadline) })
	lines := make([]string, len(ops))
	for i, o := range ops {
		lines[i] = o.String()
	}
	t.Errorf("shortest failing sequence:\n%s\n%s", strings.Join(lines, "\n"), last)
}

func TestGeneratorRepeats(t *testing.T) {
	one, two := NewGen(42), NewGen(42)
	for i := range 1000 {
		if a, b := one.Next(), two.Next(); a != b {
			t.Fatalf("step %d: got %v and %v", i, a, b)
		}
	}
}

func TestAtomicOperationsTakeOneRequest(t *testing.T) {
	g := NewGen(1)
	g.Atomic = true
	for range 5000 {
		o := g.Next()
		if slices.Contains(manyRequests, o.Kind) {
			t.Fatalf("%v", o)
		}
		if o.Kind == Write && o.Len > 0 && o.Off/page != (o.Off+o.Len-1)/page {
			t.Fatalf("%v crosses a page", o)
		}
	}
}

func TestShorten(t *testing.T) {
	ops := make([]Op, 100)
	for i := range ops {
		ops[i].Slot = i
	}
	fails := func(ops []Op) bool {
		return slices.ContainsFunc(ops, func(o Op) bool { return o.Slot == 17 }) &&
			slices.ContainsFunc(ops, func(o Op) bool { return o.Slot == 80 })
	}
	got := Shorten(ops, fails, func() bool { return true })
	if len(got) != 2 || got[0].Slot != 17 || got[1].Slot != 80 {
		t.Errorf("got %v", got)
	}
}

// TestNoticesDifferences plays on directories that differ in one respect.
func TestNoticesDifferences(t *testing.T) {
	tests := map[string]func(dir string) error{
		"content": func(d string) error { return os.WriteFile(d+"/a", []byte("tip\n"), 0o644) },
		"mode":    func(d string) error { return os.Chmod(d+"/b", 0o600) },
		"name":    func(d string) error { return os.Remove(d + "/link") },
	}
	for name, do := range tests {
		t.Run(name, func(t *testing.T) {
			p := PlainPair(t, harness.TempDir(t), "x")
			if err := do(p.Subject); err != nil {
				t.Fatal(err)
			}
			if _, err := Play(t, p, Recorded(nil)); err == nil {
				t.Error("not noticed")
			}
		})
	}
	t.Run("result", func(t *testing.T) {
		p := PlainPair(t, harness.TempDir(t), "x")
		if err := os.Remove(filepath.Join(p.Subject, "a")); err != nil {
			t.Fatal(err)
		}
		if _, err := Play(t, p, Recorded([]Op{{Kind: Unlink, Path: "a"}})); err == nil {
			t.Error("not noticed")
		}
	})
}
