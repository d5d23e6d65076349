package journal

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"math/bits"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// baseOf returns the base of a collected journal.
func baseOf(t *testing.T, dir string) (name string, b []byte) {
	t.Helper()
	m, _ := filepath.Glob(filepath.Join(dir, logDir, "*"+baseSuffix))
	if len(m) != 1 {
		t.Fatalf("bases: %v", m)
	}
	return filepath.Join(logDir, filepath.Base(m[0])), readFile(t, m[0])
}

// A flipped bit that makes any length in a base zero, a key's among them, is
// found as damage of the base.
func TestVerifyFindsEmptyKeys(t *testing.T) {
	dir, _ := collected(t)
	name, b := baseOf(t, dir)
	tried := 0
	for pos := headerSize; pos < len(b)-sha256.Size; pos++ {
		if b[pos] != 8 && (bits.OnesCount8(b[pos]) != 1 || pos%16 != 0) {
			continue
		}
		was := b[pos]
		b[pos] = 0
		writeFile(t, filepath.Join(dir, name), b)
		if r := mustVerify(t, dir); !names(r, name) {
			t.Errorf("a zero at %d is not found: %v", pos, r.Problems)
		}
		b[pos] = was
		tried++
	}
	if tried == 0 {
		t.Fatal("the base has no key of 8 bytes")
	}
}

// Pairs that the database can't hold are damage even where the checksum of the
// base is good.
func TestBaseRefusesPairs(t *testing.T) {
	for name, tc := range map[string]struct {
		pair []byte
		bad  bool
	}{
		"good pair":      {[]byte{bucketNodes + 1, 1, 'k', 1, 'v'}, false},
		"empty key":      {[]byte{bucketNodes + 1, 0, 1, 'v'}, true},
		"another bucket": {[]byte{bucketMarks + 1, 1, 'k', 1, 'v'}, true},
		"unknown bucket": {[]byte{bucketCount + 1, 1, 'k', 1, 'v'}, true},
		"cut short":      {[]byte{bucketNodes + 1, 200, 'k'}, true},
	} {
		t.Run(name, func(t *testing.T) {
			files := &fileTable{dir: t.TempDir()}
			d := &dataFile{kind: kindBase, first: 5, name: baseName(5)}
			id := journalID{1}
			if err := os.MkdirAll(filepath.Join(files.dir, logDir), 0o700); err != nil {
				t.Fatal(err)
			}
			writeFile(t, files.path(d), baseWith(t, id, d.first, tc.pair))
			r, err := openBase(files, d, id)
			if err != nil {
				t.Fatal(err)
			}
			defer r.close()
			f, err := memoryFile(nil)
			if err != nil {
				t.Fatal(err)
			}
			db, err := openBoltFile(f)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			_, err = newBuilder(db, id, &dataFile{num: 1}, r)
			var c *CorruptError
			if tc.bad != errors.As(err, &c) || !tc.bad && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

// baseWith makes a base that holds one pair and has a good checksum.
func baseWith(t *testing.T, id journalID, at Seq, pair []byte) []byte {
	t.Helper()
	f, err := memoryFile(nil)
	if err != nil {
		t.Fatal(err)
	}
	db, err := openBoltFile(f)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := initDB(db, &dbMeta{}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = db.View(func(tx *bbolt.Tx) error { return (&base{at: at}).writeTo(&out, id, tx) })
	if err != nil {
		t.Fatal(err)
	}
	b := append(out.Bytes()[:out.Len()-sha256.Size-1], pair...)
	b = append(b, 0)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}
