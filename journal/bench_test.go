package journal

import (
	"errors"
	"fmt"
	"testing"
)

// benchRecord is what one small write of a compiler makes.
func benchRecord() *Record {
	before := &Node{Own: true, OwnContent: true, Attr: Attr{Mode: 0o100644, UID: 1000, GID: 1000, Nlink: 1, Size: 8192, Atime: 1e18, Mtime: 1e18, Ctime: 1e18, Btime: 1e18}}
	after := before.Clone()
	after.Attr.Mtime, after.Attr.Ctime = 1e18+1e6, 1e18+1e6
	return &Record{Op: OpWrite, Actor: Actor{PID: 4711, TID: 4712, UID: 1000, Comm: "cc1", Exec: 3}, Unique: 99, Path: "src/some/file.c", Changes: []Change{
		{Content: &ContentChange{ID: CreatedBit + 7, Off: 4096, Len: 4096, After: []Extent{{Off: 4096, Len: 4096, Kind: ExtentData}}}},
		{Node: &NodeChange{ID: CreatedBit + 7, Before: before, After: after}},
	}}
}

func BenchmarkAppend(b *testing.B) {
	for _, bc := range []struct {
		name   string
		inline int
	}{{"metadata", 0}, {"inline4k", 4096}} {
		b.Run(bc.name, func(b *testing.B) {
			s := mustCreate(b, b.TempDir(), Options{})
			r := benchRecord()
			data := make([]byte, bc.inline)
			if bc.inline == 0 {
				r.Changes = r.Changes[1:]
			}
			b.ReportAllocs()
			b.SetBytes(int64(bc.inline))
			for b.Loop() {
				r.Data = r.Data[:0]
				if bc.inline > 0 {
					r.Changes[0].Content.After[0].Loc = Loc{}
				}
				if _, err := s.Append(r, data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	r := benchRecord()
	r.Time = 1e18 + 2e6
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = appendRecord(buf[:0], r)
	}
	b.ReportMetric(float64(len(buf)), "bytes/record")
}

func BenchmarkDecode(b *testing.B) {
	buf := appendRecord(nil, benchRecord())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decodeRecord(buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendSync(b *testing.B) {
	s := mustCreate(b, b.TempDir(), Options{})
	r := benchRecord()
	r.Changes = r.Changes[1:]
	for b.Loop() {
		if _, err := s.Append(r, nil); err != nil {
			b.Fatal(err)
		}
		if err := s.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

// benchFiles appends the creation of n files by one exec and returns the
// records.
func benchFiles(b *testing.B, s *Store, n int) (st *State, recs []*Record) {
	st = NewState()
	data := make([]byte, 1000)
	add := func(inline []byte, r *Record) {
		r.Actor = Actor{PID: 7, Comm: "tar", Exec: 1}
		if _, err := s.Append(r, inline); err != nil {
			b.Fatal(err)
		}
		st.Apply(r)
		recs = append(recs, r)
	}
	for i := range n {
		id := st.NextNode
		dir := NodeID(1000 + i/100)
		made := &Node{Own: true, OwnContent: true, Attr: Attr{Mode: 0o100644, Nlink: 1, Mtime: Timespec(i)}}
		d := st.Nodes[dir]
		after := &Node{Own: true, Attr: Attr{Mode: 0o040755, Nlink: 2, Mtime: Timespec(i)}}
		add(nil, &Record{Op: OpCreate, Path: fmt.Sprintf("dir/file%d", i), Changes: []Change{
			{Node: &NodeChange{ID: id, After: made}},
			{Entry: &EntryChange{Parent: dir, Name: fmt.Sprintf("file%d", i), After: Entry{Kind: EntryNode, Node: id}}},
			{Node: &NodeChange{ID: dir, Before: d, After: after}},
		}})
		grown := made.Clone()
		grown.Attr.Size = 1000
		add(data, &Record{Op: OpWrite, Path: fmt.Sprintf("dir/file%d", i), Changes: []Change{
			{Content: &ContentChange{ID: id, Len: 1000, After: []Extent{{Len: 1000, Kind: ExtentData}}}},
			{Node: &NodeChange{ID: id, Before: made, After: grown}},
		}})
		touched := grown.Clone()
		touched.Attr.Mtime = 5
		add(nil, &Record{Op: OpUtimens, Changes: []Change{{Node: &NodeChange{ID: id, Before: grown, After: touched}}}})
	}
	return st, recs
}

func BenchmarkUndo10kFiles(b *testing.B) {
	s := mustCreate(b, b.TempDir(), Options{})
	st, recs := benchFiles(b, s, 10000)
	for b.Loop() {
		if _, conflicts := UndoSet(st, recs); len(conflicts) > 0 {
			b.Fatal(conflicts)
		}
	}
}

func BenchmarkLast20Of100k(b *testing.B) {
	s := mustCreate(b, b.TempDir(), Options{})
	benchFiles(b, s, 33334)
	if err := s.Commit(); err != nil {
		b.Fatal(err)
	}
	stop := errors.New("enough")
	for b.Loop() {
		n := 0
		err := s.RecordsDesc(0, 0, func(*Record) error {
			if n++; n == 20 {
				return stop
			}
			return nil
		})
		if err != stop {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s := mustCreate(b, dir, Options{})
	benchFiles(b, s, 10000)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := Open(dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

func BenchmarkRecover30k(b *testing.B) {
	dir := b.TempDir()
	s := mustCreate(b, dir, Options{})
	benchFiles(b, s, 10000)
	abandon(s)
	for b.Loop() {
		s, err := Open(dir, Options{ReadOnly: true})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

func BenchmarkVerify30k(b *testing.B) {
	dir := b.TempDir()
	s := mustCreate(b, dir, Options{})
	benchFiles(b, s, 10000)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if r, err := Verify(dir); err != nil || len(r.Problems) > 0 {
			b.Fatal(r, err)
		}
	}
}
