package journal

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// logScan reads a whole log from its first record and notes everything that is
// wrong with it. Behind damage it goes on at the next whole record.
type logScan struct {
	files *fileTable
	id    journalID
	// checkData has the bytes that records put into packs compared too.
	checkData bool
	// record is called for each record while nothing was wrong before it.
	record func(r *Record, hash [32]byte, loc Loc, end int64) error

	problems []Problem
	broken   bool // something was wrong with the log itself
	records  int
	first    Seq
	seq      Seq // of the record last read
	hash     [32]byte
	known    bool // hash is known
	begins   bool // seq and hash are those that the log must go on from
	data     int64

	// tail is the first wrong place behind the last whole record, nil if the
	// log ends well. middle is the first wrong place in front of one.
	tail, middle *Problem
	wrongs       []Problem // of the log itself, the first ones
}

func (s *logScan) problem(file string, pos int64, seq Seq, format string, args ...any) {
	if len(s.problems) < maxProblems {
		s.problems = append(s.problems, Problem{File: file, Pos: pos, Seq: seq, What: fmt.Sprintf(format, args...)})
	}
}

// dataProblem notes data that are damaged while their record is good.
func (s *logScan) dataProblem(p Problem) {
	p.Data = true
	if len(s.problems) < maxProblems {
		s.problems = append(s.problems, p)
	}
}

// wrong notes a problem of the log itself.
func (s *logScan) wrong(d *dataFile, pos int64, format string, args ...any) {
	s.broken = true
	s.problem(d.name, pos, s.seq+1, format, args...)
	if len(s.wrongs) < maxProblems {
		s.wrongs = append(s.wrongs, Problem{File: d.name, Pos: pos, Seq: s.seq + 1})
	}
	if s.tail == nil {
		s.tail = &Problem{File: d.name, Pos: pos, Seq: s.seq + 1, What: fmt.Sprintf(format, args...)}
	}
}

// before tells where history begins: behind the record at.
func (s *logScan) before(at Seq, hash [32]byte) {
	s.begins, s.seq, s.hash, s.known = true, at, hash, true
}

// good returns the last record up to which everything of the log is as it was
// written.
func (s *logScan) good() Seq {
	if len(s.wrongs) == 0 {
		return s.seq
	}
	return s.wrongs[0].Seq - 1
}

// findID takes the journal's id from the first segment that has a good header.
func (s *logScan) findID(logs []*dataFile) error {
	for _, d := range logs {
		var b [headerSize]byte
		if err := s.files.readAt(Loc{File: d.num}, b[:]); err != nil {
			continue
		}
		h, err := decodeHeader(b[:], magicLog)
		if otherFormat(err) {
			return err
		}
		if err == nil {
			s.id = h.id
			return nil
		}
	}
	return fmt.Errorf("read log: %w: no segment has a good one", errHeader)
}

// run reads all segments. The error is one of reading, not of what was read.
func (s *logScan) run(logs []*dataFile) error {
	for i, d := range logs {
		if err := s.file(d, i == len(logs)-1); err != nil {
			return err
		}
	}
	return nil
}

func (s *logScan) file(d *dataFile, last bool) error {
	f, err := os.Open(s.files.path(d))
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer f.Close()
	s.header(f, d, last)
	lr := newLogReader(f, d.num, &s.id, d.found)
	for pos := int64(headerSize); pos < lr.limit; {
		next, err := s.at(lr, d, pos, last)
		if err != nil {
			return err
		}
		pos = next
	}
	return nil
}

// header checks that a segment is the one that follows.
func (s *logScan) header(f *os.File, d *dataFile, last bool) {
	h, err := patientHeader(f, d, magicLog, s.id)
	if err != nil && last && s.known && d.first == s.seq+1 && unborn(f) {
		return
	}
	if err != nil {
		s.wrong(d, 0, "%v", err)
		s.known = false
		return
	}
	switch {
	case s.first == 0 && !s.begins:
		s.first = h.first
	case h.first != s.seq+1:
		s.wrong(d, 0, "the segment begins with record %d, record %d is expected", h.first, s.seq+1)
	case s.known && h.prev != s.hash:
		s.wrong(d, 0, "the segment does not follow the record before it")
	}
	if s.first == 0 {
		s.first = h.first
	}
	s.seq, s.hash, s.known = h.first-1, h.prev, true
}

// unborn reports whether a file holds nothing at all: the death of the process
// cut its birth short, and the next to open the journal drops it.
func unborn(f *os.File) bool {
	fi, err := f.Stat()
	return err == nil && fi.Size() == 0
}

// patientHeader reads a header that a running daemon may be just writing.
func patientHeader(f *os.File, d *dataFile, magic string, id journalID) (*fileHeader, error) {
	for range 5 {
		h, err := readHeader(f, d, magic, id)
		if !errors.Is(err, errHeaderCut) {
			return h, err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, errHeaderCut
}

// at reads the frame at pos and returns where the next one is.
func (s *logScan) at(lr *logReader, d *dataFile, pos int64, last bool) (int64, error) {
	f, err := lr.frame(pos)
	if last && errors.Is(err, errFrameCut) {
		f, err = s.retry(lr, pos)
	}
	if err == nil {
		return f.end(), s.take(lr, d, f)
	}
	if !isDamage(err) {
		return 0, err
	}
	s.wrong(d, pos, "%v", err)
	s.known = false
	f, err = lr.resync(pos + 1)
	if err != nil {
		return 0, err
	}
	if f == nil {
		return lr.limit, nil
	}
	return int64(f.loc.Pos), nil
}

// retry waits for a record that a running daemon is writing.
func (s *logScan) retry(lr *logReader, pos int64) (*frame, error) {
	for range 5 {
		time.Sleep(10 * time.Millisecond)
		fi, err := lr.f.Stat()
		if err != nil {
			return nil, fmt.Errorf("look at log: %w", err)
		}
		if fi.Size() <= lr.limit {
			continue
		}
		again := newLogReader(lr.f, lr.file, lr.id, fi.Size())
		f, err := again.frame(pos)
		if err == nil {
			lr.limit = f.end()
			return lr.frame(pos)
		}
	}
	return nil, errFrameCut
}

// take checks a record whose frame is whole.
func (s *logScan) take(lr *logReader, d *dataFile, f *frame) error {
	hash, pos := f.hash(), int64(f.loc.Pos)
	r, err := decodeRecord(f.record)
	if err != nil {
		s.wrong(d, pos, "%v", err)
		s.known = false
		return nil
	}
	switch {
	case r.Seq != s.seq+1:
		s.wrong(d, pos, "record %d where record %d is expected", r.Seq, s.seq+1)
	case s.known && r.Prev != s.hash:
		s.wrong(d, pos, "%v", errChain)
	}
	if s.middle == nil {
		s.middle = s.tail
	}
	s.tail = nil
	s.seq, s.hash, s.known = r.Seq, hash, true
	s.records++
	if err := lr.checkInline(f, r); err != nil {
		if !isDamage(err) {
			return err
		}
		s.dataProblem(Problem{File: d.name, Pos: pos, Seq: r.Seq, What: fmt.Sprintf("%v (%s)", err, nameRecord(r))})
	}
	s.refs(f, r)
	if s.broken || s.record == nil {
		return nil
	}
	return s.record(r, hash, f.loc, f.end())
}

// refs checks the data that a record put into packs.
func (s *logScan) refs(f *frame, r *Record) {
	for _, d := range r.Data {
		s.data += int64(d.Len)
		if d.Loc.File == f.loc.File || !s.checkData {
			continue
		}
		if err := s.files.checkData(d); err != nil {
			name := packName(d.Loc.File)
			s.dataProblem(Problem{File: name, Pos: int64(d.Loc.Pos), Seq: r.Seq, What: fmt.Sprintf("%v (%s)", reasonOf(err), nameRecord(r))})
		}
	}
}

// nameRecord says what a record did, for people.
func nameRecord(r *Record) string {
	if r.Path == "" {
		return r.Op.String()
	}
	return fmt.Sprintf("%s of %q", r.Op, r.Path)
}

// reasonOf returns why an error says that something is damaged, without the
// place, which the problem has.
func reasonOf(err error) string {
	var c *CorruptError
	if errors.As(err, &c) {
		return c.Reason
	}
	return err.Error()
}
