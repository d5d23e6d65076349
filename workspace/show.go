package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/winkfs/winkfs/diffview"
	"github.com/winkfs/winkfs/journal"
)

// Show returns one record or one command.
func (w *Workspace) Show(ctx context.Context, req *ShowRequest) (*ShowResult, error) {
	target, err := parseTarget(req.What)
	if err != nil {
		return nil, err
	}
	res := &ShowResult{Schema: "winkfs.show/v1"}
	diff := &DiffRequest{Format: FormatJSON}
	switch {
	case target.exec != 0:
		err = w.showExec(res, target.exec)
		diff.Exec = uint64(target.exec)
	case target.group != "":
		err = w.showGroup(res, target.group)
		diff.Seqs = res.Seqs
	case target.from != "":
		return nil, Fail(CodeUsage, "show %s: that is what `winkfs diff %s` does", req.What, req.What)
	default:
		err = w.showRecord(res, target.seq)
		diff.Seqs = []uint64{uint64(target.seq)}
	}
	if err != nil {
		return nil, err
	}
	diff.From, diff.To = strconv.FormatUint(res.From, 10), strconv.FormatUint(res.To, 10)
	res.Entries, err = w.entries(ctx, diff)
	return res, err
}

func (w *Workspace) showGroup(res *ShowResult, name string) error {
	g, err := w.group(name)
	if err != nil {
		return err
	}
	recs, err := w.groupRecords(g)
	if err != nil {
		return err
	}
	res.Group, res.From, res.To, res.Seqs = g.info(), uint64(g.begin), uint64(g.begin), []uint64{}
	for _, r := range recs {
		if len(r.Changes) > 0 {
			res.Seqs = append(res.Seqs, uint64(r.Seq))
			res.To = uint64(r.Seq)
		}
	}
	return nil
}

func (w *Workspace) showRecord(res *ShowResult, seq journal.Seq) error {
	r, err := w.record(seq)
	if err != nil {
		return err
	}
	res.Record, res.From, res.To = logEntry(r), uint64(seq-1), uint64(seq)
	return nil
}

// record returns one record.
func (w *Workspace) record(seq journal.Seq) (*journal.Record, error) {
	if head := w.store.Head(); seq == 0 || seq > head {
		return nil, Fail(CodeNothing, "find record %d: the last record is %d", seq, head)
	}
	var rec *journal.Record
	err := w.store.Records(seq, seq, func(r *journal.Record) error {
		rec = r
		return nil
	})
	if err == nil && rec == nil {
		err = fmt.Errorf("find record %d: the journal has no such record", seq)
	}
	return rec, err
}

func (w *Workspace) showExec(res *ShowResult, id journal.ExecID) error {
	x, err := w.exec(id)
	if err != nil {
		return err
	}
	recs, err := w.recordsOf(id)
	if err != nil {
		return err
	}
	last := w.lastOf(x)
	res.From, res.To = uint64(x.First-1), uint64(last)
	res.Exec = &ExecInfo{
		ID: uint64(x.ID), Command: x.Command, Cwd: x.Cwd, Runner: x.Runner, Begin: TimeOf(x.Begin), End: TimeOf(x.End),
		Running: x.Last == 0, ExitCode: x.ExitCode, TimedOut: x.TimedOut, Seq: [2]uint64{uint64(x.First), uint64(last)}, Records: len(recs),
	}
	return nil
}

// entries returns the entries of a diff's document.
func (w *Workspace) entries(ctx context.Context, req *DiffRequest) ([]diffview.Entry, error) {
	var b bytes.Buffer
	if _, err := w.Diff(ctx, req, &b); err != nil {
		return nil, err
	}
	doc := &diffview.Document{}
	if err := json.Unmarshal(b.Bytes(), doc); err != nil {
		return nil, fmt.Errorf("decode difference: %w", err)
	}
	return doc.Entries, nil
}
