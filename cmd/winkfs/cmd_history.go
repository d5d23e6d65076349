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
		Name: "undo", Usage: "revert one command or record and keep later work", ArgsUsage: "exec:N|group:N|SEQ|FROM..TO [PATH...]",
		Description: "Reverts a command (exec:N), a group of commands (group:N or group:NAME, see `winkfs begin`), one record\n" +
			"(its number in `winkfs log`), or all that happened between two points (FROM..TO; FROM.. up to now); with\n" +
			"paths, only what it did there. Files that later work changed too merge line by line if they are text. If\n" +
			"anything can't be reverted, nothing is, the conflicts are listed with both commands, and the exit status\n" +
			"is 5. An undo is journaled: `winkfs redo` takes it back.",
		Flags: o.flags(e),
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return usage("undo needs what to undo: exec:N, group:N, a record's number or FROM..TO")
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
		if workspace.CodeOf(err) == workspace.CodeConflict {
			return e.refused(err)
		}
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

// refused shows what stands in the way of a change of history, which has
// changed nothing, and returns the error that says so.
func (e *env) refused(err error) error {
	list := workspace.AsError(err).Conflicts
	if e.globals.json {
		res := &workspace.HistoryResult{Schema: workspace.HistorySchema, Restored: []string{}, Merged: []string{}, Refused: list}
		res.Changes = workspace.NoEffects()
		if werr := e.emit(res); werr != nil {
			return werr
		}
		return err
	}
	for _, c := range list {
		fmt.Fprintf(e.stdout, "C %s: %s\n", printable(c.Path), printable(c.Reason))
	}
	e.note("0 restored, 0 merged, %d refused", len(list))
	return &toldConflicts{err}
}

// toldConflicts is an error whose conflicts have been printed.
type toldConflicts struct{ err error }

func (t *toldConflicts) Error() string { return t.err.Error() }
func (t *toldConflicts) Unwrap() error { return t.err }

func (e *env) writeHistory(res *workspace.HistoryResult) {
	writeEffects(e.stdout, &res.Changes)
	for _, p := range res.Merged {
		fmt.Fprintf(e.stdout, "merged %s: later work stays in it\n", printable(p))
	}
	e.note("%d restored, %d merged, 0 refused", len(res.Restored), len(res.Merged))
	switch {
	case res.DryRun:
		e.note("%d record(s) would be reverted", res.Undone)
	case res.Seq == 0:
		e.note("nothing to change")
	default:
		e.note("%d record(s) reverted by record %d", res.Undone, res.Seq)
	}
}
