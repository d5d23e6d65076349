package journal

import (
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"
)

// recentBytes is how much of the log in front of the database's position Open
// reads and checks, so that damage near the head is noticed before anything is
// built on it. Older damage is Verify's to find.
const recentBytes = 1 << 20

// recover loads the state from the database and replays the log behind it.
func (s *Store) recover() error {
	var m *dbMeta
	var st *State
	var from mark
	err := s.view(func(tx *bbolt.Tx) (err error) {
		if m, err = readMeta(tx); err != nil {
			return err
		}
		if err = s.checkFiles(tx, m); err != nil {
			return err
		}
		if from, err = recentMark(tx, m); err != nil {
			return err
		}
		st, err = loadState(tx, m)
		return err
	})
	if err != nil {
		return err
	}
	s.meta, s.id = m, m.id
	if err := s.checkRecent(from); err != nil {
		return err
	}
	r := &replay{s: s, st: st, seq: m.seq, hash: m.hash, sameBoot: m.boot != "" && m.boot == s.o.boot}
	if err := r.run(); err != nil {
		return err
	}
	s.state, s.head, s.hash = st, r.seq, r.hash
	s.synced.Store(uint64(m.seq))
	if s.o.ReadOnly {
		return nil
	}
	return s.resume(r)
}

// resume opens the log and the packs for appending.
func (s *Store) resume(r *replay) error {
	f, err := os.OpenFile(s.files.path(r.last), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	s.seg, s.segNum, s.end = f, r.last.num, r.end
	// Older segments may hold records that are not durable yet.
	for _, d := range r.passed {
		f, err := os.OpenFile(s.files.path(d), os.O_RDWR, 0)
		if err != nil {
			return fmt.Errorf("open log: %w", err)
		}
		s.rotated = append(s.rotated, f)
	}
	s.logFresh = true
	packs := s.files.packs()
	if len(packs) == 0 {
		return nil
	}
	last := packs[len(packs)-1]
	if _, err := headerOf(&s.files, last, s.id); err != nil {
		if errors.Is(err, ErrNewerFormat) {
			return err
		}
		return nil // a crash cut its birth short; the next Put begins another
	}
	return s.packs.resume(last)
}

// headerOf reads and checks the header of a file.
func headerOf(files *fileTable, d *dataFile, id journalID) (*fileHeader, error) {
	f, err := os.Open(files.path(d))
	if err != nil {
		return nil, fmt.Errorf("open file of the journal: %w", err)
	}
	defer f.Close()
	magic := magicPack
	if d.isLog() {
		magic = magicLog
	}
	return readHeader(f, d, magic, id)
}

// readHeader reads the header of an open file and compares it with the name.
func readHeader(f *os.File, d *dataFile, magic string, id journalID) (*fileHeader, error) {
	var b [headerSize]byte
	n, _ := f.ReadAt(b[:], 0)
	h, err := decodeHeader(b[:n], magic)
	if err != nil {
		return nil, err
	}
	if h.file != d.num || h.first != d.first {
		return nil, fmt.Errorf("%w: it is the header of file %d, record %d", errHeader, h.file, h.first)
	}
	if h.id != id {
		return nil, fmt.Errorf("%w: the file belongs to another journal", errHeader)
	}
	return h, nil
}

// replay applies the records that the database lacks to the state.
type replay struct {
	s        *Store
	st       *State
	seq      Seq
	hash     [32]byte
	sameBoot bool // no power was lost since the log was written

	logs   []*dataFile // the segment in which the database ends, and later ones
	passed []*dataFile // segments replayed to their end
	last   *dataFile   // where appending goes on
	end    int64
}

func (r *replay) run() error {
	if err := r.findStart(); err != nil {
		return err
	}
	pos := int64(r.s.meta.end.Pos)
	for i, d := range r.logs {
		done, err := r.segment(i, d, pos)
		if err != nil || done {
			return err
		}
		if i+1 < len(r.logs) {
			r.passed = append(r.passed, d)
		}
		pos = headerSize
	}
	return nil
}

// findStart finds the segment in which the database ends.
func (r *replay) findStart() error {
	logs, end := r.s.files.logs(), r.s.meta.end
	for i, d := range logs {
		if d.num != end.File {
			continue
		}
		size, err := r.s.files.size(d)
		if err != nil {
			return fmt.Errorf("look at log: %w", err)
		}
		if size < int64(end.Pos) {
			return corruptAt(d.name, size, r.seq, "the log is cut short: the database ends at byte %d", end.Pos)
		}
		r.logs = logs[i:]
		return nil
	}
	return corruptAt(fmt.Sprintf("%s file %d", logDir, end.File), -1, r.seq, "the log segment in which the database ends is missing")
}

// segment replays one segment from pos. It reports done when the log ends
// within it because its tail was cut off.
func (r *replay) segment(i int, d *dataFile, pos int64) (done bool, err error) {
	f, err := os.Open(r.s.files.path(d))
	if err != nil {
		return false, fmt.Errorf("open log: %w", err)
	}
	defer f.Close()
	size, err := r.s.files.size(d)
	if err != nil {
		return false, fmt.Errorf("look at log: %w", err)
	}
	if err := r.header(i, f, d); err != nil {
		return r.damaged(i, 0, err)
	}
	r.last, r.end = d, pos
	lr := newLogReader(f, d.num, &r.s.id, size)
	for r.end < size {
		if err := r.record(lr); err != nil {
			return r.damaged(i, r.end, err)
		}
	}
	return false, nil
}

// header checks a segment's header. Segments behind the first must go on where
// the one before ended.
func (r *replay) header(i int, f *os.File, d *dataFile) error {
	h, err := readHeader(f, d, magicLog, r.s.id)
	if err != nil {
		return err
	}
	if i == 0 {
		return nil
	}
	if h.first != r.seq+1 || h.prev != r.hash {
		return fmt.Errorf("%w: it goes on at record %d, the log before it ends at %d", errHeader, h.first, r.seq)
	}
	r.s.pend.logs = append(r.s.pend.logs, mark{h.first, Loc{File: d.num}})
	return nil
}

var (
	errChain = errors.New("record does not follow the one before")
	errData  = errors.New("data that the record names are not there")
)

// record replays the record at r.end.
func (r *replay) record(lr *logReader) error {
	f, err := lr.frame(r.end)
	if err != nil {
		return err
	}
	rec, err := decodeRecord(f.record)
	if err != nil {
		return err
	}
	if rec.Seq != r.seq+1 || rec.Prev != r.hash {
		return fmt.Errorf("%w: it is record %d behind %d", errChain, rec.Seq, r.seq)
	}
	hash := f.hash()
	if err := lr.checkInline(f, rec); err != nil {
		return err
	}
	if err := r.data(f, rec); err != nil {
		return err
	}
	r.seq, r.hash = rec.Seq, hash
	r.st.Apply(rec)
	r.s.pend.add(rec, hash, f.loc, f.end())
	r.end = f.end()
	return nil
}

// data checks the data that the record put into packs: after a loss of power
// byte by byte, else that they are there.
func (r *replay) data(f *frame, rec *Record) error {
	for _, d := range rec.Data {
		if d.Loc.File == f.loc.File {
			continue
		}
		if err := r.dataRef(d); err != nil {
			return fmt.Errorf("%w: %w", errData, err)
		}
	}
	return nil
}

func (r *replay) dataRef(d DataRef) error {
	if d.Len == 0 {
		return nil
	}
	if !r.sameBoot {
		return r.s.files.checkData(d)
	}
	var last [1]byte
	return r.s.files.readAt(Loc{File: d.Loc.File, Pos: d.Loc.Pos + d.Len - 1}, last[:])
}

// damaged decides what a bad frame or header means. What a crash leaves is cut
// off: the log ends there. Anything else is refused.
//
// While the machine has not lost power since the log was written, the kernel
// has every byte of every frame but perhaps the last one, which a death of the
// process may have cut. After a loss of power the frames behind the newest
// sync may be bad in any combination; each frame says up to where the log was
// durable when it was written.
func (r *replay) damaged(i int, pos int64, cause error) (done bool, err error) {
	d := r.logs[i]
	if errors.Is(cause, ErrNewerFormat) {
		return false, cause
	}
	bad := corruptAt(d.name, pos, r.seq+1, "%v", cause)
	if r.sameBoot && !isCut(cause) || i == 0 && pos < headerSize {
		return false, bad
	}
	proof, err := r.proof(i, pos)
	if err != nil {
		return false, err
	}
	if proof != "" {
		bad.Reason += "; " + proof
		return false, bad
	}
	if r.s.o.ReadOnly {
		return true, nil
	}
	return true, r.cut(i, pos, cause)
}

// isCut reports whether a frame or header ends too early, which is all that
// the death of a process can do to the last one.
func isCut(cause error) bool {
	return errors.Is(cause, errFrameCut) || errors.Is(cause, errHeaderCut)
}

// proof looks behind a bad place for what shows that the place was good once,
// and returns it in words.
func (r *replay) proof(i int, pos int64) (string, error) {
	for j := i; j < len(r.logs); j++ {
		found, err := r.proofIn(r.logs[j], j > i, pos+1)
		if found != "" || err != nil {
			return found, err
		}
		pos = headerSize - 1
	}
	return "", nil
}

func (r *replay) proofIn(d *dataFile, later bool, pos int64) (string, error) {
	f, err := os.Open(r.s.files.path(d))
	if err != nil {
		return "", fmt.Errorf("open log: %w", err)
	}
	defer f.Close()
	size, err := r.s.files.size(d)
	if err != nil {
		return "", fmt.Errorf("look at log: %w", err)
	}
	if _, err := readHeader(f, d, magicLog, r.s.id); err == nil && later && r.sameBoot {
		return fmt.Sprintf("the log goes on in %s", d.name), nil
	}
	lr := newLogReader(f, d.num, &r.s.id, size)
	for {
		fr, err := lr.resync(pos)
		if fr == nil || err != nil {
			return "", err
		}
		if r.sameBoot || fr.header.synced > r.seq {
			return fmt.Sprintf("a whole record follows at byte %d of %s", fr.loc.Pos, d.name), nil
		}
		pos = fr.end()
	}
}

// cut ends the log at pos of segment i and removes the segments behind it.
func (r *replay) cut(i int, pos int64, cause error) error {
	s := r.s
	for _, d := range r.logs[i+1:] {
		s.log.Warn("log segment behind a cut record is removed", "file", d.name)
		if err := s.drop(d); err != nil {
			return err
		}
	}
	d := r.logs[i]
	s.log.Warn("log is cut at its last whole record", "file", d.name, "pos", pos, "head", uint64(r.seq), "cause", cause)
	if pos < headerSize {
		r.passed = r.passed[:max(len(r.passed)-1, 0)]
		return s.drop(d)
	}
	f, err := os.OpenFile(s.files.path(d), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer f.Close()
	if err := s.disk.truncate(f, pos); err != nil {
		return err
	}
	return s.disk.fsync(f)
}

// drop removes a log segment that holds no history.
func (s *Store) drop(d *dataFile) error {
	s.files.forget(d.num)
	return s.disk.remove(s.files.path(d))
}
