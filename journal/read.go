package journal

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"go.etcd.io/bbolt"
)

// Records calls fn for the records from..to, both included, in order; from = 0
// means from the oldest, to = 0 up to the head. It is a *TrimmedError if from
// was trimmed. It ends at fn's first error and returns it. Records
// appended meanwhile are not seen, and fn may append.
func (s *Store) Records(from, to Seq, fn func(*Record) error) error {
	from, to, err := s.clamp(from, to)
	if err != nil {
		return err
	}
	if from > to {
		return nil
	}
	return s.walk(from, to, nil, fn)
}

// RecordsDesc calls fn for the records from..to, both included, the newest
// first; to = 0 means from the head on, from = 0 down to the oldest. It reads a
// small block at a time, so that stopping early costs little. Where it comes to
// a record that was trimmed it ends with a *TrimmedError.
func (s *Store) RecordsDesc(from, to Seq, fn func(*Record) error) error {
	first := s.First()
	if head := s.Head(); to == 0 || to > head {
		to = head
	}
	var trimmed error
	if from > 0 && from < first && from <= to {
		trimmed = &TrimmedError{Seq: from, First: first}
	}
	from = max(from, first)
	for to >= from && to > 0 {
		lo := max(from, blockStart(to))
		var block []*Record
		err := s.walk(lo, to, nil, func(r *Record) error {
			block = append(block, r)
			return nil
		})
		if err != nil {
			return err
		}
		for _, r := range slices.Backward(block) {
			if err := fn(r); err != nil {
				return err
			}
		}
		to = lo - 1
	}
	return trimmed
}

// Pick calls fn for the records of the given numbers, which ascend. Records
// that don't exist are left out. It is otherwise like Records.
func (s *Store) Pick(seqs []Seq, fn func(*Record) error) error {
	for len(seqs) > 0 {
		n := 1
		for n < len(seqs) && seqs[n]-seqs[n-1] <= markEvery {
			n++
		}
		from, to, err := s.clamp(seqs[0], seqs[n-1])
		if err != nil {
			return err
		}
		if from > to {
			return nil
		}
		if err := s.walk(from, to, pickOf(seqs[:n]), fn); err != nil {
			return err
		}
		seqs = seqs[n:]
	}
	return nil
}

// pickOf returns a function that tells for ascending numbers whether they are
// among seqs.
func pickOf(seqs []Seq) func(Seq) bool {
	return func(seq Seq) bool {
		for len(seqs) > 0 && seqs[0] < seq {
			seqs = seqs[1:]
		}
		return len(seqs) > 0 && seqs[0] == seq
	}
}

func (s *Store) clamp(from, to Seq) (Seq, Seq, error) {
	first := s.First()
	head := s.Head()
	if to == 0 || to > head {
		to = head
	}
	if from > 0 && from < first && from <= to {
		return 0, 0, &TrimmedError{Seq: from, First: first}
	}
	return max(from, first), to, nil
}

// blockStart returns the marked record at or before seq.
func blockStart(seq Seq) Seq { return (seq-1)/markEvery*markEvery + 1 }

// walk reads those records from..to, which must exist, that are wanted; nil
// means all.
func (s *Store) walk(from, to Seq, wanted func(Seq) bool, fn func(*Record) error) error {
	w, err := s.walkFrom(from)
	if err != nil {
		return fmt.Errorf("read records: %w", err)
	}
	defer w.close()
	for w.seq <= to {
		r, err := w.next(w.seq >= from && (wanted == nil || wanted(w.seq)))
		if err != nil {
			return fmt.Errorf("read records: %w", err)
		}
		if r == nil {
			continue
		}
		if err := fn(r); err != nil {
			return err
		}
	}
	return nil
}

// walkFrom returns a walker that is at a record at or before from. A collection
// that meanwhile takes another database and other files into use makes it look
// again, or fail with a *TrimmedError.
func (s *Store) walkFrom(from Seq) (*walker, error) {
	for {
		oldest := s.oldest()
		m, err := s.startOf(from)
		if err == nil {
			w := &walker{s: s, seq: m.seq, pos: int64(m.loc.Pos)}
			if err = w.enter(s.files.get(m.loc.File), m.loc.File); err == nil {
				return w, nil
			}
		}
		s.dbMu.RLock() // an exchange under way ends first
		now := s.oldest()
		s.dbMu.RUnlock()
		switch {
		case now == oldest:
			return nil, err
		case from < now:
			return nil, &TrimmedError{Seq: from, First: now}
		}
	}
}

// startOf returns the position of a record at or before from: the marked one,
// or the oldest if that one was trimmed.
func (s *Store) startOf(from Seq) (mark, error) {
	if seq := blockStart(from); seq >= s.oldest() {
		return s.findMark(seq)
	}
	logs := s.files.logs()
	if len(logs) == 0 || logs[0].first > from {
		return mark{}, corruptAt(logDir, -1, from, "the log segment is missing")
	}
	return mark{seq: logs[0].first, loc: Loc{File: logs[0].num, Pos: headerSize}}, nil
}

// oldest returns the oldest record that the database has a position of.
func (s *Store) oldest() Seq {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.base == nil {
		return 1
	}
	return s.base.at + 1
}

// findMark returns the position of a marked record.
func (s *Store) findMark(seq Seq) (mark, error) {
	if m, ok := s.pendingMark(seq); ok {
		return m, nil
	}
	m := mark{seq: seq}
	err := s.view(func(tx *bbolt.Tx) error {
		t, err := tableOf(tx, &dbMeta{}, bucketMarks)
		if err != nil {
			return err
		}
		p, err := t.get(beKey(uint64(seq)))
		if err != nil {
			return err
		}
		if p == nil {
			return corruptDB("position of record %d is missing", seq)
		}
		w := &wire{b: p}
		m.loc = w.loc()
		return dbWire(w)
	})
	return m, err
}

func (s *Store) pendingMark(seq Seq) (mark, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range []*batch{s.pend, s.committing} {
		if b == nil {
			continue
		}
		i, ok := slices.BinarySearchFunc(b.marks, seq, func(m mark, seq Seq) int { return cmpSeq(m.seq, seq) })
		if ok {
			return b.marks[i], true
		}
	}
	return mark{}, false
}

// walker reads the log forward across segments.
type walker struct {
	s   *Store
	f   *os.File
	d   *dataFile
	lr  *logReader
	seq Seq   // of the record at pos
	pos int64 // in the segment
}

// enter goes on in a segment.
func (w *walker) enter(d *dataFile, num uint32) error {
	if d == nil || !d.isLog() {
		return corruptAt(fmt.Sprintf("%s file %d", logDir, num), -1, w.seq, "the log segment is missing")
	}
	w.close()
	f, err := os.Open(w.s.files.path(d))
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return fmt.Errorf("open log: %w", err)
	}
	w.f, w.d, w.lr = f, d, newLogReader(f, d.num, &w.s.id, fi.Size())
	return nil
}

// next moves over one record and returns it if it is wanted.
func (w *walker) next(wanted bool) (*Record, error) {
	if err := w.turn(); err != nil {
		return nil, err
	}
	if !wanted {
		h, err := w.lr.header(w.pos)
		if err != nil {
			return nil, w.place(err)
		}
		w.pos, w.seq = w.pos+h.size(), w.seq+1
		return nil, nil
	}
	f, err := w.lr.frame(w.pos)
	if err != nil {
		return nil, w.place(err)
	}
	r, err := decodeRecord(f.record)
	if err != nil {
		return nil, w.place(err)
	}
	if r.Seq != w.seq {
		return nil, corruptAt(w.d.name, w.pos, w.seq, "it is record %d", r.Seq)
	}
	w.pos, w.seq = f.end(), w.seq+1
	return r, nil
}

// turn enters the next segment at the end of this one.
func (w *walker) turn() error {
	if w.pos < w.lr.limit {
		return nil
	}
	for _, d := range w.s.files.logs() {
		if d.first == w.seq && d.num != w.d.num {
			w.pos = headerSize
			return w.enter(d, d.num)
		}
	}
	return corruptAt(w.d.name, w.pos, w.seq, "the log ends before it")
}

// place gives damage its place; other errors stay as they are.
func (w *walker) place(err error) error {
	if isDamage(err) {
		return corruptAt(w.d.name, w.pos, w.seq, "%v", err)
	}
	return err
}

// isDamage tells wrong bytes from bytes that could not be read.
func isDamage(err error) bool {
	for _, e := range []error{errFrameCut, errFrameMagic, errFrameSize, errFrameCRC, errInlineCRC, errDecode, errInlineRef, errChain} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (w *walker) close() {
	if w.f != nil {
		w.f.Close()
		w.f = nil
	}
}
