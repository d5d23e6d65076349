package journal

import (
	"crypto/rand"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
)

// create makes the files of an empty journal.
func (s *Store) create() error {
	if err := s.takeLock(); err != nil {
		return err
	}
	if err := s.clearBirth(); err != nil {
		return err
	}
	for _, d := range []string{logDir, packDir} {
		if err := os.MkdirAll(s.path(d), 0o700); err != nil {
			return err
		}
	}
	if _, err := rand.Read(s.id[:]); err != nil {
		return err
	}
	h := &fileHeader{magic: magicLog, file: 1, first: 1, id: s.id}
	f, err := s.disk.create(s.path(logName(1, 1)), h.encode())
	if err != nil {
		return err
	}
	defer f.Close()
	if err := s.disk.fsync(f); err != nil {
		return err
	}
	if err := s.disk.syncDir(s.path(logDir)); err != nil {
		return err
	}
	return s.birthDB()
}

// clearBirth removes what a Create that did not end has left. It refuses to
// touch anything that could be history.
func (s *Store) clearBirth() error {
	if _, err := os.Lstat(s.path(dbName)); err == nil {
		return fmt.Errorf("%s: %w", s.path(dbName), iofs.ErrExist)
	}
	for _, dir := range []string{logDir, packDir} {
		names, err := s.list(dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			path := s.path(name)
			if fi, err := os.Lstat(path); err != nil || fi.Size() > headerSize {
				return fmt.Errorf("%s: %w without %s; %s", path, iofs.ErrExist, dbName, wayRepair)
			}
			if err := s.disk.remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// list returns the files in a directory of the journal, by names relative to
// the state directory. A directory that is not there has none.
func (s *Store) list(dir string) ([]string, error) {
	entries, err := os.ReadDir(s.path(dir))
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, filepath.Join(dir, e.Name()))
	}
	return names, nil
}

// birthDB makes the database under another name and renames it.
func (s *Store) birthDB() error {
	tmp := s.path(dbName + ".new")
	if err := os.Remove(tmp); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	st := NewState()
	m := &dbMeta{id: s.id, end: Loc{File: 1, Pos: headerSize}, nextNode: st.NextNode, nextExec: st.NextExec, boot: s.o.boot}
	s.disk.before(KindBoltCommit, 0)
	if err := createDB(tmp, m); err != nil {
		return err
	}
	return s.disk.rename(tmp, s.path(dbName))
}
