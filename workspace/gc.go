package workspace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/winkfs/winkfs/journal"
)

// Retention bounds history: `winkfs gc` drops what is older, more or larger.
// Zero fields bound nothing.
type Retention struct {
	Age     Age   `yaml:"age" json:"age"`
	Bytes   int64 `yaml:"bytes" json:"bytes"`
	Records int64 `yaml:"records" json:"records"`
}

// Age is a duration that is written as in 720h or 30d.
type Age time.Duration

// ParseAge reads a duration in Go's form, or a number of days with a d.
func ParseAge(s string) (Age, error) {
	var days int
	if n, err := fmt.Sscanf(s, "%dd", &days); err == nil && n == 1 && fmt.Sprintf("%dd", days) == s && days >= 0 && days < 100_000 {
		return Age(time.Duration(days) * 24 * time.Hour), nil
	}
	if s == "0" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("parse age %q: expected a duration such as 720h or 30d", s)
	}
	return Age(d), nil
}

// MarshalText writes the age in Go's form.
func (a Age) MarshalText() ([]byte, error) { return []byte(time.Duration(a).String()), nil }

// UnmarshalText reads what ParseAge reads.
func (a *Age) UnmarshalText(b []byte) (err error) {
	*a, err = ParseAge(string(b))
	return err
}

// GCRequest says what to reclaim. Fields that are nil follow the workspace's
// configuration.
type GCRequest struct {
	Age     *Age   `json:"age,omitempty"`
	Bytes   *int64 `json:"bytes,omitempty"`
	Records *int64 `json:"records,omitempty"`
	DryRun  bool   `json:"dry_run,omitempty"`
}

// GCProgress says how far a collection is.
type GCProgress struct {
	Step  string `json:"step"`
	Done  int64  `json:"done"`
	Total int64  `json:"total,omitempty"` // 0 = not known
}

// GCResult is the document winkfs.gc/v1.
type GCResult struct {
	Schema string `json:"schema"`
	ID     string `json:"id"`
	DryRun bool   `json:"dry_run"`
	// First is the oldest record that is left, Dropped how many went.
	First   uint64 `json:"first"`
	Dropped uint64 `json:"dropped_records"`
	Moved   int64  `json:"moved_bytes"` // live data carried out of files that went
	Freed   int64  `json:"freed_bytes"`
	// JournalBytes and ObjectBytes are as in status, afterwards.
	JournalBytes int64  `json:"journal_bytes"`
	ObjectBytes  int64  `json:"object_bytes"`
	HeldBy       string `json:"held_by,omitempty"` // what keeps more from going
}

// GC reclaims history by the retention. It works beside a mount.
func (w *Workspace) GC(ctx context.Context, req *GCRequest, fn func(*GCProgress) error) (*GCResult, error) {
	r, err := w.retention(req)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	rep, err := w.store.GC(ctx, journal.GCOptions{
		Retention: r, Pins: w.forkPins(), Open: w.tree.Orphans, DryRun: req.DryRun,
		Quiesce: func(fn func()) {
			w.admin.Lock()
			defer w.admin.Unlock()
			fn()
		},
		Progress: func(p journal.GCProgress) {
			if err := fn(&GCProgress{Step: p.Step, Done: p.Done, Total: p.Total}); err != nil {
				cancel(err)
			}
		},
	})
	if err != nil {
		return nil, w.gcError(err)
	}
	w.touchRuntime()
	return &GCResult{
		Schema: "winkfs.gc/v1", ID: w.entry.ID, DryRun: req.DryRun,
		First: uint64(rep.First), Dropped: rep.Dropped, Moved: rep.Moved, Freed: rep.Freed,
		JournalBytes: rep.LogBytes + rep.DBBytes, ObjectBytes: rep.DataBytes, HeldBy: rep.HeldBy,
	}, nil
}

// retention returns the limits of a request over those of the configuration.
func (w *Workspace) retention(req *GCRequest) (journal.Retention, error) {
	c := w.cfg.Retention
	if req.Age != nil {
		c.Age = *req.Age
	}
	if req.Bytes != nil {
		c.Bytes = *req.Bytes
	}
	if req.Records != nil {
		c.Records = *req.Records
	}
	if c.Age < 0 || c.Bytes < 0 || c.Records < 0 {
		return journal.Retention{}, Fail(CodeUsage, "collect: limits must not be negative")
	}
	return journal.Retention{Age: time.Duration(c.Age), Bytes: c.Bytes, Records: uint64(c.Records)}, nil
}

// forkPins keeps the points at which forks and their parent part, which a
// merge compares both with.
func (w *Workspace) forkPins() []journal.Pin {
	var pins []journal.Pin
	for _, f := range w.forks() {
		pins = append(pins, journal.Pin{At: journal.Seq(f.Seq), Name: fmt.Sprintf("fork %s (%s)", f.ID, f.Name)})
	}
	if p := w.cfg.Parent; p != nil {
		pins = append(pins, journal.Pin{At: journal.Seq(p.Seq), Name: "the point at which it left its parent " + p.ID})
	}
	return pins
}

func (w *Workspace) gcError(err error) error {
	var corrupt *journal.CorruptError
	switch {
	case errors.Is(err, journal.ErrCollecting):
		return Wrap(CodeFailure, err, "collect history of workspace %s", w.entry.ID).Hinted("wait until it is done; nothing was changed")
	case errors.As(err, &corrupt):
		return Wrap(CodeCorrupt, err, "collect history of workspace %s", w.entry.ID).At(corrupt.File).
			Hinted("nothing was removed; `winkfs verify %s` lists all damage", w.entry.ID)
	}
	return Wrap(CodeFailure, err, "collect history of workspace %s", w.entry.ID).Hinted("nothing was removed that is still needed; gc can be run again")
}

// trimmedError gives the error of a point that was dropped its code and what to
// do.
func trimmedError(e *journal.TrimmedError) *Error {
	return Wrap(CodeNothing, e, "read history").
		Hinted("points from %d on can be returned to; `winkfs log` shows what is left", e.First-1)
}
