package journal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"slices"

	"go.etcd.io/bbolt"
)

// dbOld is the name that Rebuild gives the database that it replaces.
const dbOld = dbName + ".old"

// Rebuild makes the database anew from the log, which is the authority. The
// old one is kept under the name journal.db.old. A log that is damaged before
// its end is refused with a *CorruptError; bytes behind its last whole record
// are cut off and reported as the report's problems, as is damaged data.
func Rebuild(dir string, o Options) (*Report, error) {
	s := newStore(dir, o.withDefaults())
	defer s.release()
	r, err := s.rebuild()
	if err != nil {
		return nil, fmt.Errorf("rebuild journal: %w", err)
	}
	return r, nil
}

func (s *Store) rebuild() (*Report, error) {
	if s.o.ReadOnly {
		return nil, ErrReadOnly
	}
	if err := s.takeLock(); err != nil {
		return nil, err
	}
	if _, err := s.files.load(); err != nil {
		return nil, err
	}
	logs := s.files.logs()
	if len(logs) == 0 {
		return nil, ErrNotJournal
	}
	scan := &logScan{files: &s.files, checkData: true}
	if err := scan.findID(logs); err != nil {
		return nil, err
	}
	s.id = scan.id
	from, err := s.files.oldestBase(s.id)
	if err != nil {
		return nil, err
	}
	logs = s.files.logs()
	if from != nil {
		defer from.close()
	}
	if err := s.buildDB(scan, logs, from); err != nil {
		return nil, err
	}
	if err := s.replaceDB(); err != nil {
		return nil, err
	}
	return &Report{Records: scan.records, FirstSeq: scan.first, LastSeq: scan.seq, Good: scan.good(), DataBytes: scan.data, Problems: scan.problems}, nil
}

// buildDB reads the log into a database beside the old one.
func (s *Store) buildDB(scan *logScan, logs []*dataFile, from *baseReader) error {
	tmp := s.path(dbName + ".new")
	if err := os.Remove(tmp); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	db, err := openBolt(tmp, false)
	if err != nil {
		return err
	}
	b, err := newBuilder(db, scan.id, logs[0], from)
	if err != nil {
		return err
	}
	defer db.Close()
	if from != nil {
		scan.before(from.at, from.hash)
	}
	scan.record = b.record
	if err := scan.run(logs); err != nil {
		return err
	}
	if err := s.cutTail(scan, logs); err != nil {
		return err
	}
	if err := s.syncFiles(); err != nil {
		return err
	}
	b.m.boot = s.o.boot
	if err := b.flush(); err != nil {
		return err
	}
	return s.noteFiles(b)
}

// cutTail removes what lies behind the last whole record. Damage in front of
// whole records is refused.
func (s *Store) cutTail(scan *logScan, logs []*dataFile) error {
	if !scan.broken {
		return nil
	}
	at := scan.tail
	if p := scan.middle; p != nil {
		if !s.o.cutMiddle || p.File == logs[0].name && p.Pos < headerSize {
			return corruptAt(p.File, p.Pos, p.Seq, "%s", p.What)
		}
		at = p
	}
	behind := false
	for _, d := range logs {
		if d.name == at.File {
			behind = true
			if at.Pos >= headerSize {
				if err := s.cutFile(d, at.Pos); err != nil {
					return err
				}
				continue
			}
		}
		if behind {
			if err := s.drop(d); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) cutFile(d *dataFile, pos int64) error {
	f, err := s.openOwn(s.files.path(d))
	if err != nil {
		return err
	}
	defer f.Close()
	return s.disk.truncate(f, pos)
}

// syncFiles makes log and packs durable before a database is made from them.
func (s *Store) syncFiles() error {
	for _, d := range append(s.files.logs(), s.files.packs()...) {
		f, err := os.OpenFile(s.files.path(d), os.O_RDWR, 0)
		if err != nil {
			return fmt.Errorf("open file of the journal: %w", err)
		}
		err = s.disk.fsync(f)
		f.Close()
		if err != nil {
			return err
		}
	}
	return errors.Join(s.disk.syncDir(s.path(logDir)), s.disk.syncDir(s.path(packDir)))
}

// oldestBase finds the base from which most of history can be made again, and
// settles the files on it: nil if history begins with record 1. A base whose
// log was removed is not one.
func (t *fileTable) oldestBase(id journalID) (*baseReader, error) {
	logs := t.logs()
	if len(logs) == 0 || logs[0].first == 1 {
		t.settle(0)
		return nil, nil
	}
	var first error
	for _, d := range t.bases {
		if !slices.ContainsFunc(logs, func(l *dataFile) bool { return l.first == d.first+1 }) {
			continue
		}
		r, err := openBase(t, d, id)
		if err == nil {
			t.settle(d.first)
			return r, nil
		}
		first = cmp.Or(first, err)
	}
	if first == nil {
		first = corruptAt(logDir, -1, 1, "the log begins with record %d, and there is no base for it", logs[0].first)
	}
	return nil, first
}

// noteFiles notes the packs' and keeps' lengths in the new database.
func (s *Store) noteFiles(b *builder) error {
	return b.db.Update(func(tx *bbolt.Tx) error {
		if err := s.noteKeeps(tx, b.m); err != nil {
			return err
		}
		t, err := tableOf(tx, b.m, bucketPacks)
		if err != nil {
			return err
		}
		for _, d := range s.files.packs() {
			size, err := s.files.size(d)
			if err != nil {
				return fmt.Errorf("look at pack: %w", err)
			}
			if size == 0 {
				continue // its birth was cut short; who opens the journal drops it
			}
			if err := putPack(t, d.num, size); err != nil {
				return err
			}
		}
		return writeMeta(tx, b.m)
	})
}

func (s *Store) noteKeeps(tx *bbolt.Tx, m *dbMeta) error {
	t, err := tableOf(tx, m, bucketKeeps)
	if err != nil {
		return err
	}
	for _, d := range s.files.kept() {
		size, err := s.files.size(d)
		if err != nil {
			return fmt.Errorf("look at keep: %w", err)
		}
		v := binary.AppendUvarint(nil, uint64(d.first))
		if err := t.put(beKey(uint64(d.num)), binary.AppendUvarint(v, uint64(size))); err != nil {
			return err
		}
	}
	return nil
}

// replaceDB puts the new database in the place of the old one.
func (s *Store) replaceDB() error {
	err := s.disk.rename(s.path(dbName), s.path(dbOld))
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	return s.disk.rename(s.path(dbName+".new"), s.path(dbName))
}
