package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/cmd/winkfs/internal/control"
	"github.com/winkfs/winkfs/workspace"
)

type mergeOptions struct {
	workspace string
	dryRun    bool
}

func newMergeCommand(e *env) *cli.Command {
	var o mergeOptions
	return &cli.Command{
		Name: "merge", Usage: "bring a fork's changes into the workspace that it was made of", ArgsUsage: "FORK",
		Description: "FORK is a workspace made by `winkfs clone --with-changes`. Both may be mounted and in use. What only the fork\nchanged is taken, text that both changed is merged by lines, and if anything else was changed in both nothing\nis changed at all (exit status 5). A merge is one record: `winkfs undo SEQ` takes it back. The fork stays as it\nis: work on in it and merge again, or `winkfs rm` it.",
		Flags:       []cli.Flag{workspaceFlag(&o.workspace), jsonFlag(e), dryRunFlag(&o.dryRun)},
		Action: func(c *cli.Context) error {
			if c.Args().Len() != 1 {
				return usage("merge needs the fork to merge: winkfs merge FORK")
			}
			return runMerge(c.Context, e, o, c.Args().First())
		},
	}
}

func runMerge(ctx context.Context, e *env, o mergeOptions, ref string) error {
	reg, err := e.registry()
	if err != nil {
		return err
	}
	fork, err := reg.Find(ref)
	if err != nil {
		return err
	}
	parent, err := e.parentOf(reg, fork, o.workspace)
	if err != nil {
		return err
	}
	mode := workspace.ReadWrite
	if o.dryRun {
		mode = workspace.ReadOnly
	}
	ops, closeOps, err := e.open(parent, mode)
	if err != nil {
		return err
	}
	res, err := e.merge(ctx, reg, fork, ops, o.dryRun)
	if cerr := closeOps(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if e.globals.json {
		return e.emit(res)
	}
	e.writeMerge(parent, res)
	return nil
}

// parentOf returns the workspace that a fork was made of. One that was named
// must be that one.
func (e *env) parentOf(reg *workspace.Registry, fork *workspace.Entry, named string) (*workspace.Entry, error) {
	p := fork.Config.Parent
	if p == nil {
		return nil, workspace.Fail(workspace.CodeUsage, "merge %s: it is no fork of another workspace", shown(fork)).
			Hinted("only what `winkfs clone --with-changes` made can be merged; `winkfs apply` writes a workspace's changes to its sources")
	}
	if named != "" {
		into, err := reg.Find(named)
		if err != nil {
			return nil, err
		}
		if into.ID != p.ID {
			return nil, workspace.Fail(workspace.CodeUsage, "merge %s into %s: it is a fork of %s", shown(fork), shown(into), parentName(p)).
				Hinted("a fork is merged into the workspace that it was made of")
		}
		return into, nil
	}
	into, err := reg.Find(p.ID)
	if into == nil || into.ID != p.ID {
		return nil, workspace.Wrap(workspace.CodeUnknown, err, "merge %s: its parent %s is gone", shown(fork), parentName(p)).
			Hinted("`winkfs apply -w %s` writes its changes to the sources", shown(fork))
	}
	return into, err
}

// merge merges a fork. One that is in use is read from a snapshot.
func (e *env) merge(ctx context.Context, reg *workspace.Registry, fork *workspace.Entry, into workspace.Operations, dryRun bool) (*workspace.MergeResult, error) {
	req := &workspace.MergeRequest{Workspace: fork.ID, DryRun: dryRun}
	if !fork.Live {
		return into.Merge(ctx, req)
	}
	snap, err := snapshot(ctx, reg, fork)
	if err != nil {
		return nil, err
	}
	req.Snapshot = snap.Name()
	res, err := into.Merge(ctx, req)
	return res, errors.Join(err, snap.Remove())
}

// snapshot puts the journal of a live workspace aside for reading.
func snapshot(ctx context.Context, reg *workspace.Registry, entry *workspace.Entry) (*workspace.Snapshot, error) {
	c := control.NewClient(entry.Dir)
	defer c.Close()
	return workspace.NewSnapshot(ctx, reg, entry, c)
}

func (e *env) writeMerge(parent *workspace.Entry, res *workspace.MergeResult) {
	writeEffects(e.stdout, &res.Changes)
	for _, p := range res.Merged {
		e.note("merged by lines: %s", printable(p))
	}
	switch {
	case res.DryRun:
		e.note("nothing was changed: this was a dry run")
	case res.Seq == 0:
		e.note("nothing to merge")
	default:
		e.note("merged up to its record %d by record %d; take it back: winkfs undo -w %s %d", res.From, res.Seq, printable(shown(parent)), res.Seq)
	}
}
