package journal

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"go.etcd.io/bbolt"
)

// recent is where the check of the newest part of the log begins.
type recent struct {
	logs []*dataFile // from there to the segment in which the database ends
	from mark        // zero: at the begin of the first segment
}

// findRecent goes back recentBytes from the database's position.
func (s *Store) findRecent(tx *bbolt.Tx, m *dbMeta) (*recent, error) {
	logs := s.files.logs()
	last := slices.IndexFunc(logs, func(d *dataFile) bool { return d.num == m.end.File })
	if last < 0 {
		return nil, corruptAt(fmt.Sprintf("%s file %d", logDir, m.end.File), -1, m.seq, "the log segment in which the database ends is missing")
	}
	i, left, size := last, int64(recentBytes), int64(m.end.Pos)
	for i > 0 && size < left {
		left -= size
		i--
		var err error
		if size, err = s.files.size(logs[i]); err != nil {
			return nil, fmt.Errorf("look at log: %w", err)
		}
	}
	r := &recent{logs: logs[i : last+1]}
	if size-left <= headerSize {
		return r, nil
	}
	return r, r.findMark(tx, m, size-left)
}

// findMark finds the first marked record at or behind lowest in the first
// segment.
func (r *recent) findMark(tx *bbolt.Tx, m *dbMeta, lowest int64) error {
	t, err := tableOf(tx, m, bucketMarks)
	if err != nil {
		return err
	}
	c := t.b.Cursor()
	for k, v := c.Last(); k != nil; k, v = c.Prev() {
		mk, err := decodeMark(t, k, v)
		if err != nil {
			return err
		}
		first := mk.loc.File == r.logs[0].num
		if mk.seq < r.logs[0].first || first && int64(mk.loc.Pos) < lowest {
			return nil
		}
		if first {
			r.from = mk
		}
	}
	return nil
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

// checkRecent reads the newest part of the log up to where the database ends
// and checks that it ends at the record that the database says.
func (s *Store) checkRecent(r *recent) error {
	c := &chain{pos: int64(r.from.loc.Pos), seq: r.from.seq - 1}
	// Damaged bytes of one file are no reason to refuse all others; data in
	// packs are not looked at here either.
	c.damaged = func(seq Seq) {
		s.log.Error("stored data are damaged; `winkfs verify` says which", "record", uint64(seq))
	}
	for i, d := range r.logs {
		limit := int64(s.meta.end.Pos)
		if d.num != s.meta.end.File {
			size, err := s.files.size(d)
			if err != nil {
				return fmt.Errorf("look at log: %w", err)
			}
			limit = size
		}
		if err := s.checkSegment(c, d, limit, i == 0 && r.from != mark{}); err != nil {
			return err
		}
	}
	if c.seq != s.meta.seq || c.hash != s.meta.hash {
		return corruptAt(r.logs[len(r.logs)-1].name, c.pos, c.seq, "the log is not the one that the database was made from")
	}
	return nil
}

// checkSegment follows the records of one segment, from the chain's position
// if it is within the segment, else from the begin.
func (s *Store) checkSegment(c *chain, d *dataFile, limit int64, within bool) error {
	f, err := s.enterSegment(c, d, limit, within)
	if err != nil {
		return err
	}
	defer f.Close()
	for c.pos < limit {
		if err := c.next(); err != nil {
			return err
		}
	}
	return nil
}

// enterSegment makes the chain go on in a segment: at its position if that is
// within the segment, else at the segment's begin, which must follow.
func (s *Store) enterSegment(c *chain, d *dataFile, limit int64, within bool) (*os.File, error) {
	f, err := os.Open(s.files.path(d))
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	h, err := readHeader(f, d, magicLog, s.id)
	if err == nil && !within {
		if c.known && (h.first != c.seq+1 || h.prev != c.hash) {
			err = corruptAt(d.name, 0, h.first, "the segment does not follow record %d", c.seq)
		}
		c.pos, c.seq, c.hash, c.known = headerSize, h.first-1, h.prev, true
	} else if err != nil {
		err = headerError(d, err)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	c.lr, c.name = newLogReader(f, d.num, &s.id, limit), d.name
	return f, nil
}

// headerError places a header's damage. That a later version wrote it is none.
func headerError(d *dataFile, err error) error {
	if otherFormat(err) {
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
	rec   *Record  // the record before pos, once next has read it
	at    Loc      // of its frame
	// damaged is told of records whose inline data are damaged while they are
	// good themselves; nil = that is an error.
	damaged func(Seq)
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
	err = c.lr.checkInline(f, r)
	if errors.Is(err, errInlineCRC) && c.damaged != nil {
		c.damaged(r.Seq)
		err = nil
	}
	if err != nil {
		return corruptAt(c.name, c.pos, r.Seq, "%v", err)
	}
	c.rec, c.at = r, f.loc
	c.pos, c.seq, c.hash, c.known = f.end(), r.Seq, hash, true
	return nil
}
