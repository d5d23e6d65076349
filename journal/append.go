package journal

import (
	"crypto/sha256"
	"fmt"
)

// maxKeptBuf is the largest frame buffer kept between appends.
const maxKeptBuf = 1 << 20

// Append adds the record to the log. It assigns Seq, Time and Prev, and on
// return the record survives the death of the process; surviving the loss of
// power takes Sync. On error nothing was added.
//
// Data of up to MaxInline bytes can go along in the record's own frame: the
// one ExtentData extent in r's changes whose Loc has no file is given its
// place, and a DataRef is added to r.Data. Append keeps no reference to r but
// to the nodes after, which are immutable.
func (s *Store) Append(r *Record, inline []byte) (Seq, error) {
	hole, err := checkRecord(r, inline)
	if err != nil {
		return 0, fmt.Errorf("append record: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.appendLocked(r, inline, hole); err != nil {
		return 0, fmt.Errorf("append record: %w", err)
	}
	return r.Seq, nil
}

func (s *Store) appendLocked(r *Record, inline []byte, hole *Extent) error {
	if err := s.readyLocked(); err != nil {
		return err
	}
	was := *r
	r.Seq, r.Time, r.Prev = s.head+1, Timespec(s.o.Clock().UnixNano()), s.hash
	loc := Loc{File: s.segNum, Pos: uint64(s.end)}
	if hole != nil {
		hole.Loc = Loc{File: s.segNum, Pos: loc.Pos + frameSize}
		r.Data = append(r.Data, DataRef{Loc: hole.Loc, Len: uint64(len(inline)), CRC: crcOf(inline)})
	}
	hash, err := s.writeLocked(r, inline)
	if err != nil {
		*r = was
		if hole != nil {
			hole.Loc = Loc{}
		}
		return err
	}
	s.head, s.hash = r.Seq, hash
	s.packs.named(was.Data)
	s.pend.add(r, hash, loc, s.end)
	s.unflushed += s.end - int64(loc.Pos)
	if s.unflushed >= syncBytes {
		s.unflushed = 0
		s.wakeCommitter()
	}
	return nil
}

// readyLocked brings the log into the shape for one more frame.
func (s *Store) readyLocked() error {
	if err := s.writableLocked(); err != nil {
		return err
	}
	if s.tailDirty {
		if err := s.disk.truncate(s.seg, s.end); err != nil {
			return err
		}
		s.tailDirty = false
	}
	if s.end >= s.o.SegmentSize && s.end > headerSize {
		return s.rotateLocked()
	}
	return nil
}

// writeLocked writes the frame with one system call. After a failure the log
// is as it was before.
func (s *Store) writeLocked(r *Record, inline []byte) (hash [32]byte, err error) {
	b, rec := appendFrame(s.buf[:0], &s.id, r, inline, Seq(s.synced.Load()))
	if s.buf = b; cap(b) > maxKeptBuf {
		s.buf = nil
	}
	if len(rec) > MaxRecord {
		return hash, invalid("record has %d bytes", len(rec))
	}
	if err := s.disk.write(KindLogWrite, s.seg, b, s.end); err != nil {
		s.tailDirty = s.disk.truncate(s.seg, s.end) != nil
		return hash, err
	}
	s.end += int64(len(b))
	return sha256.Sum256(rec), nil
}

// rotateLocked begins a new log segment. The full one stays open until it is
// synced.
func (s *Store) rotateLocked() error {
	num := s.files.reserve()
	first := s.head + 1
	d := &dataFile{kind: kindLog, num: num, first: first, name: logName(first, num)}
	h := &fileHeader{magic: magicLog, file: num, first: first, id: s.id, prev: s.hash}
	f, err := s.disk.create(s.files.path(d), h.encode())
	if err != nil {
		return err
	}
	s.files.add(d)
	s.rotated = append(s.rotated, s.seg)
	s.seg, s.segNum, s.end, s.logFresh = f, num, headerSize, true
	return nil
}

func (s *Store) wakeCommitter() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}
