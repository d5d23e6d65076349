package journal

import (
	"fmt"
	"path/filepath"
	"testing"
)

// BenchmarkFork forks a journal with 100,000 changed files, half of whose records
// are in the log only. The budget is 0.2 s.
func BenchmarkFork(b *testing.B) {
	top := b.TempDir()
	s := mustCreate(b, filepath.Join(top, "parent"), Options{})
	const files = 100_000
	for i := range files {
		id := CreatedBit + 1 + NodeID(i)
		n := &Node{Own: true, OwnContent: true, Attr: Attr{Mode: 0o100644, Nlink: 1, Size: 4}}
		r := &Record{Op: OpCreate, Path: fmt.Sprintf("d%d/f%d", i/1000, i), Changes: []Change{
			{Node: &NodeChange{ID: id, After: n}},
			{Entry: &EntryChange{Parent: RootID, Name: fmt.Sprintf("f%d", i), After: Entry{Kind: EntryNode, Node: id}}},
			{Content: &ContentChange{ID: id, Len: 4, After: []Extent{{Len: 4, Kind: ExtentData}}}},
		}}
		if _, err := s.Append(r, []byte("data")); err != nil {
			b.Fatal(err)
		}
		if i == files/2 {
			if err := s.Commit(); err != nil {
				b.Fatal(err)
			}
		}
	}
	n := 0
	for b.Loop() {
		n++
		mustFork(b, s, filepath.Join(top, fmt.Sprint("fork", n)))
	}
}
