package workspace

import (
	"cmp"
	"context"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/tree"
)

// Status returns the workspace's status.
func (w *Workspace) Status(ctx context.Context) (*Status, error) {
	now, changed, err := w.compared()
	if err != nil {
		return nil, err
	}
	st := &Status{
		Schema: "winkfs.status/v1", ID: w.entry.ID, Name: w.cfg.Name, Workdir: w.cfg.Exec.Workdir, Sources: w.cfg.Sources,
		First: uint64(w.store.First()), Head: uint64(w.store.Head()), Changes: countChanges(changed), Isolation: "ns", Degraded: []string{}, Past: w.pastInfo(),
		Policy: Policy{Symlinks: "allow", Audit: cmp.Or(w.cfg.Audit, AuditChanges), Exec: w.cfg.Exec},
	}
	st.Parent, st.Forks = w.cfg.Parent, w.forks()
	logBytes, dataBytes, dbBytes := w.store.Sizes()
	st.JournalBytes, st.ObjectBytes = logBytes+dbBytes, dataBytes
	w.mu.Lock()
	st.StartedAt, st.LastUsedAt, st.Mountpoint = w.runtime.StartedAt, w.runtime.LastUsedAt, w.runtime.Mountpoint
	m := w.mnt
	w.mu.Unlock()
	if m != nil {
		st.Mounted, st.PID = true, unix.Getpid()
		st.Degraded = w.degraded(m)
	}
	w.addDrift(ctx, st, now, changed)
	return st, nil
}

// countChanges counts the changed paths. A rename counts as one path that came
// and one that went.
func countChanges(changed []tree.Changed) (n ChangeCounts) {
	for _, c := range changed {
		switch {
		case c.Old == nil:
			n.Created++
		case c.New == nil:
			n.Deleted++
		case c.Old.Path != c.New.Path:
			n.Created++
			n.Deleted++
		default:
			n.Modified++
		}
	}
	return n
}

// changed returns what the workspace changed against its base.
func (w *Workspace) changed() ([]tree.Changed, error) {
	_, changed, err := w.compared()
	return changed, err
}

// compared returns the workspace as it is, and what it changed against its
// base.
func (w *Workspace) compared() (now *tree.View, changed []tree.Changed, err error) {
	base, err := w.tree.Base()
	if err != nil {
		return nil, nil, err
	}
	now = w.tree.Snapshot()
	changed, err = tree.Changes(base, now)
	return now, changed, err
}

// effects sorts changes by kind, for people and for results.
func effects(changed []tree.Changed) EffectSet {
	e := NoEffects()
	for _, c := range changed {
		switch {
		case c.Old == nil:
			e.Created = append(e.Created, c.New.Path)
		case c.New == nil:
			e.Deleted = append(e.Deleted, c.Old.Path)
		case c.Old.Path != c.New.Path:
			e.Renamed = append(e.Renamed, RenamedPath{c.Old.Path, c.New.Path})
		default:
			e.Modified = append(e.Modified, c.New.Path)
		}
	}
	return e
}

// NoEffects returns an EffectSet without a path.
func NoEffects() EffectSet {
	return EffectSet{Created: []string{}, Modified: []string{}, Deleted: []string{}, Renamed: []RenamedPath{}}
}
