package journal

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"

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
	if err := s.buildDB(scan, logs); err != nil {
		return nil, err
	}
	if err := s.replaceDB(); err != nil {
		return nil, err
	}
	return &Report{Records: scan.records, FirstSeq: scan.first, LastSeq: scan.seq, DataBytes: scan.data, Problems: scan.problems}, nil
}

// buildDB reads the log into a database beside the old one.
func (s *Store) buildDB(scan *logScan, logs []*dataFile) error {
	tmp := s.path(dbName + ".new")
	if err := os.Remove(tmp); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	db, err := openBolt(tmp, false)
	if err != nil {
		return err
	}
	b, err := newBuilder(db, scan.id, logs[0])
	if err != nil {
		return err
	}
	defer db.Close()
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
	return s.notePacks(b)
}

// cutTail removes what lies behind the last whole record. Damage in front of
// whole records is refused.
func (s *Store) cutTail(scan *logScan, logs []*dataFile) error {
	if !scan.broken {
		return nil
	}
	if p := scan.middle; p != nil {
		return corruptAt(p.File, p.Pos, p.Seq, "%s", p.What)
	}
	behind := false
	for _, d := range logs {
		if d.name == scan.tail.File {
			behind = true
			if scan.tail.Pos >= headerSize {
				if err := s.cutFile(d, scan.tail.Pos); err != nil {
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

// notePacks notes the packs' lengths in the new database.
func (s *Store) notePacks(b *builder) error {
	return b.db.Update(func(tx *bbolt.Tx) error {
		t, err := tableOf(tx, b.m, bucketPacks)
		if err != nil {
			return err
		}
		for _, d := range s.files.packs() {
			size, err := s.files.size(d)
			if err != nil {
				return fmt.Errorf("look at pack: %w", err)
			}
			if err := putPack(t, d.num, size); err != nil {
				return err
			}
		}
		return writeMeta(tx, b.m)
	})
}

// replaceDB puts the new database in the place of the old one.
func (s *Store) replaceDB() error {
	err := s.disk.rename(s.path(dbName), s.path(dbOld))
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	return s.disk.rename(s.path(dbName+".new"), s.path(dbName))
}
