package journal

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"

	"go.etcd.io/bbolt"
)

// progressStep is how many records lie between two reports of progress.
const progressStep = 10_000

func (c *collector) buildState() error {
	if c.o.salvage {
		return c.copyState()
	}
	return c.buildAtCut()
}

// copyState takes the database as it is for that of the cut, which is the head.
func (c *collector) copyState() error {
	s := c.s
	path := s.path(dbName + ".new")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	var m *dbMeta
	err = s.view(func(tx *bbolt.Tx) (err error) {
		if m, err = readMeta(tx); err != nil {
			return err
		}
		_, err = tx.WriteTo(f)
		return err
	})
	if err != nil {
		return err
	}
	if m.seq != c.cut {
		return fmt.Errorf("the database is at record %d, not at %d", m.seq, c.cut)
	}
	db, err := openScratch(path)
	if err != nil {
		return err
	}
	c.build = &builder{db: db, m: m, b: newBatch()}
	if r, err := s.Record1(); err == nil && r != nil {
		c.origin = appendRecord(nil, r)
	}
	return nil
}

// buildAtCut makes the database of the state at the cut: from the old base and
// the records that go. What they added is compared with its checksums, since
// what is live of it will carry new ones.
func (c *collector) buildAtCut() error {
	s := c.s
	path := s.path(dbName + ".new")
	if err := os.Remove(path); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	db, err := openScratch(path)
	if err != nil {
		return err
	}
	from, err := s.openOwnBase()
	if err != nil {
		db.Close()
		return err
	}
	if from != nil {
		defer from.close()
		c.origin = from.first
	}
	if c.build, err = newBuilder(db, s.id, c.gone[0], from); err != nil {
		return err
	}
	err = c.read(c.old+1, c.cut, func(ch *chain) error {
		if ch.seq == 1 {
			c.origin = appendRecord(nil, ch.rec)
		}
		for _, d := range ch.rec.Data {
			if d.Loc.File == ch.at.File {
				continue // compared by the chain
			}
			if err := s.files.checkData(d); err != nil {
				return corruptAt(packName(d.Loc.File), int64(d.Loc.Pos), ch.seq, "%v", reasonOf(err))
			}
		}
		return c.build.record(ch.rec, ch.hash, ch.at, ch.pos)
	})
	if err != nil {
		return err
	}
	return c.build.flush()
}

// openScratch opens a database of which only the end is made durable.
func openScratch(path string) (*bbolt.DB, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: dbTimeout, NoSync: true, NoFreelistSync: false, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return nil, fmt.Errorf("create database: %w", err)
	}
	return db, nil
}

// openOwnBase opens the base that history begins with now, nil if there is
// none.
func (s *Store) openOwnBase() (*baseReader, error) {
	list := s.files.baseFiles()
	if len(list) == 0 {
		return nil, nil
	}
	return openBase(&s.files, list[0], s.id)
}

// read follows the records from..to, which must lie in whole segments at the
// begin, checks them and calls fn behind each.
func (c *collector) read(from, to Seq, fn func(*chain) error) error {
	s := c.s
	if from > to {
		return nil
	}
	m, err := s.startOf(from)
	if err != nil {
		return err
	}
	ch := &chain{pos: int64(m.loc.Pos), seq: m.seq - 1}
	for i, d := range segmentsFrom(s.files.logs(), m.loc.File) {
		if ch.seq >= to {
			break
		}
		if err := c.readSegment(ch, d, i == 0 && m.loc.Pos != headerSize, from, to, fn); err != nil {
			return err
		}
	}
	if ch.seq < to {
		return corruptAt(logDir, -1, ch.seq+1, "the log ends before record %d", to)
	}
	return nil
}

// segmentsFrom returns the segments from the one of that number on.
func segmentsFrom(logs []*dataFile, num uint32) []*dataFile {
	for i, d := range logs {
		if d.num == num {
			return logs[i:]
		}
	}
	return nil
}

func (c *collector) readSegment(ch *chain, d *dataFile, within bool, from, to Seq, fn func(*chain) error) error {
	f, err := c.s.enterSegment(ch, d, maxOffset>>1, within)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return fmt.Errorf("look at log: %w", err)
	}
	ch.lr.limit = fi.Size()
	for ch.seq < to && ch.pos < ch.lr.limit {
		if err := ch.next(); err != nil {
			return err
		}
		if ch.seq < from {
			continue
		}
		if err := fn(ch); err != nil {
			return err
		}
		if ch.seq%progressStep == 0 {
			if err := c.ctx.Err(); err != nil {
				return err
			}
			c.progress("read history", int64(ch.seq-from+1), int64(to-from+1))
		}
	}
	return nil
}
