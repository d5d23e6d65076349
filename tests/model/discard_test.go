package model

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/winkfs/winkfs/tests/harness"
)

// TestDiscardPart discards by its path all that was done to a part of a
// workspace. The source must show again, to a kernel that remembers nothing and
// after a remount too, the other part must stay as it is, and the first must go
// when the host removes it.
func TestDiscardPart(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	for _, seed := range seeds(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { discardPart(t, seed) })
	}
}

func discardPart(t *testing.T, seed uint64) {
	e := harness.New(t)
	lower := filepath.Join(e.Dir, "lower")
	for i := range 2 {
		mkdir(t, part(lower, i))
		MakeLower(t, part(lower, i))
	}
	plain := filepath.Join(e.Dir, "plain")
	harness.CopyTree(t, lower, plain)
	w := e.NewWorkspace("discard", lower)
	whole := &Pair{Subject: w.Mount, Reference: plain}
	for i, p := range whole.Parts(2) {
		if _, err := Play(t, p, Random(NewGen(seed+uint64(i)), p, number("MODEL_OPS", 300))); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	w.MustIn("discard", "--yes", "part0")
	if err := harness.RemoveTree(part(plain, 0)); err != nil {
		t.Fatal(err)
	}
	harness.CopyTree(t, part(lower, 0), part(plain, 0))
	same := func(when string) {
		t.Helper()
		if err := sameTrees(whole, when); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	same("after the discard")
	harness.DropCaches()
	same("with dropped caches")
	w.Umount()
	w.MustIn("verify")
	w.Remount()
	same("after a remount")
	if err := harness.RemoveTree(part(lower, 0)); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if _, err := os.Lstat(part(w.Mount, 0)); os.IsNotExist(err) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("seed %d: the part is still there after the host has removed it", seed)
}
