package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// Buckets of the database, in the order of their sums in the meta value.
const (
	bucketNodes = iota
	bucketEntries
	bucketContent
	bucketGone
	bucketGoneContent
	bucketExecs
	bucketPoints
	bucketLogs
	bucketPacks
	bucketKeeps
	bucketByExec
	bucketByNode
	bucketMarks
	bucketByOp
	bucketCount
)

var bucketNames = [bucketCount]string{"nodes", "entries", "content", "gone", "gone_content", "execs", "checkpoints", "logs", "packs", "keeps", "by_exec", "by_node", "marks", "by_op"}

const (
	bucketMeta = "meta"
	keyFormat  = "format"
	keyState   = "state"
)

// dbTimeout bounds the wait for bbolt's own lock, which our lock makes idle.
const dbTimeout = time.Second

// bucketSum is how many pairs a bucket has and the sum of their checksums.
// A pair that bbolt doesn't find, because a page is damaged, shows in it.
type bucketSum struct {
	count uint64
	sum   uint64
}

// dbMeta is the value that says what the database holds.
type dbMeta struct {
	id       journalID
	seq      Seq      // the state is that at this record
	hash     [32]byte // of that record
	end      Loc      // behind that record's frame
	nextNode NodeID
	nextExec ExecID
	base     Seq    // history begins behind this record, 0 = with record 1
	boot     string // the boot in which the log was last appended to
	sums     [bucketCount]bucketSum
}

func (m *dbMeta) encode() []byte {
	b := append([]byte(nil), m.id[:]...)
	b = binary.AppendUvarint(b, uint64(m.seq))
	b = append(b, m.hash[:]...)
	b = appendLoc(b, m.end)
	b = binary.AppendUvarint(b, uint64(m.nextNode))
	b = binary.AppendUvarint(b, uint64(m.nextExec))
	b = binary.AppendUvarint(b, uint64(m.base))
	b = appendString(b, m.boot)
	for _, s := range m.sums {
		b = binary.AppendUvarint(b, s.count)
		b = binary.LittleEndian.AppendUint64(b, s.sum)
	}
	return b
}

func decodeMeta(b []byte) (*dbMeta, error) {
	w, m := &wire{b: b}, &dbMeta{}
	copy(m.id[:], w.bytes(16))
	m.seq = Seq(w.uvarint())
	copy(m.hash[:], w.bytes(32))
	m.end = w.loc()
	m.nextNode = NodeID(w.uvarint())
	m.nextExec = ExecID(w.uvarint())
	m.base = Seq(w.uvarint())
	m.boot = w.str()
	for i := range m.sums {
		m.sums[i] = bucketSum{count: w.uvarint(), sum: w.u64()}
	}
	return m, w.end()
}

// pairCRC is the checksum at the end of each value. It covers bucket and key,
// so that a value is good at its own place only.
func pairCRC(bucket string, key, payload []byte) uint32 {
	c := crc32.Update(0, castagnoli, []byte(bucket))
	c = crc32.Update(c, castagnoli, key)
	return crc32.Update(c, castagnoli, payload)
}

// unseal returns a value without its checksum.
func unseal(bucket string, key, value []byte) ([]byte, error) {
	n := len(value) - 4
	if n < 0 {
		return nil, corruptDB("bucket %s: value of key %x is cut short", bucket, key)
	}
	if binary.LittleEndian.Uint32(value[n:]) != pairCRC(bucket, key, value[:n]) {
		return nil, corruptDB("bucket %s: value of key %x does not match its checksum", bucket, key)
	}
	return value[:n], nil
}

func seal(bucket string, key, payload []byte) []byte {
	v := make([]byte, 0, len(payload)+4)
	v = append(v, payload...)
	return binary.LittleEndian.AppendUint32(v, pairCRC(bucket, key, payload))
}

// readMeta reads the format and the meta value.
func readMeta(tx *bbolt.Tx) (*dbMeta, error) {
	b := tx.Bucket([]byte(bucketMeta))
	if b == nil {
		return nil, corruptDB("bucket %s is missing", bucketMeta)
	}
	if err := checkFormat(b.Get([]byte(keyFormat))); err != nil {
		return nil, err
	}
	v, err := unseal(bucketMeta, []byte(keyState), b.Get([]byte(keyState)))
	if err != nil {
		return nil, err
	}
	m, err := decodeMeta(v)
	if err != nil {
		return nil, corruptDB("state value: %v", err)
	}
	return m, nil
}

func checkFormat(v []byte) error {
	p, err := unseal(bucketMeta, []byte(keyFormat), v)
	if err != nil {
		return err
	}
	if len(p) != 4 {
		return corruptDB("format number has %d bytes", len(p))
	}
	switch f := binary.LittleEndian.Uint32(p); {
	case f > FormatVersion:
		return fmt.Errorf("open journal: %w: format %d, this winkfs knows %d", ErrNewerFormat, f, FormatVersion)
	case f != FormatVersion:
		return fmt.Errorf("open journal: %w: format %d, this winkfs knows %d", ErrOlderFormat, f, FormatVersion)
	}
	return nil
}

func writeMeta(tx *bbolt.Tx, m *dbMeta) error {
	b := tx.Bucket([]byte(bucketMeta))
	return b.Put([]byte(keyState), seal(bucketMeta, []byte(keyState), m.encode()))
}

// createDB makes a database with empty buckets at path, durable on return but
// for its name.
func createDB(path string, m *dbMeta) error {
	db, err := openBolt(path, false)
	if err != nil {
		return err
	}
	err = initDB(db, m)
	if err := errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	return nil
}

// initDB makes the buckets of an empty journal.
func initDB(db *bbolt.DB, m *dbMeta) error {
	return db.Update(func(tx *bbolt.Tx) error {
		for _, name := range bucketNames {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		b, err := tx.CreateBucket([]byte(bucketMeta))
		if err != nil {
			return err
		}
		version := binary.LittleEndian.AppendUint32(nil, FormatVersion)
		if err := b.Put([]byte(keyFormat), seal(bucketMeta, []byte(keyFormat), version)); err != nil {
			return err
		}
		return writeMeta(tx, m)
	})
}

func openBolt(path string, readOnly bool) (*bbolt.DB, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:      dbTimeout,
		ReadOnly:     readOnly,
		FreelistType: bbolt.FreelistMapType,
	})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, fmt.Errorf("open database: %w", ErrLocked)
	}
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return db, nil
}

// openDB checks the pages of the database and opens it.
func openDB(path string, readOnly bool) (db *bbolt.DB, err error) {
	defer guardDB(&err)()
	if err := checkPagesOf(path); err != nil {
		return nil, err
	}
	return openBolt(path, readOnly)
}

// guardDB turns the panics and memory faults of bbolt over a damaged file into
// errors. Use as `defer guardDB(&err)()`.
func guardDB(err *error) func() {
	old := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(old)
		if r := recover(); r != nil {
			*err = corruptDB("reading it failed: %v", r)
		}
	}
}

// dbSize returns the size of the database file.
func dbSize(path string) int64 {
	fi, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return fi.Size()
}
