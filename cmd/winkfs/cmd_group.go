package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/workspace"
)

func newBeginCommand(e *env) *cli.Command {
	var ref string
	return &cli.Command{
		Name: "begin", Usage: "let what follows count as one unit, until `winkfs end`", ArgsUsage: "[NAME]",
		Description: "Opens a group: every command that begins before `winkfs end`, with all it does, and what processes\n" +
			"outside of any command change meanwhile. `winkfs undo group:N` (or group:NAME) reverts it as one, and\n" +
			"`winkfs rollback group:N` returns to before it. Groups don't nest.",
		Flags: []cli.Flag{workspaceFlag(&ref), jsonFlag(e)},
		Action: func(c *cli.Context) error {
			if c.Args().Len() > 1 {
				return usage("begin takes one name")
			}
			return e.withGroup(c.Context, ref, func(ctx context.Context, ops workspace.Operations) (*workspace.GroupResult, error) {
				return ops.Begin(ctx, &workspace.BeginRequest{Name: c.Args().First()})
			})
		},
	}
}

func newEndCommand(e *env) *cli.Command {
	var ref string
	var discard bool
	return &cli.Command{
		Name: "end", Usage: "close the group that `winkfs begin` opened",
		Description: "With --discard the group is undone, too: what it changed is reverted, and `winkfs redo` takes that back.",
		Flags: []cli.Flag{
			workspaceFlag(&ref), jsonFlag(e),
			&cli.BoolFlag{Name: "discard", Usage: "undo the group, too", Destination: &discard},
		},
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			return e.withGroup(c.Context, ref, func(ctx context.Context, ops workspace.Operations) (*workspace.GroupResult, error) {
				return ops.End(ctx, &workspace.EndRequest{Discard: discard})
			})
		},
	}
}

// withGroup opens or closes a group and shows it.
func (e *env) withGroup(ctx context.Context, ref string, fn func(context.Context, workspace.Operations) (*workspace.GroupResult, error)) error {
	return e.withWorkspace(ctx, ref, workspace.ReadWrite, func(ops workspace.Operations) error {
		res, err := fn(ctx, ops)
		if workspace.CodeOf(err) == workspace.CodeConflict {
			return e.refused(err)
		}
		if err != nil {
			return err
		}
		if e.globals.json {
			return e.emit(res)
		}
		fmt.Fprintf(e.stdout, "group:%d\n", res.Group.ID)
		if res.Undo != nil {
			e.writeHistory(res.Undo)
		}
		return nil
	})
}
