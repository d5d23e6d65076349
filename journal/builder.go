package journal

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// builder makes a database from the records of a log.
type builder struct {
	db *bbolt.DB
	m  *dbMeta
	b  *batch
}

// buildBytes is how much log a builder takes in one transaction.
const buildBytes = 8 << 20

// newBuilder begins with the database of an empty journal whose log begins
// with the segment first, or, if r is not nil, with what the base holds.
func newBuilder(db *bbolt.DB, id journalID, first *dataFile, r *baseReader) (*builder, error) {
	b, err := emptyBuilder(db, id, first)
	if err == nil && r != nil {
		err = b.load(r)
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return b, nil
}

func emptyBuilder(db *bbolt.DB, id journalID, first *dataFile) (*builder, error) {
	st := NewState()
	m := &dbMeta{id: id, end: Loc{File: first.num, Pos: headerSize}, nextNode: st.NextNode, nextExec: st.NextExec}
	if err := initDB(db, m); err != nil {
		return nil, err
	}
	return &builder{db: db, m: m, b: newBatch()}, nil
}

// loadStep is how many pairs of a base are written in one transaction.
const loadStep = 50_000

// load takes in a base.
func (b *builder) load(r *baseReader) error {
	b.m.seq, b.m.hash, b.m.base = r.at, r.hash, r.at
	b.m.nextNode, b.m.nextExec = r.nextNode, r.nextExec
	tx, err := b.db.Begin(true)
	if err != nil {
		return fmt.Errorf("build database: %w", err)
	}
	defer func() {
		if tx != nil {
			tx.Rollback()
		}
	}()
	n := 0
	err = r.each(func(bucket int, key, payload []byte) error {
		if n++; n%loadStep == 0 {
			if err := tx.Commit(); err != nil {
				return err
			}
			if tx, err = b.db.Begin(true); err != nil {
				return err
			}
		}
		t, err := tableOf(tx, b.m, bucket)
		if err != nil {
			return err
		}
		return t.put(key, payload)
	})
	if err != nil {
		return err
	}
	if err := writeMeta(tx, b.m); err != nil {
		return err
	}
	return tx.Commit()
}

func (b *builder) record(r *Record, hash [32]byte, loc Loc, end int64) error {
	b.b.add(r, hash, loc, end)
	if b.b.bytes >= buildBytes {
		return b.flush()
	}
	return nil
}

// seq returns the last record taken in.
func (b *builder) seq() Seq { return max(b.b.seq, b.m.seq) }

func (b *builder) flush() error {
	err := b.db.Update(func(tx *bbolt.Tx) error {
		w := batchWriter{tx: tx, m: b.m, b: b.b}
		return w.write()
	})
	if err != nil {
		return fmt.Errorf("build database: %w", err)
	}
	b.b = newBatch()
	return nil
}

// memoryFile makes a file that lies in memory only.
func memoryFile(content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("winkfs-verify", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "journal.db in memory")
	if _, err := f.Write(content); err != nil {
		f.Close()
		return nil, fmt.Errorf("fill file in memory: %w", err)
	}
	return f, nil
}

// openBoltFile opens a database that is an open file, which it takes over.
func openBoltFile(f *os.File) (*bbolt.DB, error) {
	db, err := bbolt.Open(f.Name(), 0o600, &bbolt.Options{
		Timeout:      dbTimeout,
		NoSync:       true,
		FreelistType: bbolt.FreelistMapType,
		OpenFile:     func(string, int, os.FileMode) (*os.File, error) { return f, nil },
	})
	if err != nil {
		return nil, fmt.Errorf("open copy of the database: %w", err)
	}
	return db, nil
}

// copyDB reads a database that its owner may be writing to. bbolt never writes
// to pages that the newest meta page leads to, so a copy is good if no commit
// ended while it was made.
func copyDB(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	defer f.Close()
	for range 20 {
		before, err := readMetas(f)
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(io.NewSectionReader(f, 0, maxOffset))
		if err != nil {
			return nil, fmt.Errorf("read database: %w", err)
		}
		after, err := readMetas(f)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(before, after) {
			return b, nil
		}
	}
	return nil, fmt.Errorf("read database: it changes all the time")
}

// readMetas returns the bytes of the two meta pages.
func readMetas(f *os.File) ([]byte, error) {
	b := make([]byte, 2*os.Getpagesize())
	n, err := f.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("read database: %w", err)
	}
	return b[:n], nil
}
