package journal

import (
	"fmt"
	"os"
)

// Sync makes everything that was appended before the call durable against the
// loss of power: data first, then the log. Concurrent calls share the work.
// After a failure every later call fails too, since the kernel may have
// dropped what it could not write.
func (s *Store) Sync() error {
	if s.o.ReadOnly {
		return nil
	}
	target := s.Head()
	s.syncMu.Lock()
	defer s.syncMu.Unlock()
	if s.syncErr != nil {
		return s.syncErr
	}
	if Seq(s.synced.Load()) >= target {
		return nil // another caller's sync began after our records
	}
	if err := s.syncAll(); err != nil {
		s.syncErr = fmt.Errorf("sync journal: %w", err)
		s.log.Error("journal can't be made durable", "error", err)
		return s.syncErr
	}
	return nil
}

// syncAll syncs packs and log. The caller holds syncMu.
func (s *Store) syncAll() error {
	head, segs, fresh, err := s.unsynced()
	if err != nil {
		return err
	}
	if err := s.packs.sync(); err != nil {
		return err
	}
	for _, f := range segs {
		if err := s.disk.fsync(f); err != nil {
			return err
		}
	}
	if fresh {
		if err := s.disk.syncDir(s.path(logDir)); err != nil {
			return err
		}
	}
	s.synced.Store(uint64(head))
	s.dropRotated(len(segs) - 1)
	return nil
}

// unsynced returns the head and the log segments that hold records up to it
// which may not be durable, the current one last.
func (s *Store) unsynced() (head Seq, segs []*os.File, fresh bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, nil, false, ErrClosed
	}
	segs = append(segs, s.rotated...)
	segs = append(segs, s.seg)
	fresh, s.logFresh = s.logFresh, false
	return s.head, segs, fresh, nil
}

// dropRotated closes the first n full segments, which are durable.
func (s *Store) dropRotated(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.rotated[:n] {
		f.Close()
	}
	s.rotated = append(s.rotated[:0], s.rotated[n:]...)
}
