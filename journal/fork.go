package journal

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/bbolt"
)

// ForkPoint is where a fork leaves its journal.
type ForkPoint struct {
	Seq      Seq    // the last record that both have
	NextNode NodeID // nodes made by either side later have this number or a higher one
	// FirstFile is the number of the fork's first own file: data in files below
	// it are stored in both journals under the same place.
	FirstFile uint32
}

// forkTries is how often a fork begins afresh because the database or the set
// of files went on while it looked.
const forkTries = 10

var errForkMoved = errors.New("the journal changed meanwhile")

// Fork makes in dir an independent journal that has this one's history up to
// the head and goes on with the record that plan returns. The record continues
// the hash chain; plan may read the store and is called once. Nothing is
// copied but the database: segments and packs are sealed, so that neither side
// ever writes to them again, and get a second name (FORMAT.md, "Forks"). Where
// the file system can't do that they are copied.
//
// The store may be in use. On return the fork is durable; the database comes
// last, so that a fork is whole or no journal. dir may exist and hold other
// files, but no journal.
func (s *Store) Fork(dir string, plan func(ForkPoint) (*Record, error)) (ForkPoint, error) {
	f := &fork{s: s, dir: dir}
	if err := f.run(plan); err != nil {
		return ForkPoint{}, fmt.Errorf("fork journal: %w", err)
	}
	return f.point, nil
}

// fork is one Fork on its way.
type fork struct {
	s     *Store
	dir   string
	point ForkPoint
	hash  [32]byte    // of the record at the point
	files []*dataFile // sealed ones
}

func (f *fork) run(plan func(ForkPoint) (*Record, error)) error {
	if err := f.makeDirs(); err != nil {
		return err
	}
	err := errForkMoved
	for range forkTries {
		if err = f.history(); !errors.Is(err, errForkMoved) {
			break
		}
	}
	if err != nil {
		return err
	}
	r, err := plan(f.point)
	if err != nil {
		return err
	}
	if err := f.begin(r); err != nil {
		return err
	}
	for _, d := range []string{packDir, ""} {
		if err := f.s.disk.syncDir(filepath.Join(f.dir, d)); err != nil {
			return err
		}
	}
	return f.s.disk.rename(f.path(dbName+".new"), f.path(dbName))
}

func (f *fork) path(name string) string { return filepath.Join(f.dir, name) }

func (f *fork) makeDirs() error {
	if err := f.s.writable(); err != nil {
		return err
	}
	for _, d := range []string{logDir, packDir} {
		if err := os.MkdirAll(f.path(d), 0o700); err != nil {
			return err
		}
		names, err := os.ReadDir(f.path(d))
		if err == nil && len(names) > 0 {
			err = fmt.Errorf("%s: %w", filepath.Join(f.path(d), names[0].Name()), iofs.ErrExist)
		}
		if err != nil {
			return err
		}
	}
	if _, err := os.Lstat(f.path(dbName)); err == nil {
		return fmt.Errorf("%s: %w", f.path(dbName), iofs.ErrExist)
	}
	return nil
}

// history seals what there is and puts it into the fork.
func (f *fork) history() (err error) {
	defer guardDB(&err)()
	// No collection replaces database and files until both are shared.
	f.s.dbMu.RLock()
	defer f.s.dbMu.RUnlock()
	begun := f.s.ended()
	tx, err := f.s.db.Begin(false)
	if err != nil {
		return fmt.Errorf("read database: %w", err)
	}
	// The transaction ends before anything else is read: one that waits for
	// bbolt's map to grow would wait for it, and a second one for that.
	err = f.seal(tx, begun)
	if err == nil {
		err = f.s.Sync()
	}
	if err == nil {
		err = f.copyDB(tx)
	}
	if rerr := tx.Rollback(); err == nil {
		err = rerr
	}
	if err != nil {
		return err
	}
	return f.link()
}

// ended returns how many commits have ended.
func (s *Store) ended() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commits
}

// seal ends the current log segment and pack and notes the point. It fails
// with errForkMoved if a commit ended since the transaction began: what the
// batches then lack, the transaction doesn't show.
func (f *fork) seal(tx *bbolt.Tx, begun uint64) error {
	m, err := readMeta(tx)
	if err != nil {
		return err
	}
	s := f.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.readyLocked(); err != nil {
		return err
	}
	if s.commits != begun {
		return errForkMoved
	}
	if s.end > headerSize {
		if err := s.rotateLocked(); err != nil {
			return err
		}
	}
	s.packs.seal()
	f.point, f.hash, f.files = ForkPoint{Seq: s.head, NextNode: m.nextNode}, s.hash, nil
	for _, b := range []*batch{s.committing, s.pend} {
		if b != nil {
			f.point.NextNode = max(f.point.NextNode, b.nextNode)
		}
	}
	f.point.FirstFile = 1
	if s.head == 0 {
		return nil
	}
	f.files = append(f.files, s.files.baseFiles()...)
	for _, d := range slices.Concat(s.files.logs(), s.files.packs(), s.files.kept()) {
		if d.num == s.segNum {
			continue // no record is in it yet
		}
		f.files = append(f.files, d)
		f.point.FirstFile = max(f.point.FirstFile, d.num+1)
	}
	return nil
}

// seal ends the current pack, so that the next Put begins another. A write
// under way ends in it still; no record names its bytes yet.
func (p *packWriter) seal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cur != nil {
		p.full = append(p.full, p.cur)
		p.cur = nil
	}
}

// copyDB copies the database as the transaction sees it. Of a journal without
// a record a new one is made, since the segment in which it ends is not shared.
func (f *fork) copyDB(tx *bbolt.Tx) error {
	path := f.path(dbName + ".new")
	if f.point.Seq == 0 {
		f.s.disk.before(KindBoltCommit, 0)
		m := &dbMeta{id: f.s.id, end: Loc{File: f.point.FirstFile, Pos: headerSize}, nextNode: f.point.NextNode, nextExec: 1, boot: f.s.o.boot}
		if err := os.Remove(path); err != nil && !errors.Is(err, iofs.ErrNotExist) {
			return err
		}
		return createDB(path, m)
	}
	if ft := f.s.disk.before(KindCreate, 0); ft != nil {
		if err := ft.play(); err != nil {
			return err
		}
	}
	db, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := tx.WriteTo(db); err != nil {
		return fmt.Errorf("copy database: %w", err)
	}
	return f.s.disk.fsync(db)
}

// link gives the sealed files their names in the fork. One that is gone was
// trimmed away meanwhile: the database then says so, too.
func (f *fork) link() error {
	for _, d := range f.files {
		err := f.s.disk.link(f.s.files.path(d), f.path(d.name))
		if errors.Is(err, iofs.ErrNotExist) {
			return f.unlink()
		}
		if err != nil && !errors.Is(err, iofs.ErrExist) {
			return err
		}
	}
	return nil
}

// unlink takes the names away again, so that all can begin afresh.
func (f *fork) unlink() error {
	for _, d := range f.files {
		if err := os.Remove(f.path(d.name)); err != nil && !errors.Is(err, iofs.ErrNotExist) {
			return err
		}
	}
	return errForkMoved
}

// begin writes the fork's first own segment with its first own record.
func (f *fork) begin(r *Record) error {
	if _, err := checkRecord(r, nil); err != nil {
		return err
	}
	s := f.s
	r.Seq, r.Time, r.Prev = f.point.Seq+1, Timespec(s.o.Clock().UnixNano()), f.hash
	num := f.point.FirstFile
	h := &fileHeader{magic: magicLog, file: num, first: r.Seq, id: s.id, prev: f.hash}
	seg, err := s.disk.create(f.path(logName(r.Seq, num)), h.encode())
	if err != nil {
		return err
	}
	defer seg.Close()
	b, rec := appendFrame(nil, &s.id, r, nil, f.point.Seq)
	if len(rec) > MaxRecord {
		return invalid("record has %d bytes", len(rec))
	}
	if err := s.disk.write(KindLogWrite, seg, b, headerSize); err != nil {
		return err
	}
	if err := s.disk.fsync(seg); err != nil {
		return err
	}
	return s.disk.syncDir(f.path(logDir))
}
