package journal

import (
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"
)

// recentMark returns the oldest marked record that lies within recentBytes in
// front of the database's position and in the same segment. The zero mark
// means that there is none.
func recentMark(tx *bbolt.Tx, m *dbMeta) (mark, error) {
	t, err := tableOf(tx, m, bucketMarks)
	if err != nil {
		return mark{}, err
	}
	var found mark
	c := t.b.Cursor()
	for k, v := c.Last(); k != nil; k, v = c.Prev() {
		mk, err := decodeMark(t, k, v)
		if err != nil {
			return mark{}, err
		}
		if mk.loc.File != m.end.File || mk.loc.Pos+recentBytes < m.end.Pos {
			break
		}
		found = mk
	}
	return found, nil
}

func decodeMark(t *table, k, v []byte) (mark, error) {
	p, err := unseal(t.name, k, v)
	if err != nil {
		return mark{}, err
	}
	seq, err := idKey(k, 8)
	if err != nil {
		return mark{}, err
	}
	w := &wire{b: p}
	mk := mark{Seq(seq), w.loc()}
	return mk, dbWire(w)
}

// checkRecent reads the log from the mark to where the database ends and
// checks that the database ends at the record it says.
func (s *Store) checkRecent(from mark) error {
	end := s.meta.end
	d := s.files.get(end.File)
	if d == nil || !d.isLog() {
		return corruptAt(fmt.Sprintf("%s file %d", logDir, end.File), -1, s.meta.seq, "the log segment in which the database ends is missing")
	}
	f, err := os.Open(s.files.path(d))
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer f.Close()
	h, err := readHeader(f, d, magicLog, s.id)
	if err != nil {
		return headerError(d, err)
	}
	c := chain{lr: newLogReader(f, d.num, &s.id, int64(end.Pos)), name: d.name, pos: int64(from.loc.Pos), seq: from.seq - 1}
	if from == (mark{}) {
		c.pos, c.seq, c.hash, c.known = headerSize, h.first-1, h.prev, true
	}
	for c.pos < int64(end.Pos) {
		if err := c.next(); err != nil {
			return err
		}
	}
	if c.seq != s.meta.seq || c.known && c.hash != s.meta.hash {
		return corruptAt(d.name, c.pos, c.seq, "the log is not the one that the database was made from")
	}
	return nil
}

// headerError places a header's damage. That a later version wrote it is none.
func headerError(d *dataFile, err error) error {
	if errors.Is(err, ErrNewerFormat) {
		return err
	}
	return corruptAt(d.name, 0, d.first, "%v", err)
}

// chain follows the records of a segment and checks that they belong together.
type chain struct {
	lr    *logReader
	name  string
	pos   int64
	seq   Seq      // of the record before pos
	hash  [32]byte // of that record
	known bool     // hash is known
}

// next checks the record at pos and moves behind it.
func (c *chain) next() error {
	f, err := c.lr.frame(c.pos)
	if err != nil {
		return corruptAt(c.name, c.pos, c.seq+1, "%v", err)
	}
	r, err := decodeRecord(f.record)
	if err != nil {
		return corruptAt(c.name, c.pos, c.seq+1, "%v", err)
	}
	if r.Seq != c.seq+1 || c.known && r.Prev != c.hash {
		return corruptAt(c.name, c.pos, c.seq+1, "%v: it is record %d", errChain, r.Seq)
	}
	hash := f.hash()
	if err := c.lr.checkInline(f, r); err != nil {
		return corruptAt(c.name, c.pos, r.Seq, "%v", err)
	}
	c.pos, c.seq, c.hash, c.known = f.end(), r.Seq, hash, true
	return nil
}
