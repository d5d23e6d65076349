package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	iofs "io/fs"
	"testing"

	"go.etcd.io/bbolt"
)

func mustCreate(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Create(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func mustOpen(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func mustClose(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// abandon ends a store as the death of its process does.
func abandon(s *Store) {
	s.closing()
	s.release()
}

func TestStoreKeepsHistory(t *testing.T) {
	for _, tc := range []struct {
		name   string
		commit int // commit every so many records
		sudden bool
	}{
		{"closed", 0, false},
		{"killed", 0, true},
		{"killed with commits", 37, true},
		{"closed with commits", 10, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			o := Options{SegmentSize: 40 << 10, PackSize: 20 << 10, Clock: tick()}
			s := mustCreate(t, dir, o)
			h := newHistory(7, s)
			var recs []*Record
			for i := range 600 {
				recs = append(recs, h.next(t))
				if tc.commit > 0 && i%tc.commit == 0 {
					if err := s.Commit(); err != nil {
						t.Fatal(err)
					}
				}
			}
			if tc.sudden {
				abandon(s)
			} else {
				mustClose(t, s)
			}
			s = mustOpen(t, dir, o)
			sameState(t, "reopened", s.State(), h.st)
			if s.Head() != 600 {
				t.Fatalf("head is %d", s.Head())
			}
			checkReads(t, s, recs, h)
			h.store = s
			for range 50 {
				recs = append(recs, h.next(t))
			}
			checkReads(t, s, recs, h)
			mustClose(t, s)
			s = mustOpen(t, dir, Options{ReadOnly: true})
			sameState(t, "read only", s.State(), h.st)
			if _, err := s.Append(&Record{Op: OpWrite}, nil); !errors.Is(err, ErrReadOnly) {
				t.Fatalf("append to a read-only store: %v", err)
			}
		})
	}
}

// checkReads compares everything that can be read from the store with the
// history.
func checkReads(t *testing.T, s *Store, recs []*Record, h *history) {
	t.Helper()
	var got []*Record
	if err := s.Records(0, 0, func(r *Record) error { got = append(got, r); return nil }); err != nil {
		t.Fatal(err)
	}
	sameRecords(t, got, recs)
	got = nil
	if err := s.RecordsDesc(5, 300, func(r *Record) error { got = append([]*Record{r}, got...); return nil }); err != nil {
		t.Fatal(err)
	}
	sameRecords(t, got, recs[4:300])
	for loc, want := range h.data {
		p := make([]byte, len(want))
		if err := s.ReadAt(loc, p); err != nil || !bytes.Equal(p, want) {
			t.Fatalf("data at %v: %v", loc, err)
		}
	}
	byNode, byExec := map[NodeID][]Seq{}, map[ExecID][]Seq{}
	for _, r := range recs {
		byExec[r.Actor.Exec] = append(byExec[r.Actor.Exec], r.Seq)
		for _, id := range nodesOf(r) {
			byNode[id] = append(byNode[id], r.Seq)
		}
	}
	for id, want := range byNode {
		if got, err := s.SeqsOfNode(id); err != nil || !equalSeqs(got, want) {
			t.Fatalf("records of node %x: %v, want %v (%v)", id, got, want, err)
		}
		n, c, err := s.LookupNode(id)
		if err != nil {
			t.Fatal(err)
		}
		if w := h.st.Nodes[id]; (n == nil) != (w == nil) || n != nil && nodeDiff(n, w) != 0 {
			t.Fatalf("node %x: got %+v, want %+v", id, n, w)
		}
		if w := h.st.Contents[id]; w != nil && !w.Empty() && (c == nil || !c.Equal(w)) {
			t.Fatalf("content of node %x differs", id)
		}
	}
	for id, want := range byExec {
		if got, err := s.SeqsOfExec(id); err != nil || !equalSeqs(got, want) {
			t.Fatalf("records of exec %d: %v, want %v (%v)", id, got, want, err)
		}
	}
	checkOps(t, s, recs)
}

// checkOps compares the index by operation, and picks its records.
func checkOps(t *testing.T, s *Store, recs []*Record) {
	t.Helper()
	byOp := map[Op][]Seq{}
	for _, r := range recs {
		byOp[r.Op] = append(byOp[r.Op], r.Seq)
	}
	for _, op := range []Op{OpExecBegin, OpExecEnd, OpCheckpoint, OpDenied, OpUndo} {
		seqs, err := s.SeqsOfOp(op)
		if err != nil || !equalSeqs(seqs, byOp[op]) {
			t.Fatalf("records of %s: %v, want %v (%v)", op, seqs, byOp[op], err)
		}
		var picked []Seq
		if err := s.Pick(append(seqs, Seq(len(recs)+7)), func(r *Record) error {
			picked = append(picked, r.Seq)
			return nil
		}); err != nil || !equalSeqs(picked, byOp[op]) {
			t.Fatalf("picked records of %s: %v, want %v (%v)", op, picked, byOp[op], err)
		}
	}
	if _, err := s.SeqsOfOp(OpWrite); err == nil {
		t.Fatal("the index lists no writes, and nobody says so")
	}
}

func equalSeqs(a, b []Seq) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func nodesOf(r *Record) []NodeID {
	b := newBatch()
	b.add(r, [32]byte{}, Loc{}, 0)
	seen := map[NodeID]bool{}
	var out []NodeID
	for _, tc := range b.touched {
		if !seen[tc.node] {
			seen[tc.node] = true
			out = append(out, tc.node)
		}
	}
	return out
}

func sameRecords(t *testing.T, got, want []*Record) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i := range want {
		if g, w := appendRecord(nil, got[i]), appendRecord(nil, want[i]); !bytes.Equal(g, w) {
			t.Fatalf("record %d differs\n got %+v\nwant %+v", i+1, got[i], want[i])
		}
	}
}

func TestCreateRefusesWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	s := mustCreate(t, dir, Options{})
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrLocked) {
		t.Fatalf("second open: %v", err)
	}
	mustClose(t, s)
	if _, err := Create(dir, Options{}); !errors.Is(err, iofs.ErrExist) {
		t.Fatalf("second create: %v", err)
	}
	if _, err := Open(t.TempDir(), Options{}); !errors.Is(err, ErrNotJournal) {
		t.Fatalf("open of an empty directory: %v", err)
	}
}

// rechecked sets the checksum of an edited header.
func rechecked(b []byte) []byte {
	binary.LittleEndian.PutUint32(b[headerSize-4:], crcOf(b[:headerSize-4]))
	return b
}

// setFormat sets the format number of a database.
func setFormat(t *testing.T, path string, v uint32) {
	t.Helper()
	db, err := openBolt(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bbolt.Tx) error {
		key := []byte(keyFormat)
		return tx.Bucket([]byte(bucketMeta)).Put(key, seal(bucketMeta, key, binary.LittleEndian.AppendUint32(nil, v)))
	})
	if err != nil {
		t.Fatal(err)
	}
}
