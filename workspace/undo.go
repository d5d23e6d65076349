package workspace

import (
	"context"
	"slices"

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
	var res *HistoryResult
	err = attempt(func() error {
		recs, err := w.toUndo(t, newPathSet(req.Paths), req.What)
		if err != nil {
			return err
		}
		res = &HistoryResult{DryRun: req.DryRun}
		return w.undo(journal.OpUndo, recs, seqsOf(recs), res)
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// Redo takes back the last undo, rollback or discard that still stands.
func (w *Workspace) Redo(_ context.Context, req *RedoRequest) (*HistoryResult, error) {
	w.admin.Lock()
	defer w.admin.Unlock()
	var res *HistoryResult
	err := attempt(func() error {
		h, err := w.undone()
		if err != nil {
			return err
		}
		if len(h.standing) == 0 {
			return Fail(CodeNothing, "redo: there is no undo, rollback or discard to take back")
		}
		rec, err := w.record(h.standing[len(h.standing)-1])
		if err != nil {
			return err
		}
		res = &HistoryResult{DryRun: req.DryRun}
		return w.undo(journal.OpRedo, []*journal.Record{rec}, []journal.Seq{rec.Seq}, res)
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// undo works out the inverse of the records against what came later, and
// makes it.
func (w *Workspace) undo(op journal.Op, recs []*journal.Record, undone []journal.Seq, res *HistoryResult) error {
	u, err := w.planUndo(recs)
	if err != nil {
		return err
	}
	rec := &journal.Record{Op: op, Actor: w.person(), Note: &journal.Note{Undone: undone}, Changes: u.changes, Data: u.data}
	res.Undone = len(recs)
	before, err := w.tree.At(u.head)
	if err != nil {
		return err
	}
	if !res.DryRun {
		seq, err := w.commitAt(u.head, tree.NodesOf(recs), rec)
		if err != nil {
			return err
		}
		res.Seq = uint64(seq)
	}
	for i := range rec.Changes {
		u.now.ApplyChange(&rec.Changes[i])
	}
	return w.finish(res, before, w.viewOf(u.now))
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

// toUndo returns the records that a target means and that are not undone
// already.
func (w *Workspace) toUndo(t target, paths pathSet, name string) ([]*journal.Record, error) {
	all, err := w.targetRecords(t)
	if err != nil {
		return nil, err
	}
	h, err := w.undone()
	if err != nil {
		return nil, err
	}
	var recs []*journal.Record
	var by journal.Seq
	for _, r := range all {
		if len(r.Changes) == 0 || !paths.has(r.Path) && !paths.has(r.Path2) {
			continue
		}
		if by = h.by[r.Seq]; by == 0 {
			recs = append(recs, r)
		}
	}
	switch {
	case len(recs) > 0:
		return recs, nil
	case by != 0:
		return nil, Fail(CodeNothing, "undo %s: record %d undid it already", name, by).Hinted("`winkfs redo` takes the last undo back")
	case len(paths) > 0:
		return nil, Fail(CodeNothing, "undo %s: it changed nothing there", name)
	}
	return nil, Fail(CodeNothing, "undo %s: it changed nothing", name)
}

func (w *Workspace) targetRecords(t target) ([]*journal.Record, error) {
	if t.exec != 0 {
		return w.recordsOf(t.exec)
	}
	r, err := w.record(t.seq)
	if err != nil {
		return nil, err
	}
	if r.Note != nil && r.Note.Text == tree.Genesis {
		return nil, Fail(CodeNothing, "undo %d: it says where the sources show and can't be undone", t.seq)
	}
	if r.Op == journal.OpClone {
		return nil, Fail(CodeNothing, "undo %d: the fork began with it", t.seq).Hinted("`winkfs rollback %d` returns to what the parent had", t.seq-1)
	}
	return []*journal.Record{r}, nil
}

func seqsOf(recs []*journal.Record) []journal.Seq {
	seqs := make([]journal.Seq, len(recs))
	for i, r := range recs {
		seqs[i] = r.Seq
	}
	return seqs
}

// undoneRecords says which records are reverted at the head.
type undoneRecords struct {
	by       map[journal.Seq]journal.Seq   // record -> what reverted it
	reverts  map[journal.Seq][]journal.Seq // record -> what it reverted
	standing []journal.Seq                 // undos, rollbacks and discards not taken back, oldest first
}

// undone reads the history's own records.
func (w *Workspace) undone() (*undoneRecords, error) {
	h := &undoneRecords{by: map[journal.Seq]journal.Seq{}, reverts: map[journal.Seq][]journal.Seq{}}
	head := w.store.Head()
	if head == 0 {
		return h, nil
	}
	err := w.store.Records(0, head, func(r *journal.Record) error {
		switch r.Op {
		case journal.OpUndo, journal.OpRollback, journal.OpDiscard:
			h.take(r)
			h.standing = append(h.standing, r.Seq)
		case journal.OpRedo, journal.OpClone:
			h.take(r)
		}
		return nil
	})
	return h, err
}

// take notes that a record reverted others, and that what those had reverted
// stands again. A rollback or discard that is not limited to some paths
// reverts all behind its point.
func (h *undoneRecords) take(r *journal.Record) {
	if r.Note == nil {
		return
	}
	reverted := r.Note.Undone
	h.standing = slices.DeleteFunc(h.standing, func(s journal.Seq) bool { return slices.Contains(reverted, s) })
	if r.Op == journal.OpRollback || r.Op == journal.OpDiscard || r.Op == journal.OpClone {
		if r.Note.Text != "" && r.Op != journal.OpClone {
			return
		}
		for s := r.Note.Point + 1; s < r.Seq; s++ {
			reverted = append(reverted, s)
		}
	}
	h.reverts[r.Seq] = reverted
	for _, s := range reverted {
		for _, again := range h.reverts[s] {
			delete(h.by, again)
		}
	}
	for _, s := range reverted {
		h.by[s] = r.Seq
	}
}
