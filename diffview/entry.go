package diffview

import (
	"cmp"
	"slices"
)

// Schema names the JSON document that Document is.
const Schema = "winkfs.diff/v1"

// Document is the result of `winkfs diff --json`.
type Document struct {
	Schema  string  `json:"schema"`
	From    any     `json:"from"`
	To      any     `json:"to"`
	Entries []Entry `json:"entries"`
}

// Entry is one change in a Document. Class is not part of it.
type Entry struct {
	Status  Status   `json:"status"`
	Path    string   `json:"path"`
	OldPath string   `json:"old_path,omitempty"` // of a rename
	OldMode string   `json:"old_mode,omitempty"` // octal; absent when the file is
	NewMode string   `json:"new_mode,omitempty"`
	Binary  bool     `json:"binary"`
	OldSize int64    `json:"old_size"`
	NewSize int64    `json:"new_size"`
	Added   int      `json:"added"` // lines; 0 for binary
	Removed int      `json:"removed"`
	Exec    []uint64 `json:"exec"`
	Guarded bool     `json:"guarded"` // the host would execute it: apply asks for it by itself
	Hunks   []Hunk   `json:"hunks"`

	Class string `json:"-"` // of Guarded, also where it is only flagged
}

// Entries returns the changes for `winkfs diff --json`, by path.
func Entries(changes []Change) ([]Entry, error) {
	out := make([]Entry, 0, len(changes))
	for i := range changes {
		e, _, err := newEntry(&changes[i])
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	return out, nil
}

func newEntry(c *Change) (Entry, *delta, error) {
	d, err := compare(c)
	if err != nil {
		return Entry{}, nil, err
	}
	e := Entry{
		Status: c.Status(), Path: c.Path(), Binary: d.binary,
		OldMode: fullMode(c.Old), NewMode: fullMode(c.New),
		OldSize: d.old.size, NewSize: d.new.size,
		Exec: append([]uint64{}, c.Exec...), Hunks: append([]Hunk{}, d.hunks...),
	}
	if c.Old != nil && c.New != nil && c.Old.Path != c.New.Path {
		e.OldPath = c.Old.Path
	}
	e.Added, e.Removed = d.counts()
	e.Class, e.Guarded = Guarded(e.Path, c.Old, c.New)
	return e, d, nil
}
