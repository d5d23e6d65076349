package journal_test

import (
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/winkfs/winkfs/journal"
	"github.com/winkfs/winkfs/journal/journaltest"
)

// number returns what the environment says, for longer runs.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// openCost is what it takes to open a journal and hold its state.
type openCost struct {
	took  time.Duration // median of five
	bytes uint64        // of memory kept
	nodes int
}

func costOfOpening(t *testing.T, shape journaltest.Shape) openCost {
	t.Helper()
	dir := t.TempDir()
	s, err := journal.Create(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := journaltest.Fill(s, shape); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var c openCost
	best := time.Hour
	for range 5 {
		before := heap()
		at := time.Now()
		s, err := journal.Open(dir, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(at))
		st := s.State()
		c.bytes, c.nodes = heap()-before, len(st.Nodes)
		runtime.KeepAlive(st)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	c.took = best
	return c
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// What opening costs depends on what the workspace has changed, not on how
// often it changed it: files that are gone are not loaded. A changed file takes
// less than a KiB.
//
//	JOURNAL_RECORDS  length of the long history, 100000
//	JOURNAL_LIVE     files that are there at its end, 5000
func TestOpeningIsIndependentOfHistory(t *testing.T) {
	live := number("JOURNAL_LIVE", 5000)
	short := costOfOpening(t, journaltest.Shape{Records: 3 * live, Live: live})
	long := costOfOpening(t, journaltest.Shape{Records: number("JOURNAL_RECORDS", 100_000), Live: live})
	t.Logf("short history %v, %d bytes; long history %v, %d bytes", short.took, short.bytes, long.took, long.bytes)
	if long.nodes != short.nodes {
		t.Errorf("%d nodes are loaded of a long history, %d of a short one", long.nodes, short.nodes)
	}
	if per := long.bytes / uint64(long.nodes); per > 1024 {
		t.Errorf("a changed file takes %d bytes of memory", per)
	}
	if long.bytes > short.bytes+short.bytes/4+1<<20 {
		t.Errorf("a long history takes %d bytes of memory, a short one %d", long.bytes, short.bytes)
	}
}
