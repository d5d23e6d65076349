package workspace

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/winkfs/winkfs/journal"
)

func TestParsePoint(t *testing.T) {
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		in   string
		want point
	}{
		{"0", point{kind: pointSeq}},
		{"42", point{kind: pointSeq, seq: 42}},
		{"exec:7", point{kind: pointExec, exec: 7}},
		{"2026-05-04T10:00:00Z", point{kind: pointTime, time: time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)}},
		{"2026-05-04", point{kind: pointTime, time: time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)}},
		{"10m", point{kind: pointTime, time: at.Add(-10 * time.Minute)}},
		{"1h30m ago", point{kind: pointTime, time: at.Add(-90 * time.Minute)}},
		{"before-refactor", point{kind: pointName, name: "before-refactor"}},
	}
	for _, tt := range tests {
		got, err := parsePoint(tt.in, at)
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		if got.kind != tt.want.kind || got.seq != tt.want.seq || got.exec != tt.want.exec || got.name != tt.want.name || !got.time.Equal(tt.want.time) {
			t.Errorf("%s: got %+v, want %+v", tt.in, got, tt.want)
		}
	}
	for _, in := range []string{"", "exec:", "exec:0", "exec:x", "a\x00b"} {
		if got, err := parsePoint(in, at); err == nil {
			t.Errorf("%q: got %+v, want an error", in, got)
		}
	}
}

func TestCheckpointName(t *testing.T) {
	for _, name := range []string{"a", "before-refactor", "v1.2", "cp-20260504-120000.123"} {
		if err := checkCheckpointName(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "1", "12m", "exec:1", "a..b", "a/b", "a b", "-x", "é", "2026-05-04"} {
		if err := checkCheckpointName(name); err == nil {
			t.Errorf("%q: no error", name)
		}
	}
}

func TestPathSet(t *testing.T) {
	s := newPathSet([]string{"/a/b/", "c"})
	for p, want := range map[string]bool{"a/b": true, "a/b/c": true, "a/bc": false, "a": false, "c/d": true, "": false} {
		if got := s.has(p); got != want {
			t.Errorf("%q: %v", p, got)
		}
	}
	if !newPathSet(nil).has("anything") || !newPathSet([]string{"/"}).has("x") {
		t.Error("everything is not everything")
	}
}

func FuzzParsePoint(f *testing.F) {
	f.Add("exec:1")
	f.Add("2026-05-04T10:00:00Z")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parsePoint(s, time.Unix(0, 0))
		if err == nil && p.kind == pointName && p.name != s {
			t.Fatalf("%q became %q", s, p.name)
		}
	})
}

func TestPathListJSON(t *testing.T) {
	want := PathList{"plain", "a\xffb", "ü", ""}
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got PathList
	if err := json.Unmarshal(b, &got); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestUndoneRecords(t *testing.T) {
	h := &undoneRecords{by: map[journal.Seq]journal.Seq{}, reverts: map[journal.Seq][]journal.Seq{}}
	take := func(op journal.Op, seq journal.Seq, n journal.Note) {
		h.take(&journal.Record{Op: op, Seq: seq, Note: &n})
		if op != journal.OpRedo {
			h.standing = append(h.standing, seq)
		}
	}
	take(journal.OpUndo, 6, journal.Note{Undone: []journal.Seq{1, 2}})
	if h.by[1] != 6 || h.by[3] != 0 {
		t.Fatalf("after the undo: %v", h.by)
	}
	take(journal.OpRollback, 7, journal.Note{Point: 0})
	if h.by[1] != 7 || h.by[3] != 7 || h.by[6] != 7 {
		t.Fatalf("after the rollback: %v", h.by)
	}
	take(journal.OpRedo, 8, journal.Note{Undone: []journal.Seq{7}})
	if h.by[3] != 0 || len(h.standing) != 1 || h.standing[0] != 6 {
		t.Fatalf("after the redo: %v, %v", h.by, h.standing)
	}
}
