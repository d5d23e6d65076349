package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
)

// The database's sum is a checksum over the whole file, pages that hold
// nothing included, made when the journal is closed and removed when it is
// opened for writing. It is Verify's only: what Open needs carries checksums of
// its own.

const (
	dbSumName = dbName + ".sum"
	magicSum  = "WINKSUM\n"
	dbSumSize = 36
)

// dbSum says what a database file was when it was closed.
type dbSum struct {
	txid uint64 // of its newest transaction
	size uint64
	crc  uint32
}

func (d *dbSum) encode() []byte {
	b := append([]byte(nil), magicSum...)
	b = binary.LittleEndian.AppendUint32(b, FormatVersion)
	b = binary.LittleEndian.AppendUint64(b, d.txid)
	b = binary.LittleEndian.AppendUint64(b, d.size)
	b = binary.LittleEndian.AppendUint32(b, d.crc)
	return binary.LittleEndian.AppendUint32(b, crcOf(b))
}

func decodeSum(b []byte) (*dbSum, error) {
	le := binary.LittleEndian
	if len(b) != dbSumSize || string(b[:8]) != magicSum || crcOf(b[:dbSumSize-4]) != le.Uint32(b[dbSumSize-4:]) {
		return nil, errors.New("the file is damaged")
	}
	if v := le.Uint32(b[8:]); v != FormatVersion {
		return nil, fmt.Errorf("the file is of format %d", v)
	}
	return &dbSum{txid: le.Uint64(b[12:]), size: le.Uint64(b[20:]), crc: le.Uint32(b[28:])}, nil
}

// sumOf sums a database.
func sumOf(db []byte) (*dbSum, error) {
	c := &pageChecker{b: db, one: true}
	m := c.meta()
	if m == nil {
		return nil, corruptDB("both meta pages are damaged")
	}
	return &dbSum{txid: m.txid, size: uint64(len(db)), crc: crcOf(db)}, nil
}

// writeSum sums the closed database. It is a help to Verify, so that failure
// only leaves it out.
func (s *Store) writeSum() {
	err := s.sumDB()
	if err != nil {
		s.log.Warn("database is closed without a checksum over the file", "error", err)
	}
}

func (s *Store) sumDB() error {
	f, err := os.Open(s.path(dbName))
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return fmt.Errorf("look at database: %w", err)
	}
	head := make([]byte, min(fi.Size(), 64<<10))
	if _, err := io.ReadFull(f, head); err != nil {
		return fmt.Errorf("read database: %w", err)
	}
	sum, err := sumOf(head)
	if err != nil {
		return err
	}
	sum.size, sum.crc = uint64(fi.Size()), 0
	w := crcWriter{&sum.crc}
	if _, err := io.CopyBuffer(w, io.NewSectionReader(f, 0, fi.Size()), make([]byte, 1<<20)); err != nil {
		return fmt.Errorf("read database: %w", err)
	}
	return s.disk.replace(s.path(dbSumName), func(w io.Writer) error {
		_, err := w.Write(sum.encode())
		return err
	})
}

// dropSum removes the sum of a database that is about to change.
func (s *Store) dropSum() error {
	err := os.Remove(s.path(dbSumName))
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	return err
}

// checkSum compares a database with its sum, if it has one that was made of the
// same transaction.
func checkSum(path string, db []byte) *Problem {
	b, err := os.ReadFile(path)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	var sum *dbSum
	if err == nil {
		sum, err = decodeSum(b)
	}
	if err != nil {
		return &Problem{File: dbSumName, Pos: -1, What: err.Error()}
	}
	now, err := sumOf(db)
	if err != nil || now.txid != sum.txid {
		return nil // damage that is reported elsewhere, or a database that went on
	}
	if *now != *sum {
		return &Problem{File: dbName, Pos: -1, What: "the file is not as it was closed; if nothing else is reported of it, only bytes that hold nothing differ"}
	}
	return nil
}
