package tree

import (
	"strconv"
	"testing"

	"github.com/winkfs/winkfs/journal"
)

// newBenchTree returns a tree over an empty directory.
func newBenchTree(b *testing.B) (*Tree, *Request) {
	b.Helper()
	dir := b.TempDir()
	s, err := journal.Create(dir, journal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	low := emptyLower(b)
	t, err := New(Config{Store: s, State: s.State(), Lower: low, Sources: []Source{{}}, StateDir: dir})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { t.Close(); s.Close() })
	return t, &Request{TID: 1}
}

func BenchmarkCreateWriteUnlink(b *testing.B) {
	t, r := newBenchTree(b)
	data := make([]byte, 4096)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		name := "f" + strconv.Itoa(i)
		s, err := t.Create(r, journal.RootID, name, 0o644)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := t.Write(r, s.ID, data, 0); err != nil {
			b.Fatal(err)
		}
		if err := t.Unlink(r, journal.RootID, name); err != nil {
			b.Fatal(err)
		}
		t.Forget(s.ID, 1)
	}
}

func BenchmarkWrite4k(b *testing.B) {
	t, r := newBenchTree(b)
	s, err := t.Create(r, journal.RootID, "f", 0o644)
	if err != nil {
		b.Fatal(err)
	}
	data := make([]byte, 4096)
	b.SetBytes(4096)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := t.Write(r, s.ID, data, int64(i)*4096); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookupLower(b *testing.B) {
	t, r := newBenchTree(b)
	if _, err := t.Create(r, journal.RootID, "f", 0o644); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s, err := t.Lookup(r, journal.RootID, "f")
		if err != nil {
			b.Fatal(err)
		}
		t.Forget(s.ID, 1)
	}
}
