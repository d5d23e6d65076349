package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

// runCommitter moves records into the database in the background until the
// store closes. It also makes the log durable, since sync(2) never reaches a
// FUSE daemon. After a failure it leaves the disk alone until the next tick.
func (s *Store) runCommitter() {
	defer s.done.Done()
	t := time.NewTicker(commitEvery)
	defer t.Stop()
	kick := s.kick
	for {
		work := s.Commit
		select {
		case <-s.stop:
			return
		case <-t.C:
		case <-kick:
			work = s.flush
		}
		kick = s.kick
		if err := work(); err != nil && !errors.Is(err, ErrClosed) {
			s.log.Warn("journal keeps its newest records in the log only", "error", err)
			kick = nil
		}
	}
}

// flush makes the log durable, and commits once there is much to commit.
func (s *Store) flush() error {
	s.mu.Lock()
	much := s.pend.bytes >= commitBytes
	s.mu.Unlock()
	if much {
		return s.Commit()
	}
	return s.Sync()
}

// Commit moves everything appended so far into the database. If it fails, the
// records stay in the log and a later Commit takes them.
func (s *Store) Commit() error {
	if s.o.ReadOnly {
		return nil
	}
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	return s.commitLocked()
}

// commitLocked commits if there is anything to. The caller holds commitMu.
func (s *Store) commitLocked() error {
	b, err := s.takeBatch()
	if err != nil {
		return err
	}
	if b.empty() && s.meta.boot == s.o.boot {
		s.endBatch(nil)
		return nil
	}
	m, err := s.writeBatch(b)
	if err != nil {
		s.endBatch(b)
		return fmt.Errorf("commit to database: %w", err)
	}
	s.meta = m
	s.endBatch(nil)
	return nil
}

func (s *Store) takeBatch() (*batch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	s.committing, s.pend = s.pend, newBatch()
	return s.committing, nil
}

// endBatch ends a commit. What failed is put back in front of what came since.
func (s *Store) endBatch(failed *batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if failed != nil {
		failed.join(s.pend)
		s.pend = failed
	}
	s.committing = nil
	s.commits++
}

// writeBatch writes the batch in one transaction, after the log and the data
// that it comes from are durable: the database is never ahead of the log.
func (s *Store) writeBatch(b *batch) (_ *dbMeta, err error) {
	if err := s.Sync(); err != nil {
		return nil, err
	}
	if ft := s.disk.before(KindBoltCommit, 0); ft != nil {
		if err := ft.play(); err != nil {
			return nil, err
		}
	}
	defer guardDB(&err)()
	m := *s.meta
	m.boot = s.o.boot
	err = s.db.Update(func(tx *bbolt.Tx) error {
		if err := s.writePacks(tx, &m); err != nil {
			return err
		}
		w := batchWriter{tx: tx, m: &m, b: b}
		return w.write()
	})
	if err != nil {
		return nil, err
	}
	return &m, nil
}

// writePacks notes how long the packs are at least, so that a missing or cut
// one is noticed when the journal is opened.
func (s *Store) writePacks(tx *bbolt.Tx, m *dbMeta) error {
	t, err := tableOf(tx, m, bucketPacks)
	if err != nil {
		return err
	}
	sizes := s.packs.durableSizes()
	for _, num := range slices.Sorted(maps.Keys(sizes)) {
		if err := putPack(t, num, sizes[num]); err != nil {
			return err
		}
	}
	return nil
}

func putPack(t *table, num uint32, size int64) error {
	return t.put(beKey(uint64(num)), binary.AppendUvarint(nil, uint64(size)))
}
