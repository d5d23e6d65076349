package journal

import (
	"fmt"
	"os"

	"go.etcd.io/bbolt"
)

// recentBytes is how much of the log in front of the database's position Open
// reads and checks, so that damage near the head is noticed before anything is
// built on it. Older damage is Verify's to find.
const recentBytes = 1 << 20

// recover loads the state from the database and replays the log behind it.
func (s *Store) recover() error {
	var m *dbMeta
	var newest *recent
	err := s.view(func(tx *bbolt.Tx) (err error) {
		if m, err = readMeta(tx); err != nil {
			return err
		}
		if err = s.beginAt(m); err != nil {
			return err
		}
		if err = s.checkFiles(tx, m); err != nil {
			return err
		}
		newest, err = s.findRecent(tx, m)
		return err
	})
	if err != nil {
		return err
	}
	st, err := s.loadState(m)
	if err != nil {
		return err
	}
	s.meta, s.id = m, m.id
	if !s.o.unchecked {
		if err := s.checkRecent(newest); err != nil {
			return err
		}
	}
	r := &replay{s: s, st: st, seq: m.seq, hash: m.hash, sameBoot: m.boot != "" && m.boot == s.o.boot}
	if err := r.run(); err != nil {
		return err
	}
	s.state, s.head, s.hash = st, r.seq, r.hash
	s.synced.Store(uint64(m.seq))
	if s.o.ReadOnly {
		return nil
	}
	s.removeObsolete()
	return s.resume(r)
}

// resume opens the log and the packs for appending.
func (s *Store) resume(r *replay) error {
	f, err := os.OpenFile(s.files.path(r.last), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	s.seg, s.segNum, s.end = f, r.last.num, r.end
	// Older segments may hold records that are not durable yet.
	for _, d := range r.passed {
		f, err := os.OpenFile(s.files.path(d), os.O_RDWR, 0)
		if err != nil {
			return fmt.Errorf("open log: %w", err)
		}
		s.rotated = append(s.rotated, f)
	}
	s.logFresh = true
	packs := s.files.packs()
	if len(packs) == 0 {
		return nil
	}
	last := packs[len(packs)-1]
	_, err = packHeader(&s.files, last, s.id)
	if err == nil {
		return s.packs.resume(last)
	}
	if otherFormat(err) {
		return err
	}
	return s.mendPack(last, r.sameBoot, err)
}

// mendPack deals with a last pack without a good header. The death of the
// process may have cut its birth short: then nothing is in it. After a loss of
// power its first page may be lost, which says nothing that isn't known.
func (s *Store) mendPack(d *dataFile, sameBoot bool, cause error) error {
	size, err := s.files.size(d)
	if err != nil {
		return fmt.Errorf("look at pack: %w", err)
	}
	if size <= headerSize {
		return s.drop(d)
	}
	if sameBoot {
		return headerError(d, cause)
	}
	if err := s.packs.resume(d); err != nil {
		return err
	}
	if s.packs.cur == nil {
		return headerError(d, cause)
	}
	s.log.Warn("header of the last pack is written again", "file", d.name, "cause", cause)
	h := &fileHeader{magic: magicPack, file: d.num, id: s.id}
	s.packs.cur.dirty = true
	return s.disk.write(KindHeader, s.packs.cur.f, h.encode(), 0)
}

// packHeader reads and checks the header of a pack.
func packHeader(files *fileTable, d *dataFile, id journalID) (*fileHeader, error) {
	f, err := os.Open(files.path(d))
	if err != nil {
		return nil, fmt.Errorf("open file of the journal: %w", err)
	}
	defer f.Close()
	return readHeader(f, d, magicPack, id)
}

// readHeader reads the header of an open file and compares it with the name.
func readHeader(f *os.File, d *dataFile, magic string, id journalID) (*fileHeader, error) {
	var b [headerSize]byte
	n, _ := f.ReadAt(b[:], 0)
	h, err := decodeHeader(b[:n], magic)
	if err != nil {
		return nil, err
	}
	if h.file != d.num || h.first != d.first {
		return nil, fmt.Errorf("%w: it is the header of file %d, record %d", errHeader, h.file, h.first)
	}
	if h.id != id {
		return nil, fmt.Errorf("%w: the file belongs to another journal", errHeader)
	}
	return h, nil
}
