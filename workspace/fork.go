package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	iofs "io/fs"
	"path/filepath"
	"strings"

	"github.com/winkfs/winkfs/journal"
)

// forkNote is what a clone's first own record says in Note.Text.
type forkNote struct {
	Parent string `json:"parent"` // id of the workspace
	Name   string `json:"name,omitempty"`
	// Seq is the last record that both have. The note's Point, which may be
	// older, is the point whose state the clone begins with.
	Seq       journal.Seq    `json:"seq"`
	NextNode  journal.NodeID `json:"next_node"`  // nodes made since have this number or a higher one
	FirstFile uint32         `json:"first_file"` // files of the store below it are the parent's, too
}

// Fork makes the journal of a clone in a directory of the state root that the
// caller is making, in the state that the workspace has or had at a point.
func (w *Workspace) Fork(_ context.Context, req *ForkRequest) (*ForkResult, error) {
	dir, err := w.forkDir(req.Into)
	if err != nil {
		return nil, err
	}
	res := &ForkResult{}
	_, err = w.store.Fork(dir, func(p journal.ForkPoint) (*journal.Record, error) {
		rec, err := w.cloneRecord(p, req.At)
		if err != nil {
			return nil, err
		}
		res.Seq = uint64(rec.Note.Point)
		return rec, nil
	})
	if errors.Is(err, iofs.ErrExist) {
		return nil, Wrap(CodeUsage, err, "clone workspace %s", w.entry.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("clone workspace %s: %w", w.entry.ID, err)
	}
	w.touchRuntime()
	return res, nil
}

// forkDir returns the directory to fork into: one beside the workspace's own
// that is marked as being made.
func (w *Workspace) forkDir(into string) (string, error) {
	known := strings.HasPrefix(into, dirPrefix) || strings.HasPrefix(into, snapPrefix)
	if !known || filepath.Base(into) != into {
		return "", Fail(CodeUsage, "clone workspace %s: %q is no directory of the state root", w.entry.ID, into)
	}
	dir := filepath.Join(w.root(), into)
	if !incomplete(dir) {
		return "", Fail(CodeUsage, "clone workspace %s: %s is not waiting for a clone", w.entry.ID, dir).At(dir)
	}
	return dir, nil
}

// cloneRecord returns the record that a clone begins with. For an older point
// it takes everything since back.
func (w *Workspace) cloneRecord(p journal.ForkPoint, at string) (*journal.Record, error) {
	text, err := json.Marshal(forkNote{w.entry.ID, w.cfg.Name, p.Seq, p.NextNode, p.FirstFile})
	if err != nil {
		return nil, fmt.Errorf("encode note: %w", err)
	}
	rec := &journal.Record{Op: journal.OpClone, Actor: w.person(), Note: &journal.Note{Point: p.Seq, Text: string(text)}}
	if at == "" {
		return rec, nil
	}
	point, err := w.resolve(at)
	if err != nil {
		return nil, err
	}
	floor, err := w.floor()
	if err != nil {
		return nil, err
	}
	rec.Note.Point = min(max(point, floor), p.Seq)
	var inverse journal.Inverter
	err = w.store.AddTo(&inverse, rec.Note.Point+1, p.Seq)
	rec.Changes = inverse.Changes()
	return rec, err
}
