package journal

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// makeJournal writes a closed journal of n records with several segments and
// packs.
func makeJournal(t testing.TB, n int) (dir string, h *history) {
	t.Helper()
	dir = t.TempDir()
	s := mustCreate(t, dir, Options{SegmentSize: 50 << 10, PackSize: 30 << 10, Clock: tick()})
	h = newHistory(3, s)
	for range n {
		h.next(t)
	}
	mustClose(t, s)
	return dir, h
}

func mustVerify(t testing.TB, dir string) *Report {
	t.Helper()
	r, err := Verify(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func verifyClean(t testing.TB, dir string) *Report {
	t.Helper()
	r := mustVerify(t, dir)
	for _, p := range r.Problems {
		t.Errorf("problem: %v", p)
	}
	if t.Failed() {
		t.FailNow()
	}
	return r
}

// filesOf returns the journal's files below dir, relative to it.
func filesOf(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{dbName, dbSumName, "wal/*", "objects/*"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			rel, _ := filepath.Rel(dir, n)
			out = append(out, rel)
		}
	}
	return out
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestVerifyCleanJournal(t *testing.T) {
	dir, h := makeJournal(t, 500)
	r := verifyClean(t, dir)
	if r.Records != 500 || r.FirstSeq != 1 || r.LastSeq != 500 || r.DataBytes == 0 {
		t.Errorf("report is %+v", r)
	}
	s := mustOpen(t, dir, Options{})
	h.store = s
	for range 50 {
		h.next(t)
	}
	if r := verifyClean(t, dir); r.LastSeq != 550 {
		t.Errorf("beside an open store the log ends at %d", r.LastSeq)
	}
}

// Any flipped bit in a log segment or in data that a record names is found in
// the file in which it is.
func TestVerifyFindsFlippedBits(t *testing.T) {
	dir, h := makeJournal(t, 300)
	rnd := rand.New(rand.NewPCG(1, 2))
	used := map[string][]byte{}
	for loc, data := range h.data {
		name := packName(loc.File)
		if b := used[name]; b == nil {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				continue
			}
			used[name] = make([]byte, 1<<20)
		}
		for i := range data {
			used[name][loc.Pos+uint64(i)] = 1
		}
	}
	for _, name := range filesOf(t, dir) {
		path := filepath.Join(dir, name)
		b := readFile(t, path)
		for range 60 {
			pos := rnd.IntN(len(b))
			if strings.HasPrefix(name, packDir) && pos >= headerSize && used[name][pos] == 0 {
				continue
			}
			bit := byte(1) << rnd.IntN(8)
			b[pos] ^= bit
			writeFile(t, path, b)
			r := mustVerify(t, dir)
			found := false
			for _, p := range r.Problems {
				found = found || p.File == name
			}
			if !found && (name != dbName || changesReads(t, dir, h)) {
				t.Errorf("%s: flipped bit %x at %d is not found: %v", name, bit, pos, r.Problems)
			}
			b[pos] ^= bit
		}
		writeFile(t, path, b)
	}
	verifyClean(t, dir)
}

// changesReads reports whether the journal reads differently than it should.
// Bytes of the database that nothing refers to may flip unnoticed.
func changesReads(t *testing.T, dir string, h *history) bool {
	s, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		return true
	}
	defer s.Close()
	sameState(t, "after a flip", s.State(), h.st)
	return false
}

func TestVerifyFindsCutsSwapsAndRepetitions(t *testing.T) {
	base, _ := makeJournal(t, 200)
	logs, _ := filepath.Glob(filepath.Join(base, "wal/*"))
	first := readFile(t, logs[0])
	frames := framesOf(t, first)
	cut := func(b []byte, from, to int64) []byte { return append(append([]byte{}, b[:from]...), b[to:]...) }
	f := frames
	for _, tc := range []struct {
		name string
		edit func() []byte
		pos  int64
	}{
		{"record cut out", func() []byte { return cut(first, f[5], f[6]) }, f[5]},
		{"records swapped", func() []byte {
			return append(append(append(append([]byte{}, first[:f[5]]...), first[f[6]:f[7]]...), first[f[5]:f[6]]...), first[f[7]:]...)
		}, f[5]},
		{"record repeated", func() []byte { return append(append([]byte{}, first[:f[6]]...), first[f[5]:]...) }, f[6]},
		{"bytes cut out", func() []byte { return cut(first, f[5]+3, f[5]+9) }, f[5]},
		{"end cut", func() []byte { return first[:f[6]+10] }, f[6]},
		{"end cut between records", func() []byte { return first[:f[6]] }, -2},
		{"zeros in the middle", func() []byte {
			b := append([]byte{}, first...)
			clear(b[f[5]:f[8]])
			return b
		}, f[5]},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := copyJournal(t, base)
			rel, _ := filepath.Rel(base, logs[0])
			writeFile(t, filepath.Join(dir, rel), tc.edit())
			r := mustVerify(t, dir)
			if len(r.Problems) == 0 {
				t.Fatal("nothing found")
			}
			if p := r.Problems[0]; tc.pos >= 0 && (p.File != rel || p.Pos != tc.pos) {
				t.Errorf("first problem is %v, want %s at %d", p, rel, tc.pos)
			}
		})
	}
	for i, name := range logs {
		dir := copyJournal(t, base)
		rel, _ := filepath.Rel(base, name)
		if err := os.Remove(filepath.Join(dir, rel)); err != nil {
			t.Fatal(err)
		}
		if r := mustVerify(t, dir); len(r.Problems) == 0 {
			t.Errorf("missing segment %d is not found", i)
		}
		var c *CorruptError
		if _, err := Open(dir, Options{}); !errors.As(err, &c) {
			t.Errorf("open without segment %d: %v", i, err)
		}
	}
}

// framesOf returns the positions of a segment's frames.
func framesOf(t testing.TB, b []byte) []int64 {
	t.Helper()
	var out []int64
	for pos := int64(headerSize); pos < int64(len(b)); {
		h, err := decodeFrameHeader(b[pos:])
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, pos)
		pos += h.size()
	}
	return out
}

func copyJournal(t testing.TB, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestRebuild(t *testing.T) {
	dir, h := makeJournal(t, 400)
	for _, tc := range []struct {
		name string
		harm func(t *testing.T, path string)
	}{
		{"missing", func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}},
		{"overwritten", func(t *testing.T, path string) { writeFile(t, path, make([]byte, 32<<10)) }},
		{"cut", func(t *testing.T, path string) {
			if err := os.Truncate(path, 20<<10); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := copyJournal(t, dir)
			tc.harm(t, filepath.Join(dir, dbName))
			var c *CorruptError
			_, err := Open(dir, Options{})
			if !errors.As(err, &c) || !strings.Contains(err.Error(), "verify --repair") {
				t.Fatalf("open: %v", err)
			}
			if r := mustVerify(t, dir); len(r.Problems) == 0 || r.Problems[0].File != dbName || r.LastSeq != 400 {
				t.Errorf("report is %+v", r)
			}
			r, err := Rebuild(dir, Options{})
			if err != nil || r.LastSeq != 400 || len(r.Problems) > 0 {
				t.Fatalf("rebuild: %+v, %v", r, err)
			}
			verifyClean(t, dir)
			s := mustOpen(t, dir, Options{})
			sameState(t, "rebuilt", s.State(), h.st)
		})
	}
}

// Verify finds nothing wrong with a journal that is being written to.
func TestVerifyBesideWriter(t *testing.T) {
	dir := t.TempDir()
	s := mustCreate(t, dir, Options{SegmentSize: 30 << 10, PackSize: 20 << 10, Clock: tick()})
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		h := newHistory(8, s)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			h.next(&failer{})
			if i%50 == 0 {
				s.Commit()
			}
		}
	}()
	defer func() {
		close(stop)
		<-done
	}()
	for range 15 {
		verifyClean(t, dir)
	}
}

// Damage at the end is cut off by Rebuild, which says so.
func TestRebuildCutsTail(t *testing.T) {
	base, _ := makeJournal(t, 300)
	logs, _ := filepath.Glob(filepath.Join(base, "wal/*"))
	last, _ := filepath.Rel(base, logs[len(logs)-1])
	b := readFile(t, filepath.Join(base, last))
	frames := framesOf(t, b)
	for _, tc := range []struct {
		name string
		edit func() []byte
		head Seq
	}{
		{"cut", func() []byte { return b[:len(b)-3] }, 299},
		{"flipped", func() []byte { c := append([]byte{}, b...); c[len(c)-1] ^= 1; return c }, 299},
		{"header", func() []byte { return b[:20] }, 300 - Seq(len(frames))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := copyJournal(t, base)
			writeFile(t, filepath.Join(dir, last), tc.edit())
			var c *CorruptError
			if _, err := Open(dir, Options{}); !errors.As(err, &c) {
				t.Fatalf("open: %v", err)
			}
			r, err := Rebuild(dir, Options{})
			if err != nil || r.LastSeq != tc.head || len(r.Problems) != 1 {
				t.Fatalf("rebuild: %+v, %v", r, err)
			}
			verifyClean(t, dir)
			if s := mustOpen(t, dir, Options{}); s.Head() != tc.head {
				t.Errorf("head is %d", s.Head())
			}
		})
	}
}

// A segment or pack of which a kill left nothing but the name is no damage, at
// the end; anywhere else it is.
func TestVerifyPassesUnbornFiles(t *testing.T) {
	dir, h := makeJournal(t, 300)
	files := &fileTable{dir: dir}
	if _, err := files.load(); err != nil {
		t.Fatal(err)
	}
	num := files.reserve()
	writeFile(t, filepath.Join(dir, logName(h.st.Seq+1, num)), nil)
	writeFile(t, filepath.Join(dir, packName(num+1)), nil)
	verifyClean(t, dir)
	rebuilt := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(rebuilt, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := Rebuild(rebuilt, Options{}); err != nil {
		t.Errorf("rebuild: %v", err)
	}
	s, err := Open(rebuilt, Options{})
	if err != nil {
		t.Fatal(err)
	}
	sameState(t, "rebuilt", s.State(), h.st)
	mustClose(t, s)
	verifyClean(t, rebuilt)

	writeFile(t, filepath.Join(dir, logName(h.st.Seq+2, num+2)), nil)
	if r := mustVerify(t, dir); len(r.Problems) == 0 {
		t.Error("two segments that hold nothing pass")
	}
}
