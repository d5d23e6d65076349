package tree

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
)

// Budgets of memory in bytes, as DESIGN.md has them.
const (
	budgetCached  = 300  // for a lower node that the kernel knows
	budgetChanged = 1024 // for a node with state of its own
)

// heap returns the bytes in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestMemory measures what a node costs that the kernel knows, that it forgot,
// and that was changed, with names of 16 bytes in directories of 100 files.
func TestMemory(t *testing.T) {
	const dirs, files = 50, 100
	const n = dirs * files
	g := newRig(t, nil)
	for d := range dirs {
		dir := filepath.Join(g.lowerDir, fmt.Sprintf("directory%07d", d))
		g.must(os.Mkdir(dir, 0o755))
		for f := range files {
			fd, err := unix.Creat(filepath.Join(dir, fmt.Sprintf("somefile%08d", f)), 0o644)
			g.must(err)
			unix.Close(fd)
		}
	}
	list := func(id journal.NodeID, fn func(*Dirent)) {
		g.must(g.t.Readdir(g.r, id, 0, true, func(d *Dirent) bool {
			if d.Stat != nil {
				fn(d)
			}
			return true
		}))
	}
	all := func(fn func(journal.NodeID)) {
		list(journal.RootID, func(d *Dirent) {
			list(d.ID, func(d *Dirent) { fn(d.ID) })
		})
	}
	ids := make([]journal.NodeID, 0, n+dirs)
	base := heap()
	all(func(id journal.NodeID) { ids = append(ids, id) })
	cached := heap()
	g.forgetAll()
	forgotten := heap()
	all(func(journal.NodeID) {})
	for _, id := range ids {
		_, err := g.t.Setattr(g.r, id, SetAttr{Mask: SetMode, Mode: 0o600})
		g.must(err)
	}
	g.must(g.store.Sync())
	changed := heap()
	perCached, perForgotten, perChanged := (cached-base)/n, (forgotten-base)/n, (changed-base)/n
	t.Logf("bytes a node: %d cached, %d after it was forgotten, %d changed", perCached, perForgotten, perChanged)
	if perCached > budgetCached {
		t.Errorf("a cached node takes %d bytes, budget %d", perCached, budgetCached)
	}
	if perForgotten > 30 { // maps keep their tables
		t.Errorf("a forgotten node still takes %d bytes", perForgotten)
	}
	if perChanged > budgetChanged {
		t.Errorf("a changed node takes %d bytes, budget %d", perChanged, budgetChanged)
	}
	runtime.KeepAlive(ids)
}
