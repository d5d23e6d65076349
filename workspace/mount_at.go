package workspace

import (
	"context"
	"fmt"
	"slices"

	fusefs "github.com/winkfs/winkfs/fs"
	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// pastMount is a past state that is mounted.
type pastMount struct {
	*fusefs.Mount
	point journal.Seq
}

// MountAt mounts the workspace as it was at a point, read-only and beside the
// live mount if there is one. It goes on until it is unmounted, or until the
// workspace is closed. What the workspace hadn't changed then shows as the
// sources have it now.
func (w *Workspace) MountAt(_ context.Context, req *MountAtRequest) (*MountAtResult, error) {
	if m, err := w.mount(); err == nil && m.private {
		return nil, Fail(CodeFailure, "mount past state: the workspace lives in a mount namespace of its own, where nobody would see it").
			Hinted("end the run first, then mount")
	}
	point, err := w.resolve(req.Point)
	if err != nil {
		return nil, err
	}
	floor, err := w.floor()
	if err != nil {
		return nil, err
	}
	point = max(point, floor)
	if err := CheckMount(w.root(), w.cfg, req.Mountpoint); err != nil {
		return nil, err
	}
	// History behind the point stays as long as the mount does.
	release, err := w.store.Hold(point)
	if err != nil {
		return nil, err
	}
	t, err := w.past(point)
	if err != nil {
		release()
		return nil, err
	}
	m, err := fusefs.Serve(fusefs.MountConfig{
		Dir: req.Mountpoint, ID: fmt.Sprintf("%s@%d", w.entry.ID, point), ReadOnly: true, AllowOther: req.AllowOther,
	}, t, w.log)
	if err != nil {
		release()
		return nil, mountError(req.Mountpoint, err)
	}
	w.addPast(&pastMount{m, point}, release)
	return &MountAtResult{Schema: "winkfs.mount-at/v1", ID: w.entry.ID, Mountpoint: m.Dir(), Point: uint64(point)}, nil
}

// past returns the read-only tree of a point. It shares the workspace's lower
// directories and must not be closed.
func (w *Workspace) past(point journal.Seq) (*tree.Tree, error) {
	s, err := w.tree.StateAt(point)
	if err != nil {
		return nil, err
	}
	return tree.New(tree.Config{
		Store: w.store, State: s, Lower: w.low, Sources: w.sources, StateDir: w.entry.Dir,
		Logger: w.log, ReadOnly: true, Decider: newDecider(w.cfg), Profile: w.cfg.profile(),
	})
}

// addPast remembers a past mount as long as it lasts.
func (w *Workspace) addPast(m *pastMount, release func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pasts = append(w.pasts, m)
	go func() {
		m.Wait()
		release()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.pasts = slices.DeleteFunc(w.pasts, func(p *pastMount) bool { return p == m })
	}()
}

// endPasts unmounts the past mounts, even those in use: without the workspace
// nobody serves them.
func (w *Workspace) endPasts() {
	w.mu.Lock()
	pasts := slices.Clone(w.pasts)
	w.mu.Unlock()
	for _, m := range pasts {
		if err := m.Unmount(true); err != nil {
			w.log.Warn("past mount stays", "mountpoint", m.Dir(), "err", err)
		}
	}
}

// PastDone is closed when no past mount is left. There must be one.
func (w *Workspace) PastDone() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pasts[0].Done()
}

// pastInfo lists the past mounts.
func (w *Workspace) pastInfo() []PastInfo {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := []PastInfo{}
	for _, m := range w.pasts {
		out = append(out, PastInfo{Mountpoint: m.Dir(), Point: uint64(m.point)})
	}
	return out
}
