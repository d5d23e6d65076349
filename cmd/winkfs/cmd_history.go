package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/workspace"
)

type historyOptions struct {
	workspace string
	dryRun    bool
	yes       bool
}

func (o *historyOptions) flags(e *env) []cli.Flag {
	return []cli.Flag{workspaceFlag(&o.workspace), jsonFlag(e), dryRunFlag(&o.dryRun), yesFlag(&o.yes)}
}

func newRollbackCommand(e *env) *cli.Command {
	var o historyOptions
	return &cli.Command{
		Name: "rollback", Usage: "return the workspace, or some paths, to a point", ArgsUsage: "POINT [PATH...]",
		Description: "POINT is a record's number (0 = the beginning), exec:N (before that command), a checkpoint,\na time or a duration ago. A rollback is journaled: `winkfs redo` takes it back.",
		Flags:       o.flags(e),
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return usage("rollback needs a point: a number, exec:N, a checkpoint or a time")
			}
			return e.history(c.Context, o, c.Args().Tail(), func(ctx context.Context, ops workspace.Operations, paths []string) (*workspace.HistoryResult, error) {
				return ops.Rollback(ctx, &workspace.RollbackRequest{Point: c.Args().First(), Paths: paths, DryRun: o.dryRun})
			})
		},
	}
}

func newUndoCommand(e *env) *cli.Command {
	var o historyOptions
	return &cli.Command{
		Name: "undo", Usage: "revert one command or record and keep later work", ArgsUsage: "exec:N|SEQ [PATH...]",
		Flags: o.flags(e),
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return usage("undo needs what to undo: exec:N or a record's number")
			}
			return e.history(c.Context, o, c.Args().Tail(), func(ctx context.Context, ops workspace.Operations, paths []string) (*workspace.HistoryResult, error) {
				return ops.Undo(ctx, &workspace.UndoRequest{What: c.Args().First(), Paths: paths, DryRun: o.dryRun})
			})
		},
	}
}

func newRedoCommand(e *env) *cli.Command {
	var o historyOptions
	return &cli.Command{
		Name: "redo", Usage: "take back the last undo, rollback or discard",
		Flags: o.flags(e),
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			return e.history(c.Context, o, nil, func(ctx context.Context, ops workspace.Operations, _ []string) (*workspace.HistoryResult, error) {
				return ops.Redo(ctx, &workspace.RedoRequest{DryRun: o.dryRun})
			})
		},
	}
}

func newDiscardCommand(e *env) *cli.Command {
	var o historyOptions
	return &cli.Command{
		Name: "discard", Usage: "drop changes; the journal keeps them", ArgsUsage: "[PATH...]",
		Flags: o.flags(e),
		Action: func(c *cli.Context) error {
			if !o.dryRun {
				if err := e.confirm(o.yes, discardQuestion(c.Args().Slice())); err != nil {
					return err
				}
			}
			return e.history(c.Context, o, c.Args().Slice(), func(ctx context.Context, ops workspace.Operations, paths []string) (*workspace.HistoryResult, error) {
				return ops.Discard(ctx, &workspace.DiscardRequest{Paths: paths, DryRun: o.dryRun})
			})
		},
	}
}

func discardQuestion(paths []string) string {
	if len(paths) == 0 {
		return "Discard all changes of the workspace?"
	}
	return fmt.Sprintf("Discard the changes of %d path(s)?", len(paths))
}

type historyFunc func(context.Context, workspace.Operations, []string) (*workspace.HistoryResult, error)

// history runs an operation on the history and shows what it changed.
func (e *env) history(ctx context.Context, o historyOptions, args []string, fn historyFunc) error {
	mode := workspace.ReadWrite
	if o.dryRun {
		mode = workspace.ReadOnly
	}
	return e.withWorkspace(ctx, o.workspace, mode, func(ops workspace.Operations) error {
		paths, err := e.paths(ctx, ops, args)
		if err != nil {
			return err
		}
		res, err := fn(ctx, ops, paths)
		if err != nil {
			return err
		}
		if e.globals.json {
			return e.emit(res)
		}
		e.writeHistory(res)
		return nil
	})
}

func (e *env) writeHistory(res *workspace.HistoryResult) {
	writeEffects(e.stdout, &res.Changes)
	switch {
	case res.DryRun:
		e.note("%d record(s) would be reverted", res.Undone)
	case res.Seq == 0:
		e.note("nothing to change")
	default:
		e.note("%d record(s) reverted by record %d", res.Undone, res.Seq)
	}
}
