package journal

import "testing"

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
