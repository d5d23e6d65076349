package journal

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"go.etcd.io/bbolt"
)

// A base holds the state at the record that history begins behind, once gc has
// trimmed what came before: from the base and the log's records the database
// can be made anew.

// magicBase begins a base.
const magicBase = "WINKBASE"

// baseBuckets are the buckets that a base holds the pairs of.
var baseBuckets = []int{bucketNodes, bucketEntries, bucketContent, bucketGone, bucketGoneContent, bucketExecs, bucketPoints}

// base is what stands in front of a base's pairs.
type base struct {
	at       Seq      // the state is that at this record
	hash     [32]byte // of that record
	nextNode NodeID
	nextExec ExecID
	first    []byte // record 1 as it was encoded: it may say where the sources show
}

// writeTo writes the base with the pairs of the database.
func (b *base) writeTo(w io.Writer, id journalID, tx *bbolt.Tx) error {
	sum := sha256.New()
	out := io.MultiWriter(w, sum)
	h := (&fileHeader{magic: magicBase, first: b.at, id: id, prev: b.hash}).encode()
	h = binary.AppendUvarint(h, uint64(b.nextNode))
	h = binary.AppendUvarint(h, uint64(b.nextExec))
	h = binary.AppendUvarint(h, uint64(len(b.first)))
	h = append(h, b.first...)
	if _, err := out.Write(h); err != nil {
		return err
	}
	for _, i := range baseBuckets {
		t, err := tableOf(tx, &dbMeta{}, i)
		if err != nil {
			return err
		}
		if err := writePairs(out, byte(i+1), t); err != nil {
			return err
		}
	}
	if _, err := out.Write([]byte{0}); err != nil {
		return err
	}
	_, err := w.Write(sum.Sum(nil))
	return err
}

func writePairs(w io.Writer, bucket byte, t *table) error {
	var b []byte
	c := t.b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		p, err := unseal(t.name, k, v)
		if err != nil {
			return err
		}
		b = append(b[:0], bucket)
		b = appendString(b, string(k))
		b = appendString(b, string(p))
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// baseReader reads a base.
type baseReader struct {
	base
	d *dataFile
	f *os.File
	r *bufio.Reader
}

var errBase = errors.New("the base is damaged")

// openBase opens a base and reads what stands in front of its pairs.
func openBase(files *fileTable, d *dataFile, id journalID) (*baseReader, error) {
	f, err := os.Open(files.path(d))
	if err != nil {
		return nil, fmt.Errorf("open base: %w", err)
	}
	r := &baseReader{d: d, f: f}
	if err := r.begin(id); err != nil {
		f.Close()
		return nil, r.place(err)
	}
	return r, nil
}

func (r *baseReader) begin(id journalID) error {
	h, err := readHeader(r.f, r.d, magicBase, id)
	if err != nil {
		return err
	}
	r.at, r.hash = h.first, h.prev
	r.r = bufio.NewReaderSize(io.NewSectionReader(r.f, 0, maxOffset>>1), 64<<10)
	if _, err := r.r.Discard(headerSize); err != nil {
		return err
	}
	next, err := binary.ReadUvarint(r.r)
	if err != nil {
		return err
	}
	exec, err := binary.ReadUvarint(r.r)
	if err != nil {
		return err
	}
	r.nextNode, r.nextExec = NodeID(next), ExecID(exec)
	r.first, err = r.bytes(MaxRecord)
	return err
}

// bytes reads a length and so many bytes.
func (r *baseReader) bytes(limit uint64) ([]byte, error) {
	n, err := binary.ReadUvarint(r.r)
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, fmt.Errorf("%w: impossible length %d", errBase, n)
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r.r, int64(n)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// each compares the checksum over the whole file and then calls fn for all
// pairs: nothing damaged gets as far as the database.
func (r *baseReader) each(fn func(bucket int, key, payload []byte) error) error {
	if err := r.checkSum(); err != nil {
		return r.place(err)
	}
	for {
		bucket, err := r.r.ReadByte()
		if err != nil {
			return r.place(err)
		}
		if bucket == 0 {
			return r.place(r.end())
		}
		key, payload, err := r.pair(int(bucket) - 1)
		if err != nil {
			return r.place(err)
		}
		if err := fn(int(bucket)-1, key, payload); err != nil {
			return err
		}
	}
}

// pair reads a pair of the bucket. What bbolt would refuse is damage.
func (r *baseReader) pair(bucket int) (key, payload []byte, err error) {
	if !slices.Contains(baseBuckets, bucket) {
		return nil, nil, fmt.Errorf("%w: unknown bucket", errBase)
	}
	if key, err = r.bytes(bbolt.MaxKeySize); err != nil {
		return nil, nil, err
	}
	if len(key) == 0 {
		return nil, nil, fmt.Errorf("%w: a key in bucket %s is empty", errBase, bucketNames[bucket])
	}
	payload, err = r.bytes(MaxRecord)
	return key, payload, err
}

// checkSum compares the checksum at the end of the file.
func (r *baseReader) checkSum() error {
	fi, err := r.f.Stat()
	if err != nil {
		return err
	}
	at := fi.Size() - sha256.Size
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(r.f, 0, at)); err != nil {
		return err
	}
	var want [sha256.Size]byte
	if _, err := r.f.ReadAt(want[:], at); err != nil {
		return err
	}
	if !bytes.Equal(sum.Sum(nil), want[:]) {
		return fmt.Errorf("%w: checksum does not match", errBase)
	}
	return nil
}

// end looks for bytes between the last pair and the checksum.
func (r *baseReader) end() error {
	rest, err := io.Copy(io.Discard, r.r)
	if err != nil {
		return err
	}
	if rest != sha256.Size {
		return fmt.Errorf("%w: %d bytes follow its end", errBase, rest)
	}
	return nil
}

// place gives damage its place; that a later version wrote the file is none.
func (r *baseReader) place(err error) error {
	if err == nil || otherFormat(err) {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: it is cut short", errBase)
	}
	return corruptAt(r.d.name, -1, r.d.first, "%v", err)
}

func (r *baseReader) close() { r.f.Close() }

// originRecord returns record 1 of a journal whose base keeps it.
func (b *base) originRecord() (*Record, error) {
	if len(b.first) == 0 {
		return nil, nil
	}
	return decodeRecord(b.first)
}
