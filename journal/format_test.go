package journal

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the format's fixtures anew")

const (
	fixture       = "testdata/v3"        // a journal of 30 records, closed
	fixtureBroken = "testdata/v3-broken" // the same with a flipped bit in record 12
	fixtureWant   = "testdata/v3.txt"    // what is to be read from it
)

func writeFixtures(t *testing.T) {
	for _, dir := range []string{fixture, fixtureBroken} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	s := mustCreate(t, fixture, Options{Clock: tick(), SegmentSize: 4 << 10, boot: "fixture"})
	h := newHistory(21, s)
	for range 30 {
		h.next(t)
	}
	mustClose(t, s)
	if err := os.Remove(filepath.Join(fixture, lockName)); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(fixtureBroken, os.DirFS(fixture)); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(fixtureBroken, logName(1, 1))
	b := readFile(t, log)
	b[framesOf(t, b)[11]+frameSize+3] ^= 4
	writeFile(t, log, b)
	writeFile(t, fixtureWant, []byte(describe(t, copyJournal(t, fixture))))
}

// describe renders everything that is read from a journal.
func describe(t *testing.T, dir string) string {
	t.Helper()
	s := mustOpen(t, dir, Options{ReadOnly: true})
	defer s.Close()
	var b strings.Builder
	err := s.Records(0, 0, func(r *Record) error {
		fmt.Fprintf(&b, "%d %d %s %+v unique %d %q %q prev %x\n", r.Seq, r.Time, r.Op, r.Actor, r.Unique, r.Path, r.Path2, r.Prev[:4])
		if r.Note != nil {
			fmt.Fprintf(&b, "  note %q %d %v %q %q %q %q\n", r.Note.Checkpoint, r.Note.Point, r.Note.Undone, r.Note.Rule, r.Note.Message, r.Note.Refused, r.Note.Text)
		}
		for _, d := range r.Data {
			p := make([]byte, d.Len)
			if err := s.ReadAt(d.Loc, p); err != nil || crcOf(p) != d.CRC {
				t.Errorf("data of record %d: %v", r.Seq, err)
			}
			fmt.Fprintf(&b, "  data %+v\n", d)
		}
		for _, c := range r.Changes {
			describeChange(&b, c)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	st := s.State()
	fmt.Fprintf(&b, "state %d next node %x next exec %d checkpoints %v\n", st.Seq, st.NextNode, st.NextExec, st.Checkpoints)
	n := normal(st)
	fmt.Fprintf(&b, "nodes %+v\nentries %+v\ncontents %+v\n", n["nodes"], n["entries"], n["contents"])
	return b.String()
}

func describeChange(b *strings.Builder, c Change) {
	switch {
	case c.Node != nil:
		fmt.Fprintf(b, "  node %x %+v -> %+v\n", c.Node.ID, c.Node.Before, c.Node.After)
	case c.Entry != nil:
		fmt.Fprintf(b, "  entry %+v\n", *c.Entry)
	default:
		fmt.Fprintf(b, "  content %+v\n", *c.Content)
	}
}

// A journal of format 3 reads as it did when it was written.
func TestFormat3(t *testing.T) {
	if *update {
		writeFixtures(t)
	}
	dir := copyJournal(t, fixture)
	if got, want := describe(t, dir), string(readFile(t, fixtureWant)); got != want {
		t.Errorf("fixture reads differently\n got %s\nwant %s", got, want)
	}
	if r := verifyClean(t, dir); r.Records != 30 {
		t.Errorf("report is %+v", r)
	}
	s := mustOpen(t, dir, Options{})
	if _, err := s.Append(&Record{Op: OpCheckpoint, Note: &Note{Checkpoint: "x"}}, nil); err != nil {
		t.Fatal(err)
	}
}

func TestFormat3Broken(t *testing.T) {
	r := mustVerify(t, fixtureBroken)
	if len(r.Problems) == 0 || r.Problems[0].Seq != 12 || r.Problems[0].File != logName(1, 1) {
		t.Errorf("report is %+v", r)
	}
	dir := copyJournal(t, fixtureBroken)
	var c *CorruptError
	if _, err := Open(dir, Options{}); !errors.As(err, &c) || c.Seq != 12 {
		t.Fatalf("open: %v", err)
	}
	if _, err := Rebuild(dir, Options{}); !errors.As(err, &c) || c.Seq != 12 {
		t.Errorf("rebuild: %v", err)
	}
}

// A journal of format 2, which is not read any more, is refused by its name and
// not taken for damage.
func TestOldFormatRefused(t *testing.T) {
	dir := copyJournal(t, "testdata/v2")
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrOlderFormat) {
		t.Errorf("open: %v", err)
	}
	if _, err := Verify(dir); !errors.Is(err, ErrOlderFormat) {
		t.Errorf("verify: %v", err)
	}
	if _, err := Rebuild(dir, Options{}); !errors.Is(err, ErrOlderFormat) {
		t.Errorf("rebuild: %v", err)
	}
}
