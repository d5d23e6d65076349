package workspace

import (
	"context"
	"fmt"

	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// Undo reverts one command or record and keeps what came later.
func (w *Workspace) Undo(_ context.Context, req *UndoRequest) (*HistoryResult, error) {
	t, err := parseTarget(req.What)
	if err != nil {
		return nil, err
	}
	w.admin.Lock()
	defer w.admin.Unlock()
	return w.attempt(func() (*change, *HistoryResult, error) {
		recs, err := w.toUndo(t, newPathSet(req.Paths), req.What)
		if err != nil {
			return nil, nil, err
		}
		return w.undo(journal.OpUndo, recs, seqsOf(recs), req.DryRun)
	})
}

// Redo takes back the last undo, rollback or discard that still stands.
func (w *Workspace) Redo(_ context.Context, req *RedoRequest) (*HistoryResult, error) {
	w.admin.Lock()
	defer w.admin.Unlock()
	return w.attempt(func() (*change, *HistoryResult, error) {
		h, err := w.revertedRecords()
		if err != nil {
			return nil, nil, err
		}
		rec, err := h.newest()
		if err != nil {
			return nil, nil, err
		}
		if rec == nil {
			return nil, nil, Fail(CodeNothing, "redo: there is no undo, rollback or discard to take back")
		}
		return w.undo(journal.OpRedo, []*journal.Record{rec}, []journal.Seq{rec.Seq}, req.DryRun)
	})
}

// undo works out the inverse of the records against what came later.
func (w *Workspace) undo(op journal.Op, recs []*journal.Record, undone []journal.Seq, dryRun bool) (*change, *HistoryResult, error) {
	u, err := w.planUndo(recs)
	if err != nil {
		return nil, nil, err
	}
	rec := &journal.Record{Op: op, Actor: w.person(), Note: &journal.Note{Undone: undone}, Changes: u.changes, Data: u.data}
	res := &HistoryResult{DryRun: dryRun, Undone: len(recs), Merged: u.paths}
	before, err := w.tree.At(u.head)
	if err != nil {
		return nil, nil, err
	}
	for i := range rec.Changes {
		u.now.ApplyChange(&rec.Changes[i])
	}
	c := &change{head: u.head, rec: rec, needs: tree.NodesOf(recs), before: before, after: w.viewOf(u.now)}
	c.again = func(s *journal.State) error {
		if err := u.again(s); err != nil {
			return err
		}
		rec.Changes = u.changes
		return nil
	}
	if c.changed, err = tree.Changes(c.before, c.after); err != nil {
		return nil, nil, fmt.Errorf("compare: %w", err)
	}
	return c, res, nil
}

// cloneState returns the state as it is, with the nodes that were dropped from
// memory.
func (w *Workspace) cloneState(needs []journal.NodeID) (*journal.State, error) {
	var s *journal.State
	if err := w.read(func(live *journal.State) { s = live.Clone() }); err != nil {
		return nil, err
	}
	return s, tree.Revive(s, w.store, needs)
}

func seqsOf(recs []*journal.Record) []journal.Seq {
	seqs := make([]journal.Seq, len(recs))
	for i, r := range recs {
		seqs[i] = r.Seq
	}
	return seqs
}
