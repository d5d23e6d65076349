package journal

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"

	"go.etcd.io/bbolt"
)

// Create makes an empty journal in dir, which may exist and hold other files,
// and opens it. The database comes last and at once, so that a journal is
// either whole or not there; what a crash left of an earlier Create is
// completed. It returns an error matching iofs.ErrExist if there is a journal.
func Create(dir string, o Options) (*Store, error) {
	if o.ReadOnly {
		return nil, fmt.Errorf("create journal: %w", ErrReadOnly)
	}
	o = o.withDefaults()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
	}
	s := newStore(dir, o)
	if err := s.create(); err != nil {
		s.release()
		return nil, fmt.Errorf("create journal: %w", err)
	}
	if err := s.start(); err != nil {
		s.release()
		return nil, fmt.Errorf("create journal: %w", err)
	}
	return s, nil
}

// Open opens the journal in dir and brings it to the newest record that the
// log has whole. It refuses a journal in use (ErrLocked), one of a newer
// winkfs (ErrNewerFormat), one of before the first release (ErrOlderFormat) and a damaged one (*CorruptError).
func Open(dir string, o Options) (*Store, error) {
	o = o.withDefaults()
	s := newStore(dir, o)
	if err := s.open(); err != nil {
		s.release()
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return s, nil
}

func newStore(dir string, o Options) *Store {
	s := &Store{
		dir:  dir,
		o:    o,
		log:  o.Logger,
		disk: disk{onWrite: o.OnWrite, inject: o.Inject},
		stop: make(chan struct{}),
		kick: make(chan struct{}, 1),
		pend: newBatch(),
	}
	s.files.dir = dir
	s.packs.s = s
	return s
}

func (s *Store) closeDB() {
	s.dbMu.Lock()
	defer s.dbMu.Unlock()
	if s.db != nil {
		s.db.Close()
		s.db = nil
	}
}

func (s *Store) takeLock() (err error) {
	s.lock, err = lockDir(s.dir, s.o.ReadOnly, s.o.LockTimeout)
	if err == nil && !s.o.ReadOnly {
		signLock(s.lock)
	}
	return err
}

func (s *Store) open() error {
	if err := s.checkThere(); err != nil {
		return err
	}
	if err := s.takeLock(); err != nil {
		return err
	}
	return s.start()
}

// checkThere tells a directory without a journal from one that lost its
// database.
func (s *Store) checkThere() error {
	_, err := os.Stat(s.path(dbName))
	if !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	names, err := s.list(logDir)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return corruptDB("the file is missing")
	}
	return fmt.Errorf("%s: %w", s.dir, ErrNotJournal)
}

// start loads the locked journal and starts the committer.
func (s *Store) start() error {
	strangers, err := s.files.load()
	if err != nil {
		return err
	}
	for _, name := range strangers {
		s.log.Warn("file is not the journal's", "file", name)
	}
	if !s.o.ReadOnly {
		if err := s.dropSum(); err != nil {
			return err
		}
	}
	if s.db, err = openDB(s.path(dbName), s.o.ReadOnly); err != nil {
		return err
	}
	if err := s.recover(); err != nil {
		return err
	}
	if s.o.ReadOnly {
		return nil
	}
	if err := s.Commit(); err != nil {
		s.log.Warn("journal keeps its newest records in the log only", "error", err)
	}
	s.done.Add(1)
	go s.runCommitter()
	return nil
}

// view runs fn in a read transaction of the database.
func (s *Store) view(fn func(tx *bbolt.Tx) error) (err error) {
	defer guardDB(&err)()
	s.dbMu.RLock()
	defer s.dbMu.RUnlock()
	if s.db == nil {
		return ErrClosed
	}
	return s.db.View(fn)
}

// Close makes everything durable, moves it into the database and gives the
// journal free. The store is closed even if that fails; nothing appended is
// lost by it, since the log has it.
func (s *Store) Close() error {
	if err := s.closing(); err != nil {
		return err
	}
	s.gcMu.Lock() // a collection under way gives up
	defer s.gcMu.Unlock()
	err := s.Sync()
	if err == nil {
		err = s.Commit()
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.endDB(err == nil && !s.o.ReadOnly)
	s.release()
	if err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}

// endDB closes the database once the last commit has ended.
func (s *Store) endDB(sum bool) {
	s.done.Wait()
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	s.closeDB()
	if sum {
		s.writeSum()
	}
}

// closing stops the committer. Only the first Close gets past it.
func (s *Store) closing() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.stop:
		return ErrClosed
	default:
	}
	close(s.stop)
	return nil
}

// release closes all files. It takes the locks in order so that a sync or
// commit under way ends first.
func (s *Store) release() {
	s.done.Wait()
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	s.syncMu.Lock()
	defer s.syncMu.Unlock()
	s.closeDB()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, f := range append(s.rotated, s.seg, s.lock) {
		if f != nil {
			f.Close()
		}
	}
	s.seg, s.lock, s.rotated = nil, nil, nil
	s.packs.close()
	s.files.closeAll()
}
