package journal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// collected returns a closed journal with every kind of file in it.
func collected(t *testing.T) (dir string, h *history) {
	t.Helper()
	dir, s, h := longJournal(t, Options{})
	for i := range 4 {
		rec := &Record{Op: OpUncheckpoint, Note: &Note{Checkpoint: fmt.Sprintf("c%d", i)}}
		if _, err := s.Append(rec, nil); err != nil {
			t.Fatal(err)
		}
		h.st.Apply(rec)
	}
	collect(t, s, GCOptions{Retention: Retention{Records: 60}})
	for range 60 {
		h.next(t)
	}
	mustClose(t, s)
	for _, pattern := range []string{"wal/*.base", "objects/*.keep", "objects/*.pack", "journal.db.sum"} {
		if m, _ := filepath.Glob(filepath.Join(dir, pattern)); len(m) == 0 {
			t.Fatalf("no %s", pattern)
		}
	}
	verifyClean(t, dir)
	return dir, h
}

// Any one flipped bit of any file is found, and named with its file.
//
//	JOURNAL_FLIPS  tries, 400; 0 = one in every byte
func TestVerifyFindsAnyFlip(t *testing.T) {
	dir, _ := collected(t)
	files := map[string][]byte{}
	for _, name := range filesOf(t, dir) {
		files[name] = readFile(t, filepath.Join(dir, name))
	}
	named := namedBytes(t, dir)
	flip := func(name string, pos int) {
		b := files[name]
		if named[name] != nil && pos >= headerSize && named[name][pos] == 0 {
			return // left from before a collection; no record names it
		}
		bit := byte(1) << rand.IntN(8)
		b[pos] ^= bit
		writeFile(t, filepath.Join(dir, name), b)
		r := mustVerify(t, dir)
		if !names(r, name) {
			t.Errorf("%s: flipped bit %x at %d is not found: %v", name, bit, pos, r.Problems)
		}
		b[pos] ^= bit
		writeFile(t, filepath.Join(dir, name), b)
	}
	if n := number("JOURNAL_FLIPS", 400); n > 0 {
		all := filesOf(t, dir)
		for i := range n {
			name := all[i%len(all)]
			flip(name, rand.IntN(len(files[name])))
		}
		return
	}
	for name, b := range files {
		for pos := range b {
			flip(name, pos)
		}
	}
}

// names reports whether a problem is about the file, or for the database's sum
// about either of the two.
func names(r *Report, name string) bool {
	for _, p := range r.Problems {
		if p.File == name || strings.HasPrefix(name, dbName) && strings.HasPrefix(p.File, dbName) {
			return true
		}
	}
	return false
}

// namedBytes marks the bytes of packs that records name.
func namedBytes(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	s := mustOpen(t, dir, Options{ReadOnly: true})
	defer s.Close()
	marks := map[string][]byte{}
	for _, d := range s.files.packs() {
		marks[d.name] = make([]byte, d.found)
	}
	err := s.Records(0, 0, func(r *Record) error {
		for _, d := range r.Data {
			if m := marks[packName(d.Loc.File)]; m != nil {
				for i := range d.Len {
					m[d.Loc.Pos+i] = 1
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return marks
}

// A file that is cut, doubled, swapped for another or gone is found.
//
//	JOURNAL_FLIPS=0  does all to each file, else a fifth
func TestVerifyFindsChangedFiles(t *testing.T) {
	from, _ := collected(t)
	all, marks := filesOf(t, from), namedBytes(t, from)
	for i, name := range all {
		b := readFile(t, filepath.Join(from, name))
		other := readFile(t, filepath.Join(from, all[(i+1)%len(all)]))
		for what, edit := range map[string][]byte{
			"cut by a byte":      b[:len(b)-1],
			"cut in half":        b[:len(b)/2],
			"empty":              {},
			"with another's":     other,
			"twice":              append(bytes.Clone(b), b...),
			"with a byte more":   append(bytes.Clone(b), 0),
			"shifted by a byte":  append([]byte{0}, b...),
			"with zeros inside":  zeroed(b, len(b)/3, len(b)/3+64),
			"with a part copied": repeated(b),
		} {
			if number("JOURNAL_FLIPS", 1) > 0 && rand.IntN(5) > 0 {
				continue
			}
			if sameNamed(edit, b, marks[name]) || grown(name, what) {
				continue
			}
			dir := copyJournal(t, from)
			writeFile(t, filepath.Join(dir, name), edit)
			if r := mustVerify(t, dir); len(r.Problems) == 0 {
				t.Errorf("%s %s is not found", name, what)
			}
		}
		dir := copyJournal(t, from)
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if r := mustVerify(t, dir); len(r.Problems) == 0 && name != dbSumName {
			t.Errorf("that %s is gone is not found", name)
		}
	}
}

// sameNamed reports whether a and b are the same, in the bytes that are named
// if it is said which ones are.
func sameNamed(a, b, named []byte) bool {
	if named == nil || len(a) != len(b) {
		return bytes.Equal(a, b)
	}
	for i := range a {
		if a[i] != b[i] && (i < headerSize || named[i] != 0) {
			return false
		}
	}
	return true
}

// grown reports whether bytes are only added behind a pack, where those of a
// failed write may lie.
func grown(name, what string) bool {
	return strings.HasSuffix(name, packSuffix) && (what == "twice" || what == "with a byte more")
}

func zeroed(b []byte, from, to int) []byte {
	b = bytes.Clone(b)
	clear(b[from:min(to, len(b))])
	return b
}

func repeated(b []byte) []byte {
	b = bytes.Clone(b)
	n := len(b) / 4
	copy(b[2*n:3*n], b[n:2*n])
	return b
}

// Repair mends what can be mended, says what is lost, and keeps the files as
// they were.
func TestRepair(t *testing.T) {
	logOf := func(t *testing.T, dir string, i int) string {
		logs, _ := filepath.Glob(filepath.Join(dir, "wal/*.log"))
		return logs[i]
	}
	flipAt := func(t *testing.T, path string, pos int) {
		t.Helper()
		b := readFile(t, path)
		b[pos] ^= 1
		writeFile(t, path, b)
	}
	for name, tc := range map[string]struct {
		harm func(t *testing.T, dir string)
		// same says that the state is what it was.
		same, history, clean bool
	}{
		"nothing":          {func(*testing.T, string) {}, true, true, true},
		"database flipped": {func(t *testing.T, dir string) { flipAt(t, filepath.Join(dir, dbName), 9000) }, true, true, true},
		"database gone":    {func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, dbName)) }, true, true, true},
		"old record": {func(t *testing.T, dir string) {
			path := logOf(t, dir, 0)
			flipAt(t, path, int(framesOf(t, readFile(t, path))[2])+30)
		}, true, false, true},
		"newest record": {func(t *testing.T, dir string) {
			logs, _ := filepath.Glob(filepath.Join(dir, "wal/*.log"))
			path := logs[len(logs)-1]
			f := framesOf(t, readFile(t, path))
			flipAt(t, path, int(f[len(f)-1])+30)
		}, false, true, true},
		"old record and database": {func(t *testing.T, dir string) {
			path := logOf(t, dir, 1)
			flipAt(t, path, int(framesOf(t, readFile(t, path))[1])+17)
			os.Remove(filepath.Join(dir, dbName))
		}, false, true, true},
		"data of a record": {func(t *testing.T, dir string) { path, pos := dataOf(t, logOf(t, dir, 0)); flipAt(t, path, pos) }, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir, h := collected(t)
			tc.harm(t, dir)
			damaged := copyJournal(t, dir)
			r, err := Repair(dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if tc.clean && len(r.Left.Problems) > 0 {
				t.Errorf("left: %v", r.Left.Problems)
			}
			if whole := tc.same && tc.history && tc.clean; whole != (len(r.Lost) == 0) {
				t.Errorf("lost: %v, done: %v", r.Lost, r.Done)
			}
			keptAsItWas(t, damaged, filepath.Join(dir, r.Evidence), r.Evidence)
			s := mustOpen(t, dir, Options{})
			if tc.same {
				sameFiles(t, "repaired", s.State(), h.st)
			} else if head := s.Head(); head == 0 || head >= h.st.Seq {
				t.Errorf("head is %d of %d", head, h.st.Seq)
			}
			if _, err := s.Append(&Record{Op: OpCheckpoint, Note: &Note{Checkpoint: "after"}}, nil); err != nil {
				t.Error(err)
			}
			mustClose(t, s)
			if tc.clean {
				verifyClean(t, dir)
			}
		})
	}
}

// dataOf returns the place of inline data in a segment.
func dataOf(t *testing.T, path string) (string, int) {
	t.Helper()
	b := readFile(t, path)
	for _, pos := range framesOf(t, b) {
		if h, err := decodeFrameHeader(b[pos:]); err == nil && h.data > 0 {
			return path, int(pos) + frameSize
		}
	}
	t.Fatal("no inline data")
	return "", 0
}

// keptAsItWas compares the evidence with a copy from before the repair.
func keptAsItWas(t *testing.T, want, got, name string) {
	t.Helper()
	if name == "" {
		return
	}
	for _, f := range filesOf(t, want) {
		if !bytes.Equal(readFile(t, filepath.Join(want, f)), readFile(t, filepath.Join(got, f))) {
			t.Errorf("the evidence's %s is not as it was", f)
		}
	}
}
