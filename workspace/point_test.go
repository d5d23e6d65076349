package workspace

import (
	"encoding/json"
	"maps"
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
		if err := checkName("make checkpoint", name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "1", "12m", "exec:1", "a..b", "a/b", "a b", "-x", "é", "2026-05-04"} {
		if err := checkName("make checkpoint", name); err == nil {
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

func TestReverted(t *testing.T) {
	recs := map[journal.Seq]*journal.Record{}
	look := func() *reverted {
		h := &reverted{by: map[journal.Seq]journal.Seq{}, read: func(s journal.Seq) (*journal.Record, error) { return recs[s], nil }}
		h.left = slices.Sorted(maps.Keys(recs))
		return h
	}
	steps := []struct {
		op       journal.Op
		note     journal.Note
		by       map[journal.Seq]journal.Seq // expected then
		standing journal.Seq
	}{
		{journal.OpUndo, journal.Note{Undone: []journal.Seq{1, 2}}, map[journal.Seq]journal.Seq{1: 6, 2: 6, 3: 0}, 6},
		{journal.OpRollback, journal.Note{Point: 0}, map[journal.Seq]journal.Seq{1: 7, 3: 7, 6: 7}, 7},
		{journal.OpRedo, journal.Note{Undone: []journal.Seq{7}}, map[journal.Seq]journal.Seq{1: 6, 3: 0, 6: 0, 7: 8}, 6},
		{journal.OpUndo, journal.Note{Undone: []journal.Seq{8}}, map[journal.Seq]journal.Seq{1: 7, 3: 7, 8: 9}, 9},
		{journal.OpRedo, journal.Note{Undone: []journal.Seq{9}}, map[journal.Seq]journal.Seq{1: 6, 3: 0}, 6},
		{journal.OpRollback, journal.Note{Point: 2, Text: "{}"}, map[journal.Seq]journal.Seq{1: 6, 3: 0}, 11},
	}
	for i, st := range steps {
		seq := journal.Seq(6 + i)
		recs[seq] = &journal.Record{Op: st.op, Seq: seq, Note: &st.note}
		h := look()
		if err := h.upTo(1); err != nil {
			t.Fatal(err)
		}
		for s, want := range st.by {
			if got := h.known(s); got != want {
				t.Errorf("after record %d, record %d is reverted by %d, want %d", seq, s, got, want)
			}
		}
		if r, err := look().newest(); err != nil || r == nil || r.Seq != st.standing {
			t.Errorf("after record %d, %v stands, want %d (%v)", seq, r, st.standing, err)
		}
	}
}
