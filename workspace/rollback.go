package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// Rollback returns the workspace, or some paths, to a point.
func (w *Workspace) Rollback(_ context.Context, req *RollbackRequest) (*HistoryResult, error) {
	point, err := w.resolve(req.Point)
	if err != nil {
		return nil, err
	}
	return w.returnTo(journal.OpRollback, point, req.Paths, req.DryRun)
}

// Discard drops the changes of the workspace or of some paths.
func (w *Workspace) Discard(_ context.Context, req *DiscardRequest) (*HistoryResult, error) {
	return w.returnTo(journal.OpDiscard, 0, req.Paths, req.DryRun)
}

func (w *Workspace) returnTo(op journal.Op, point journal.Seq, paths []string, dryRun bool) (*HistoryResult, error) {
	w.admin.Lock()
	defer w.admin.Unlock()
	floor, err := w.floor()
	if err != nil {
		return nil, err
	}
	point = max(point, floor)
	return w.attempt(func() (c *change, res *HistoryResult, err error) {
		res = &HistoryResult{Point: uint64(point), DryRun: dryRun}
		if len(paths) > 0 || point == floor && w.store.First() > point+1 {
			c, err = w.revertPaths(op, point, newPathSet(paths), res)
		} else {
			c, err = w.revertAll(op, point, res)
		}
		return c, res, err
	})
}

// revertAll works out the inverse of everything behind the point.
func (w *Workspace) revertAll(op journal.Op, point journal.Seq, res *HistoryResult) (*change, error) {
	now := w.tree.Snapshot()
	head := now.Seq()
	if point > head {
		return nil, Fail(CodeNothing, "return to %d: the last record is %d", point, head)
	}
	var inverse journal.Inverter
	if err := w.store.AddTo(&inverse, point+1, head); err != nil {
		return nil, err
	}
	rec := &journal.Record{Op: op, Actor: w.person(), Note: &journal.Note{Point: point}, Changes: inverse.Changes()}
	c := &change{head: head, rec: rec, needs: inverse.Nodes(), before: now}
	var err error
	if c.after, err = w.tree.Changed(now, c.needs, rec.Changes, point); err != nil {
		return nil, err
	}
	if c.changed, err = tree.Changes(now, c.after); err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	res.Undone = inverse.Changed()
	c.again = func(s *journal.State) error {
		since, err := w.records(head+1, s.Seq)
		if err != nil {
			return err
		}
		if buries(since) {
			return errMoved
		}
		for _, r := range since {
			inverse.Add(r)
		}
		rec.Changes = inverse.Changes()
		return nil
	}
	return c, nil
}

// buries reports whether one of the records took a file's last name, so that its
// bytes may have been dropped from memory.
func buries(recs []*journal.Record) bool {
	for _, r := range recs {
		for _, c := range r.Changes {
			if c.Node != nil && (c.Node.After == nil || c.Node.After.Own && c.Node.After.Attr.Nlink == 0) {
				return true
			}
		}
	}
	return false
}

// viewAt returns the view of a point. The one before all changes is known even
// where history begins later.
func (w *Workspace) viewAt(point journal.Seq) (*tree.View, error) {
	base, err := w.tree.Base()
	if err != nil || point <= base.Seq() {
		return base, err
	}
	return w.tree.At(point)
}

// revertPaths makes some paths, or with none all, as they were at the point.
func (w *Workspace) revertPaths(op journal.Op, point journal.Seq, paths pathSet, res *HistoryResult) (*change, error) {
	now := w.tree.Snapshot()
	then, err := w.viewAt(point)
	if err != nil {
		return nil, err
	}
	all, err := tree.ChangesOfNodes(then, now)
	if err != nil {
		return nil, err
	}
	changed := paths.only(all)
	if err := paths.moves(changed); err != nil {
		return nil, err
	}
	changes, err := tree.Revert(then, now, changed)
	if errors.Is(err, tree.ErrNotExist) || errors.Is(err, tree.ErrOtherName) {
		return nil, Wrap(CodeConflict, err, "return to %d", point)
	}
	if err != nil {
		return nil, err
	}
	res.Undone = len(changed)
	text, err := json.Marshal(map[string]any{"paths": paths})
	if err != nil {
		return nil, fmt.Errorf("encode paths: %w", err)
	}
	rec := &journal.Record{Op: op, Actor: w.person(), Note: &journal.Note{Point: point, Text: string(text)}, Changes: changes}
	needs := changedIDs(changed)
	after, err := w.cloneState(needs)
	if err != nil {
		return nil, err
	}
	if after.Seq != now.Seq() {
		return nil, errMoved
	}
	for i := range changes {
		after.ApplyChange(&changes[i])
	}
	return &change{
		head: now.Seq(), rec: rec, needs: needs, before: now, after: w.viewOf(after), changed: inverted(changed),
		again: func(*journal.State) error { return errMoved },
	}, nil
}

// moves refuses to return one end of a move without the other.
func (s pathSet) moves(changed []tree.Changed) error {
	var conflicts []Conflict
	for _, c := range changed {
		if c.Old == nil || c.New == nil || s.has(c.Old.Path) && s.has(c.New.Path) {
			continue
		}
		in, out := c.Old.Path, c.New.Path
		if !s.has(in) {
			in, out = out, in
		}
		conflicts = append(conflicts, Conflict{Path: in, Reason: "it was renamed between here and " + out + ": name both"})
	}
	if len(conflicts) == 0 {
		return nil
	}
	e := Fail(CodeConflict, "return paths: %d of them moved across what was named", len(conflicts))
	e.Conflicts = conflicts
	return e
}

func changedIDs(changed []tree.Changed) []journal.NodeID {
	var ids []journal.NodeID
	for _, c := range changed {
		for _, it := range []*tree.Item{c.Old, c.New} {
			if it != nil {
				ids = append(ids, it.ID())
			}
		}
	}
	return ids
}

// inverted swaps the sides of changes.
func inverted(changed []tree.Changed) []tree.Changed {
	out := make([]tree.Changed, len(changed))
	for i, c := range changed {
		out[i] = tree.Changed{Old: c.New, New: c.Old}
	}
	return out
}
