package model

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/winkfs/winkfs/tests/harness"
)

// procs is how many processes work in each directory.
const procs = 3

// TestPlainProcesses proves that what several processes do to a plain
// directory, one operation at a time, has one outcome.
func TestPlainProcesses(t *testing.T) {
	dir := plainDir(t)
	for _, seed := range seeds(1) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			n := 0
			compareProcesses(t, seed, func(t *testing.T) *Pair {
				n++
				return PlainPair(t, dir, fmt.Sprintf("%d-%d", seed, n))
			})
		})
	}
}

// TestProcesses lets several processes take turns, which hold files and maps
// open and stand in directories, with the daemon stopped or killed in between.
// In every second run the kernel's caches are dropped all the time.
func TestProcesses(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	for i, seed := range seeds(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if i%2 == 1 {
				dropCaches(t)
			}
			compareProcesses(t, seed, func(t *testing.T) *Pair { return MountPair(t, harness.New(t), "model") })
		})
	}
}

// dropCaches drops the kernel's caches every 0.3 s until the test ends.
func dropCaches(t *testing.T) {
	stop, done := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() {
		close(stop)
		<-done
	})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(300 * time.Millisecond):
				harness.DropCaches()
			}
		}
	}()
}

func compareProcesses(t *testing.T, seed uint64, pair func(t *testing.T) *Pair) {
	compareWith(t, seed, func() *Gen {
		g := NewGen(seed)
		g.Procs, g.Restart = procs, true
		return g
	}, func(t *testing.T) *Pair {
		p := pair(t)
		p.Procs = procs
		return p
	})
}

// TestParallel lets several processes work at the same time, each in a
// directory of its own within one mount, so that each has one outcome.
func TestParallel(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	for i, seed := range seeds(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if i%2 == 1 {
				dropCaches(t)
			}
			parallel(t, seed)
		})
	}
}

func parallel(t *testing.T, seed uint64) {
	whole := MountPairs(t, harness.New(t), "model", procs)
	var wg sync.WaitGroup
	for i, p := range whole.Parts(procs) {
		wg.Go(func() {
			p.Procs = 1
			g := NewGen(seed + uint64(i))
			g.Procs = 1
			if _, err := Play(t, p, Random(g, p, number("MODEL_OPS", 1000))); err != nil {
				t.Errorf("seed %d, process %d: %v", seed, i, err)
			}
		})
	}
	wg.Wait()
	whole.Again()
	if err := sameTrees(whole, "after a remount"); err != nil {
		t.Error(err)
	}
}
