package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/workspace"
)

type applyOptions struct {
	workspace   string
	yes, dryRun bool
}

func newApplyCommand(e *env) *cli.Command {
	var o applyOptions
	return &cli.Command{
		Name: "apply", Usage: "write changes to the sources", ArgsUsage: "[PATH...]",
		Description: "What the host changed since the workspace first touched it is a conflict: then nothing is written.",
		Flags:       []cli.Flag{workspaceFlag(&o.workspace), jsonFlag(e), yesFlag(&o.yes), dryRunFlag(&o.dryRun)},
		Action:      func(c *cli.Context) error { return runApply(c.Context, e, o, c.Args().Slice()) },
	}
}

func runApply(ctx context.Context, e *env, o applyOptions, args []string) error {
	return e.withWorkspace(ctx, o.workspace, workspace.ReadWrite, func(ops workspace.Operations) error {
		paths, err := e.paths(ctx, ops, args)
		if err != nil {
			return err
		}
		plan, err := ops.Apply(ctx, &workspace.ApplyRequest{Paths: paths, DryRun: true})
		if err != nil {
			return err
		}
		if o.dryRun || plan.Count() == 0 {
			return e.writeApplied(plan)
		}
		if err := e.confirm(o.yes, fmt.Sprintf("Apply %d change(s) to the sources?", plan.Count())); err != nil {
			return err
		}
		res, err := ops.Apply(ctx, &workspace.ApplyRequest{Paths: paths})
		if err != nil {
			return err
		}
		return e.writeApplied(res)
	})
}

func (e *env) writeApplied(res *workspace.ApplyResult) error {
	if e.globals.json {
		return e.emit(res)
	}
	writeEffects(e.stdout, &workspace.EffectSet{Created: res.Created, Modified: res.Modified, Deleted: res.Deleted})
	for _, p := range res.Skipped {
		e.note("skipped %s", printable(p))
	}
	switch {
	case res.DryRun:
		e.note("%d change(s) would be applied", res.Count())
	case res.Count() == 0:
		e.note("nothing to apply")
	default:
		e.note("Applied %d change(s).", res.Count())
	}
	return nil
}
