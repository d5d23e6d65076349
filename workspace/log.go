package workspace

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/winkfs/winkfs/journal"
)

// Log hands the selected records to fn, oldest first.
func (w *Workspace) Log(ctx context.Context, req *LogRequest, fn func(*LogEntry) error) error {
	f, err := w.logFilter(req)
	if err != nil {
		return err
	}
	if f.from > f.to {
		return nil
	}
	if req.Limit < 0 {
		return Fail(CodeUsage, "read log: the limit must not be negative")
	}
	if req.Limit > 0 {
		return w.newest(ctx, f, req.Limit, fn)
	}
	return w.ascending(f, func(r *journal.Record) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !f.match(r) {
			return nil
		}
		return fn(logEntry(r))
	})
}

// newest reads backwards until it has enough.
func (w *Workspace) newest(ctx context.Context, f *logFilter, limit int, fn func(*LogEntry) error) error {
	var found []*LogEntry
	err := w.descending(f, func(r *journal.Record) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if f.match(r) {
			found = append(found, logEntry(r))
		}
		if len(found) == limit {
			return errFound
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFound) {
		return err
	}
	for _, l := range slices.Backward(found) {
		if err := fn(l); err != nil {
			return err
		}
	}
	return nil
}

// ascending reads the records that the filter can match, oldest first: by the
// index where it has them, else all of the range.
func (w *Workspace) ascending(f *logFilter, fn func(*journal.Record) error) error {
	seqs, ok, err := w.indexed(f)
	switch {
	case err != nil:
		return err
	case ok:
		return w.store.Pick(seqs, fn)
	}
	return w.store.Records(f.from, f.to, fn)
}

// descending is ascending, the newest first.
func (w *Workspace) descending(f *logFilter, fn func(*journal.Record) error) error {
	seqs, ok, err := w.indexed(f)
	switch {
	case err != nil:
		return err
	case !ok:
		return w.store.RecordsDesc(f.from, f.to, fn)
	}
	for ; len(seqs) > 0 && err == nil; seqs = seqs[:max(0, len(seqs)-pickAtOnce)] {
		var recs []*journal.Record
		err = w.store.Pick(seqs[max(0, len(seqs)-pickAtOnce):], func(r *journal.Record) error {
			recs = append(recs, r)
			return nil
		})
		for _, r := range slices.Backward(recs) {
			if err == nil {
				err = fn(r)
			}
		}
	}
	return err
}

// pickAtOnce is how many records are read at once from the end of an index.
const pickAtOnce = 256

// indexed returns the numbers of the records of the filter's operation in its
// range; ok is false if no index lists them.
func (w *Workspace) indexed(f *logFilter) (seqs []journal.Seq, ok bool, err error) {
	op := f.op
	if f.denied && op == journal.OpNone {
		op = journal.OpDenied
	}
	seqs, err = w.store.SeqsOfOp(op)
	if errors.Is(err, journal.ErrUnknownOp) {
		return nil, false, nil
	}
	lo, _ := slices.BinarySearch(seqs, f.from)
	hi, _ := slices.BinarySearch(seqs, f.to+1)
	return seqs[lo:max(lo, hi)], true, err
}

// logFilter is a parsed LogRequest.
type logFilter struct {
	from, to journal.Seq
	exec     journal.ExecID
	path     string
	op       journal.Op
	denied   bool
}

func (w *Workspace) logFilter(req *LogRequest) (*logFilter, error) {
	f := &logFilter{from: 1, to: w.store.Head(), exec: journal.ExecID(req.Exec), path: trimPath(req.Path), denied: req.Denied}
	if req.Op != "" {
		op, err := journal.ParseOp(req.Op)
		if err != nil {
			return nil, Wrap(CodeUsage, err, "read log")
		}
		f.op = op
	}
	if req.Exec != 0 {
		x, err := w.exec(f.exec)
		if err != nil {
			return nil, err
		}
		f.from = x.First
	}
	if req.Since != "" {
		seq, err := w.since(req.Since)
		if err != nil {
			return nil, err
		}
		f.from = max(f.from, seq+1)
	}
	f.from = max(f.from, w.store.First())
	return f, nil
}

// since is resolve, but that a number or time beyond the end selects nothing.
func (w *Workspace) since(s string) (journal.Seq, error) {
	if p, err := parsePoint(s, time.Now()); err == nil && p.kind == pointSeq {
		return p.seq, nil
	}
	return w.resolve(s)
}

func (f *logFilter) match(r *journal.Record) bool {
	switch {
	case f.exec != 0 && execOf(r) != f.exec:
		return false
	case f.op != journal.OpNone && r.Op != f.op:
		return false
	case f.denied && r.Op != journal.OpDenied:
		return false
	case f.path != "" && !under(r.Path, f.path) && !under(r.Path2, f.path):
		return false
	}
	return true
}

// execOf returns the command that a record belongs to: its actor's, or the one
// that it begins or ends.
func execOf(r *journal.Record) journal.ExecID {
	if r.Note != nil && r.Note.Exec != nil {
		return r.Note.Exec.ID
	}
	return r.Actor.Exec
}

// logEntry is a record in the form that is shown.
func logEntry(r *journal.Record) *LogEntry {
	l := &LogEntry{
		Seq: uint64(r.Seq), Time: TimeOf(r.Time), Op: r.Op.String(), Path: r.Path, Path2: r.Path2,
		Exec: uint64(execOf(r)), PID: r.Actor.PID, Comm: r.Actor.Comm,
	}
	if r.Actor.UID != noID {
		uid := r.Actor.UID
		l.UID = &uid
	}
	for _, d := range r.Data {
		l.Bytes += d.Len
	}
	if r.Note != nil {
		l.addNote(r)
	}
	return l
}

const noID = ^uint32(0)

func (l *LogEntry) addNote(r *journal.Record) {
	n := r.Note
	l.Name, l.Point, l.Rule, l.Refused, l.Message = n.Checkpoint, uint64(n.Point), n.Rule, n.Refused, n.Message
	for _, s := range n.Undone {
		l.Undone = append(l.Undone, uint64(s))
	}
	if r.Op == journal.OpClone || r.Op == journal.OpMerge {
		l.addKin(r)
	}
	if n.Exec == nil {
		return
	}
	l.Command = n.Exec.Command
	if r.Op == journal.OpExecEnd {
		code := n.Exec.ExitCode
		l.Exit = &code
	}
}

// addKin adds the workspace that a clone is of, or that was merged, and its
// record.
func (l *LogEntry) addKin(r *journal.Record) {
	var clone forkNote
	var merge mergeNote
	switch {
	case r.Op == journal.OpClone && json.Unmarshal([]byte(r.Note.Text), &clone) == nil:
		l.Name = cmp.Or(clone.Name, clone.Parent)
		l.Message = "clone of " + l.Name
	case r.Op == journal.OpMerge && json.Unmarshal([]byte(r.Note.Text), &merge) == nil:
		l.Name, l.Point = cmp.Or(merge.Name, merge.Workspace), uint64(merge.Seq)
		l.Message = "merge of " + l.Name
	}
}
