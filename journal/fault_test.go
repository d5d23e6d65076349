package journal

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// faults breaks changes to the disk while err is set.
type faults struct {
	mu    sync.Mutex
	kind  string // "" = every kind
	keep  int
	err   error
	count atomic.Int64 // of all fsyncs
}

func (f *faults) set(kind string, keep int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kind, f.keep, f.err = kind, keep, err
}

func (f *faults) inject(kind string, n int) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if kind == KindFsync {
		f.count.Add(1)
	}
	if f.err == nil || f.kind != "" && f.kind != kind {
		return nil
	}
	return &Fault{Keep: min(f.keep, n), Err: f.err}
}

func writeRecord(id NodeID, off, n uint64) *Record {
	return &Record{Op: OpWrite, Changes: []Change{{Content: &ContentChange{ID: id, Off: off, Len: n, After: []Extent{{Off: off, Len: n, Kind: ExtentData}}}}}}
}

// A full disk fails the call and nothing else: the log, the record and the
// store are as before, and later calls work.
func TestDiskFull(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		for _, kind := range []string{KindLogWrite, KindPackWrite, KindCreate, KindHeader, KindBoltCommit} {
			t.Run(errno.Error()+" at "+kind, func(t *testing.T) {
				f := &faults{}
				dir := t.TempDir()
				s := mustCreate(t, dir, Options{Inject: f.inject, SegmentSize: 4 << 10, PackSize: 4 << 10, Clock: tick()})
				h := newHistory(5, s)
				full := 0
				for i := range 300 {
					if i%3 == 0 {
						f.set(kind, 9, errno)
						full += fillDisk(t, h, errno)
						f.set("", 0, nil)
					}
					h.next(t)
				}
				if full == 0 {
					t.Fatal("the disk was never full")
				}
				if s.Head() != h.st.Seq || s.Head() < 300 {
					t.Fatalf("head is %d, want %d", s.Head(), h.st.Seq)
				}
				mustClose(t, s)
				verifyClean(t, dir)
				sameState(t, "reopened", mustOpen(t, dir, Options{}).State(), h.st)
			})
		}
	}
}

// fillDisk tries each way to write and returns how many failed as they should.
func fillDisk(t *testing.T, h *history, errno error) (full int) {
	t.Helper()
	r := writeRecord(CreatedBit+900, 0, 100)
	seq, err := h.store.Append(r, make([]byte, 100))
	switch {
	case err == nil:
		h.st.Apply(r)
	case !errors.Is(err, errno) || seq != 0 || r.Seq != 0 || len(r.Data) != 0 || r.Changes[0].Content.After[0].Loc != (Loc{}):
		t.Fatalf("append to a full disk: seq %d, record %+v, %v", seq, r, err)
	default:
		full++
	}
	if _, err := h.store.Put(make([]byte, 3000)); err != nil {
		if !errors.Is(err, errno) {
			t.Fatalf("put to a full disk: %v", err)
		}
		full++
	}
	if err := h.store.Commit(); err != nil {
		if !errors.Is(err, errno) {
			t.Fatalf("commit to a full disk: %v", err)
		}
		full++
	}
	return full
}

func TestSyncFailureSticks(t *testing.T) {
	f := &faults{}
	s := mustCreate(t, t.TempDir(), Options{Inject: f.inject})
	if _, err := s.Append(writeRecord(RootID, 0, 10), make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	f.set(KindFsync, 0, syscall.EIO)
	if err := s.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("sync: %v", err)
	}
	f.set("", 0, nil)
	for range 2 {
		if err := s.Sync(); !errors.Is(err, syscall.EIO) {
			t.Fatalf("later sync: %v", err)
		}
	}
	if err := s.Commit(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("commit: %v", err)
	}
	if err := s.Close(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("close: %v", err)
	}
}

// Concurrent appends and syncs share the work, and each sync covers what its
// caller appended.
func TestGroupCommit(t *testing.T) {
	f := &faults{}
	s := mustCreate(t, t.TempDir(), Options{Inject: f.inject})
	f.count.Store(0)
	const workers, each = 16, 25
	var wg sync.WaitGroup
	for w := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range each {
				d, err := s.Put(make([]byte, 5000))
				if err != nil {
					t.Error(err)
					return
				}
				r := writeRecord(NodeID(w+2), uint64(i)*5000, 5000)
				r.Changes[0].Content.After[0].Loc = d.Loc
				r.Data = []DataRef{d}
				seq, err := s.Append(r, nil)
				if err == nil {
					err = s.Sync()
				}
				if err != nil || Seq(s.synced.Load()) < seq {
					t.Errorf("record %d is not durable: %v", seq, err)
					return
				}
			}
		}()
	}
	wg.Wait()
	if n := f.count.Load(); n > 2*workers*each {
		t.Errorf("%d syncs for %d calls", n, workers*each)
	}
	mustClose(t, s)
	verifyClean(t, s.dir)
}

func (s *Store) filesInLog(t *testing.T) []string {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(s.dir, logDir, "*"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no log: %v", err)
	}
	return logs
}

func TestTail(t *testing.T) {
	last := func(b []byte, t *testing.T) int64 { f := framesOf(t, b); return f[len(f)-1] }
	for _, tc := range []struct {
		name string
		edit func(t *testing.T, b []byte) []byte
		boot string // of the opening process; "" = the same
		head Seq    // 0 = refused
	}{
		{"whole", func(t *testing.T, b []byte) []byte { return b }, "", 40},
		{"cut in the header", func(t *testing.T, b []byte) []byte { return b[:last(b, t)+5] }, "", 39},
		{"cut in the record", func(t *testing.T, b []byte) []byte { return b[:len(b)-1] }, "", 39},
		{"flipped without loss of power", func(t *testing.T, b []byte) []byte { b[len(b)-1] ^= 1; return b }, "", 0},
		{"flipped after loss of power", func(t *testing.T, b []byte) []byte { b[len(b)-1] ^= 1; return b }, "other", 39},
		{"zeros after loss of power", func(t *testing.T, b []byte) []byte { return append(b, make([]byte, 5000)...) }, "other", 40},
		{"flipped in the middle", func(t *testing.T, b []byte) []byte { b[framesOf(t, b)[30]+30] ^= 1; return b }, "", 0},
		{"hole in the middle after loss of power", func(t *testing.T, b []byte) []byte {
			f := framesOf(t, b)
			clear(b[f[30]:f[33]])
			return b
		}, "other", 30},
		{"hole in what was synced, after loss of power", func(t *testing.T, b []byte) []byte {
			f := framesOf(t, b)
			clear(b[f[10]:f[13]])
			return b
		}, "other", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			s := mustCreate(t, dir, Options{Clock: tick()})
			h := newHistory(9, s)
			var states []*State
			for i := range 40 {
				h.next(t)
				states = append(states, h.st.Clone())
				if i == 19 {
					if err := s.Sync(); err != nil {
						t.Fatal(err)
					}
				}
			}
			abandon(s)
			log := s.filesInLog(t)[0]
			writeFile(t, log, tc.edit(t, readFile(t, log)))
			s, err := Open(dir, Options{boot: tc.boot})
			var c *CorruptError
			if tc.head == 0 {
				if !errors.As(err, &c) || c.Seq == 0 || c.Pos <= 0 || c.Way == "" {
					t.Fatalf("open: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			sameState(t, "opened", s.State(), states[tc.head-1])
			mustClose(t, s)
			verifyClean(t, dir)
		})
	}
}

// After a loss of power the log may be there and the data it names not: the
// log then ends before.
func TestLostPack(t *testing.T) {
	dir := t.TempDir()
	s := mustCreate(t, dir, Options{})
	for i := range 10 {
		d, err := s.Put(make([]byte, 20000))
		if err != nil {
			t.Fatal(err)
		}
		r := writeRecord(RootID, uint64(i)*20000, 20000)
		r.Changes[0].Content.After[0].Loc, r.Data = d.Loc, []DataRef{d}
		if _, err := s.Append(r, nil); err != nil {
			t.Fatal(err)
		}
	}
	abandon(s)
	packs, _ := filepath.Glob(filepath.Join(dir, packDir, "*"))
	b := readFile(t, packs[0])
	for i := 130000; i < 131000; i++ {
		b[i] = 7
	}
	clear(b[:headerSize])
	writeFile(t, packs[0], b)
	s = mustOpen(t, dir, Options{boot: "other"})
	if s.Head() != 6 {
		t.Fatalf("head is %d", s.Head())
	}
	mustClose(t, s)
	verifyClean(t, dir)
}

func TestHalfBornJournal(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{logDir, packDir} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(dir, logName(1, 1)), []byte("WINK"))
	writeFile(t, filepath.Join(dir, dbName+".new"), []byte("half"))
	mustClose(t, mustCreate(t, dir, Options{}))
	verifyClean(t, dir)
	if err := os.Remove(filepath.Join(dir, dbName)); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, logName(1, 1)), make([]byte, 500))
	if _, err := Create(dir, Options{}); !errors.Is(err, os.ErrExist) {
		t.Fatalf("create over a log: %v", err)
	}
}

func TestOtherFormat(t *testing.T) {
	for version, want := range map[uint32]error{FormatVersion + 1: ErrNewerFormat, FormatVersion - 1: ErrOlderFormat} {
		dir, _ := makeJournal(t, 10)
		h := fileHeader{magic: magicLog, file: 1, first: 1}
		b := h.encode()
		b[8] = byte(version)
		if _, err := decodeHeader(rechecked(b), magicLog); !errors.Is(err, want) {
			t.Errorf("header of format %d: %v", version, err)
		}
		setFormat(t, filepath.Join(dir, dbName), version)
		if _, err := Open(dir, Options{}); !errors.Is(err, want) {
			t.Errorf("open format %d: %v", version, err)
		}
		if _, err := Verify(dir); !errors.Is(err, want) {
			t.Errorf("verify format %d: %v", version, err)
		}
	}
}

func TestLockNamesHolder(t *testing.T) {
	dir := t.TempDir()
	mustCreate(t, dir, Options{})
	_, err := Open(dir, Options{ReadOnly: true, LockTimeout: 1})
	var l *LockedError
	if !errors.Is(err, ErrLocked) || !errors.As(err, &l) || l.PID != os.Getpid() {
		t.Fatalf("open: %v", err)
	}
}
