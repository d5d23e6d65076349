package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/winkfs/winkfs/tests/harness"
)

func TestVerdict(t *testing.T) {
	times := func(n, w, f int) *result {
		ms := func(n int) []time.Duration { return []time.Duration{time.Duration(n) * time.Millisecond} }
		return &result{times: map[string][]time.Duration{native: ms(n), winkfs: ms(w), fuseovl: ms(f)}}
	}
	tests := []struct {
		name string
		row  row
		res  *result
		want verdict
	}{
		{"within", row{budget: 2, factor: 1}, times(10, 19, 40), within},
		{"over", row{budget: 2}, times(10, 21, 40), exceeded},
		{"slower than the peer", row{budget: 4, factor: 2}, times(10, 21, 40), slower},
		{"absolute", row{atMost: 20 * time.Millisecond}, times(0, 21, 40), exceeded},
		{"no budget", row{}, times(10, 21, 40), unknown},
		{"not run", row{budget: 2}, &result{}, unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.res.verdict(tt.row); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	r := &result{times: map[string][]time.Duration{"x": {5, 1, 3}}}
	if got := r.median("x"); got != 3 {
		t.Errorf("got %v, want 3", got)
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "-", 1500: "1.5 µs", 12345678: "12.3 ms", 2 * time.Second: "2 s"} {
		if got := short(d); got != want {
			t.Errorf("%d: got %q, want %q", d, got, want)
		}
	}
}

// tiny is a configuration of almost no work.
func tiny(t *testing.T) *config {
	t.Helper()
	dir := harness.TempDir(t)
	c := &config{dir: dir, runs: 1, scale: 0.002, rows: regexp.MustCompile("")}
	if bin, err := harness.Binary(); err == nil {
		c.winkfs = bin
	}
	return c
}

// TestRowsRun runs every row once on the plain directory.
func TestRowsRun(t *testing.T) {
	harness.Require(t, "git", "rg", "go")
	runRows(t, native)
}

func TestRowsRunOnWinkfs(t *testing.T) {
	harness.Require(t, "git", "rg", "go", "binary", "fuse", "userns")
	runRows(t, winkfs)
}

func TestRowsRunOnPeers(t *testing.T) {
	harness.RequireRoot(t)
	harness.Require(t, "git", "rg", "go", "fuse", "fuse-overlayfs")
	runRows(t, fuseovl)
}

func runRows(t *testing.T, name string) {
	t.Helper()
	c := tiny(t)
	s, err := makeSource(c)
	if err != nil {
		t.Fatal(err)
	}
	all := allSystems(c, s)
	sys := all[slices.IndexFunc(all, func(s *system) bool { return s.name == name })]
	t.Cleanup(sys.end)
	if err := sys.mount(); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows(c, s) {
		if !r.on(name) || r.lacks() != nil {
			continue
		}
		if name != native && r.name == "go build" {
			continue // compiles the standard library; tests/gitrepo builds in a mount
		}
		res := measure(c, r, []*system{sys})
		if err := res.errs[name]; err != nil {
			t.Errorf("%s: %v", r.name, err)
		}
	}
}

func TestTreeIsTheSameEachTime(t *testing.T) {
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	if err := errors.Join(makeTree(a, 50), makeTree(b, 50)); err != nil {
		t.Fatal(err)
	}
	harness.Same(t, "the second tree", harness.MustDump(t, b), harness.MustDump(t, a), harness.OmitMtime|harness.OmitIno)
}

func TestPrintRow(t *testing.T) {
	var b strings.Builder
	systems := []*system{{name: native}, {name: winkfs}}
	printHead(&b, systems)
	printRow(&b, row{name: "x", budget: 1.2}, systems, &result{
		times: map[string][]time.Duration{native: {1e6}, winkfs: {3e6}},
		errs:  map[string]error{overlay: os.ErrPermission},
	})
	for _, want := range []string{"3 ms (3.00)", "1.20", "OVER"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q lacks %q", b.String(), want)
		}
	}
}
