package tree

import (
	"fmt"
	"slices"
	"testing"

	"github.com/winkfs/winkfs/journal"
)

// TestListCacheTakesNamesIn compares a listing that names were put into with one
// that is sorted from scratch. The last of several of one name counts.
func TestListCacheTakesNamesIn(t *testing.T) {
	var c listCache
	const dir = journal.NodeID(7)
	want := map[string]journal.NodeID{}
	entry := func(name string) listed { return listed{cookie: cookieOf(name), name: name, id: want[name]} }
	var names []listed
	for i := range 50 {
		name := fmt.Sprint("old", i)
		want[name] = journal.NodeID(i)
		names = append(names, entry(name))
	}
	slices.SortFunc(names, compareListed)
	c.begin(dir)
	c.put(dir, names)
	for round := range 4 {
		for i := range 20 {
			for _, name := range []string{fmt.Sprint("new", round, i), fmt.Sprint("old", i)} {
				want[name] = journal.NodeID(1000*round + i)
				c.insert(dir, name, 1, 0)
				c.insert(dir, name, want[name], 0)
			}
		}
		got, ok := c.get(dir)
		if !ok || len(got) != len(want) || !slices.IsSortedFunc(got, compareListed) {
			t.Fatalf("round %d: %d names, sorted %v, want %d", round, len(got), slices.IsSortedFunc(got, compareListed), len(want))
		}
		for _, e := range got {
			if want[e.name] != e.id {
				t.Errorf("round %d: %s is node %d, want %d", round, e.name, e.id, want[e.name])
			}
		}
	}
}
