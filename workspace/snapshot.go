package workspace

import (
	"context"
	"errors"
	"path/filepath"
)

// Snapshot is a workspace's journal as it was at some moment, in a directory
// of its own, for reading a workspace that another process has open.
type Snapshot struct {
	b     *birth
	entry *Entry
}

// NewSnapshot has the journal of a live workspace put aside. Nothing of its
// contents is copied (see Clone).
func NewSnapshot(ctx context.Context, r *Registry, e *Entry, ops Operations) (*Snapshot, error) {
	b, err := r.begin(snapPrefix + NewID())
	if err != nil {
		return nil, err
	}
	if _, err := ops.Fork(ctx, &ForkRequest{Into: filepath.Base(b.dir)}); err != nil {
		return nil, errors.Join(err, b.abandon())
	}
	return &Snapshot{b: b, entry: &Entry{ID: e.ID, Dir: b.dir, Config: e.Config, Runtime: &Runtime{}}}, nil
}

// Name returns the name of the directory.
func (s *Snapshot) Name() string { return filepath.Base(s.b.dir) }

// Entry returns what to open for reading.
func (s *Snapshot) Entry() *Entry { return s.entry }

// Remove removes the directory.
func (s *Snapshot) Remove() error { return s.b.abandon() }
