package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/workspace"
)

type checkpointOptions struct {
	workspace    string
	list, delete bool
}

func newCheckpointCommand(e *env) *cli.Command {
	var o checkpointOptions
	return &cli.Command{
		Name: "checkpoint", Usage: "name the present point, or list or delete names", ArgsUsage: "[NAME]",
		Flags: []cli.Flag{
			workspaceFlag(&o.workspace), jsonFlag(e),
			&cli.BoolFlag{Name: "list", Usage: "list the checkpoints", Destination: &o.list},
			&cli.BoolFlag{Name: "delete", Usage: "delete the name; no history is lost", Destination: &o.delete},
		},
		Action: func(c *cli.Context) error { return runCheckpoint(c.Context, e, o, c.Args().Slice()) },
	}
}

func runCheckpoint(ctx context.Context, e *env, o checkpointOptions, args []string) error {
	switch {
	case len(args) > 1:
		return usage("checkpoint takes one name")
	case o.list && (o.delete || len(args) > 0):
		return usage("checkpoint --list takes no name and no --delete")
	case o.delete && len(args) == 0:
		return usage("checkpoint --delete needs a name")
	}
	req := &workspace.CheckpointRequest{List: o.list, Delete: o.delete}
	if len(args) == 1 {
		req.Name = args[0]
	}
	mode := workspace.ReadWrite
	if o.list {
		mode = workspace.ReadOnly
	}
	return e.withWorkspace(ctx, o.workspace, mode, func(ops workspace.Operations) error {
		res, err := ops.Checkpoint(ctx, req)
		if err != nil {
			return err
		}
		if e.globals.json {
			return e.emit(res)
		}
		for _, c := range res.Checkpoints {
			fmt.Fprintf(e.stdout, "%s\t%d\t%s\n", printable(c.Name), c.Seq, c.Time)
		}
		return nil
	})
}
