package workspace

import (
	"context"
	"errors"
	"fmt"

	"github.com/winkfs/winkfs/apply"
	"github.com/winkfs/winkfs/fs/tree"
)

// drift returns the changed paths below which the host has changed since the
// workspace first touched them. What counts is what apply refuses, since a
// dry run of it is asked: identity, type, mode, size and times as they were
// recorded at copy-up, unless the host has come to what the workspace wants.
func (w *Workspace) drift(ctx context.Context, now *tree.View, changed []tree.Changed) ([]Conflict, error) {
	out := []Conflict{}
	if len(changed) == 0 {
		return out, nil
	}
	if !w.admin.TryLock() {
		return out, errors.New("an apply or an undo is under way")
	}
	defer w.admin.Unlock()
	found, err := w.driftOf(ctx, now, w.unsure(now, changed))
	if err != nil || len(found) == 0 {
		return out, err
	}
	return w.driftOf(ctx, now, changed)
}

// driftOf asks apply about some changes.
// Preconditions: w.admin is held.
func (w *Workspace) driftOf(ctx context.Context, now *tree.View, changed []tree.Changed) ([]Conflict, error) {
	p := &applyPlan{w: w, now: now, changed: changed}
	if err := p.items(); err != nil {
		return []Conflict{}, err
	}
	roots, done, err := w.openRoots()
	if err != nil {
		return []Conflict{}, err
	}
	defer done()
	res, err := apply.Run(ctx, p.list, w.applyOptions(roots, true))
	if !errors.Is(err, apply.ErrConflict) || res == nil {
		return []Conflict{}, err
	}
	return p.conflicts(res), nil
}

// addDrift puts the drift into the status, or says why it is not known.
func (w *Workspace) addDrift(ctx context.Context, st *Status, now *tree.View, changed []tree.Changed) {
	var err error
	if st.Drift, err = w.drift(ctx, now, changed); err != nil {
		st.Degraded = append(st.Degraded, fmt.Sprintf("which changed files the host has changed too is not known: %v", err))
	}
}
