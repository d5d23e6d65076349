package diffview

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// context is the number of equal lines around the edits of a hunk.
const context = 3

// Hunk is one part of a file's change that can be taken or left by itself.
// Starts count lines from 1; of a side without lines the start is the line
// before, as in a patch.
type Hunk struct {
	ID       string `json:"id"` // from the path and the hunk's lines, not from its place
	OldStart int    `json:"old_start"`
	OldLines int    `json:"old_lines"`
	NewStart int    `json:"new_start"`
	NewLines int    `json:"new_lines"`

	edits []edit
	span  edit // edits with context
}

// delta is the compared contents of one change.
type delta struct {
	change   *Change
	old, new blob
	binary   bool
	a, b     lines // unless binary
	hunks    []Hunk
}

// compare reads both sides and finds the hunks.
func compare(c *Change) (*delta, error) {
	d := &delta{change: c}
	var err error
	if d.old, err = load(c.Old); err != nil {
		return nil, err
	}
	if d.new, err = load(c.New); err != nil {
		return nil, err
	}
	d.binary = d.old.binary() || d.new.binary()
	if d.binary || d.old.oid == d.new.oid {
		return d, nil
	}
	d.a, d.b = splitLines(d.old.data), splitLines(d.new.data)
	d.hunks = group(diffLines(d.a, d.b), d.a.len())
	d.name()
	return d, nil
}

// group collects edits that are near each other into hunks. n is the number of
// old lines.
func group(edits []edit, n int) []Hunk {
	var out []Hunk
	for i := 0; i < len(edits); {
		j := i + 1
		for j < len(edits) && edits[j].A0-edits[j-1].A1 <= 2*context {
			j++
		}
		out = append(out, newHunk(edits[i:j], n))
		i = j
	}
	return out
}

func newHunk(edits []edit, n int) Hunk {
	first, last := edits[0], edits[len(edits)-1]
	lead, tail := min(context, first.A0), min(context, n-last.A1)
	s := edit{first.A0 - lead, last.A1 + tail, first.B0 - lead, last.B1 + tail}
	h := Hunk{OldLines: s.A1 - s.A0, NewLines: s.B1 - s.B0, edits: edits, span: s}
	h.OldStart, h.NewStart = start(s.A0, h.OldLines), start(s.B0, h.NewLines)
	return h
}

func start(index, n int) int {
	if n == 0 {
		return index
	}
	return index + 1
}

// name gives each hunk its id. Hunks with the same lines are told apart by
// their order.
func (d *delta) name() {
	seen := make(map[string]int)
	for i := range d.hunks {
		h := sha256.New()
		fmt.Fprintf(h, "%d:%s", len(d.change.Path()), d.change.Path())
		d.walk(&d.hunks[i], func(op byte, line []byte) {
			fmt.Fprintf(h, "%c%d:", op, len(line))
			h.Write(line)
		})
		id := hex.EncodeToString(h.Sum(nil)[:6])
		seen[id]++
		if n := seen[id]; n > 1 {
			id = fmt.Sprintf("%s-%d", id, n)
		}
		d.hunks[i].ID = id
	}
}

// walk calls fn for each line of the hunk: ' ' of both sides, '-' old, '+' new.
func (d *delta) walk(h *Hunk, fn func(op byte, line []byte)) {
	each := func(op byte, l lines, from, to int) {
		for i := from; i < to; i++ {
			fn(op, l.at(i))
		}
	}
	a := h.span.A0
	for _, e := range h.edits {
		each(' ', d.a, a, e.A0)
		each('-', d.a, e.A0, e.A1)
		each('+', d.b, e.B0, e.B1)
		a = e.A1
	}
	each(' ', d.a, a, h.span.A1)
}

// counts returns the number of added and removed lines.
func (d *delta) counts() (added, removed int) {
	for _, h := range d.hunks {
		for _, e := range h.edits {
			added += e.B1 - e.B0
			removed += e.A1 - e.A0
		}
	}
	return added, removed
}

// Select returns the old contents with only those hunks applied that keep
// names. It is an error to name a hunk that the change does not have, since
// then the change is not the one that was reviewed, and to select from
// contents that are not text.
func Select(c *Change, keep []string) ([]byte, error) {
	d, err := compare(c)
	if err != nil {
		return nil, err
	}
	if d.binary {
		return nil, fmt.Errorf("select hunks of %q: contents are binary", c.Path())
	}
	want := make(map[string]bool, len(keep))
	for _, id := range keep {
		want[id] = true
	}
	var out []byte
	a := 0
	for i := range d.hunks {
		h := &d.hunks[i]
		if !want[h.ID] {
			continue
		}
		delete(want, h.ID)
		for _, e := range h.edits {
			out = append(out, d.a.span(a, e.A0)...)
			out = append(out, d.b.span(e.B0, e.B1)...)
			a = e.A1
		}
	}
	for id := range want {
		return nil, fmt.Errorf("select hunks of %q: no hunk %q", c.Path(), id)
	}
	return append(out, d.a.span(a, d.a.len())...), nil
}
