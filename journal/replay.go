package journal

import (
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"
)

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
	if err := r.revive(rec); err != nil {
		return err
	}
	r.seq, r.hash = rec.Seq, hash
	r.st.Apply(rec)
	r.s.pend.add(rec, hash, f.loc, f.end())
	r.end = f.end()
	return nil
}

// revive reads the state of nodes that were gone where the database ends, if
// the record is about them: it may bring one back.
func (r *replay) revive(rec *Record) error {
	for i := range rec.Changes {
		c := &rec.Changes[i]
		switch {
		case c.Node != nil && c.Node.Before != nil:
			if err := r.reviveNode(c.Node.ID); err != nil {
				return err
			}
		case c.Content != nil:
			if err := r.reviveNode(c.Content.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *replay) reviveNode(id NodeID) error {
	if id < CreatedBit || r.st.Nodes[id] != nil {
		return nil
	}
	return r.s.view(func(tx *bbolt.Tx) error {
		n, err := storedNode(tx, id)
		if err != nil || n == nil {
			return err
		}
		c := &Content{}
		if err := storedContent(tx, id, c); err != nil {
			return err
		}
		r.st.Nodes[id] = n
		if !c.Empty() {
			r.st.Contents[id] = c
		}
		return nil
	})
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
