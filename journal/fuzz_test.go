package journal

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// seedRecords returns encodings of a random history.
func seedRecords(f *testing.F) {
	h := newHistory(2, nil)
	for range 60 {
		f.Add(appendRecord(nil, h.next(f)))
	}
}

// What decodes must encode to something that decodes to the same.
func FuzzDecodeRecord(f *testing.F) {
	seedRecords(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRecord(b)
		if err != nil {
			return
		}
		again, err := decodeRecord(appendRecord(nil, r))
		if err != nil {
			t.Fatalf("can't decode what was encoded: %v\n%+v", err, r)
		}
		if !reflect.DeepEqual(r, again) && !bytes.Equal(appendRecord(nil, r), appendRecord(nil, again)) {
			t.Fatalf("decoded differently\n got %+v\nwant %+v", again, r)
		}
		for i := range r.Changes {
			checkChange(&r.Changes[i])
		}
	})
}

// Opening and verifying never panics, whatever the log holds, and what was
// opened verifies clean.
func FuzzOpenLog(f *testing.F) {
	dir := f.TempDir()
	s := mustCreate(f, dir, Options{Clock: tick()})
	mustClose(f, s)
	empty := readFile(f, filepath.Join(dir, dbName))
	s = mustOpen(f, dir, Options{Clock: tick()})
	h := newHistory(4, s)
	for range 25 {
		h.next(f)
	}
	abandon(s)
	log := readFile(f, filepath.Join(dir, logName(1, 1)))
	f.Add(log, true)
	f.Add(log[:len(log)-7], false)
	f.Add(log[:40], false)
	f.Add([]byte{}, true)
	for i := range 20 {
		b := bytes.Clone(log)
		b[(i*997)%len(b)] ^= 1 << (i % 8)
		f.Add(b, i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, b []byte, sameBoot bool) {
		dir := t.TempDir()
		for _, sub := range []string{logDir, packDir} {
			if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		writeFile(t, filepath.Join(dir, dbName), empty)
		writeFile(t, filepath.Join(dir, logName(1, 1)), b)
		if _, err := Verify(dir); err != nil {
			t.Fatal(err)
		}
		o := Options{}
		if !sameBoot {
			o.boot = "other"
		}
		s, err := Open(dir, o)
		if err != nil {
			return
		}
		mustClose(t, s)
		verifyClean(t, dir)
	})
}

// The check of the database's pages never panics, and a database that passes
// can be opened and read without a panic that isn't caught.
func FuzzCheckPages(f *testing.F) {
	dir := f.TempDir()
	s := mustCreate(f, dir, Options{Clock: tick()})
	h := newHistory(4, s)
	for range 40 {
		h.next(f)
	}
	mustClose(f, s)
	db := readFile(f, filepath.Join(dir, dbName))
	for i := range 40 {
		f.Add(uint32(i*499), byte(i))
	}
	f.Fuzz(func(t *testing.T, pos uint32, v byte) {
		dir := copyJournal(t, dir)
		b := bytes.Clone(db)
		b[pos%uint32(len(b))] = v
		writeFile(t, filepath.Join(dir, dbName), b)
		if s, err := Open(dir, Options{}); err == nil {
			if !s.State().sameAs(h.st) {
				t.Errorf("byte %d set to %x changes the state unnoticed", pos%uint32(len(b)), v)
			}
			s.Close()
		}
	})
}

func (s *State) sameAs(o *State) bool { return reflect.DeepEqual(normal(s), normal(o)) }
