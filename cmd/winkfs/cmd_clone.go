package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/workspace"
)

type cloneOptions struct {
	workspace   string
	withChanges bool
	at          string
	policy      string
}

func newCloneCommand(e *env) *cli.Command {
	var o cloneOptions
	return &cli.Command{
		Name: "clone", Usage: "make another workspace over the same sources", ArgsUsage: "NAME",
		Description: "Without flags the clone is fresh: no changes, no history. With --with-changes it is a fork: it has the\nworkspace's changes and history and goes its own way from there; `winkfs merge NAME` brings what it\nchanges back. The workspace may be mounted and in use. Nothing of the contents is copied.",
		Flags: []cli.Flag{
			workspaceFlag(&o.workspace), jsonFlag(e),
			&cli.BoolFlag{Name: "with-changes", Usage: "fork: begin with the workspace's changes and history", Destination: &o.withChanges},
			&cli.StringFlag{Name: "at", Usage: "fork from the state at `POINT`", Destination: &o.at},
			&cli.StringFlag{Name: "policy", Usage: "narrow the configuration by that in `FILE`", Destination: &o.policy},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Len() != 1 {
				return usage("clone needs a name for the new workspace: winkfs clone [-w WORKSPACE] NAME")
			}
			return runClone(c.Context, e, o, c.Args().First())
		},
	}
}

func runClone(ctx context.Context, e *env, o cloneOptions, name string) error {
	if o.at != "" && !o.withChanges {
		return usage("clone --at needs --with-changes: a fresh clone has no history")
	}
	parent, err := e.find(o.workspace)
	if err != nil {
		return err
	}
	reg, err := e.registry()
	if err != nil {
		return err
	}
	opts := workspace.CloneOptions{Name: name, WithChanges: o.withChanges, At: o.at}
	if o.policy != "" {
		if opts.Policy, err = parent.LoadPolicy(o.policy); err != nil {
			return err
		}
	}
	entry, err := e.clone(ctx, reg, parent, opts)
	if err != nil {
		return err
	}
	if e.globals.json {
		return e.emit(workspace.CloneResultOf(entry))
	}
	fmt.Fprintln(e.stdout, entry.ID)
	if p := entry.Config.Parent; p != nil {
		e.note("%s is a fork of %s at record %d; mount it: winkfs mount -w %s MOUNTPOINT", printable(name), printable(shown(parent)), p.Seq, printable(name))
	} else {
		e.note("mount it: winkfs mount -w %s MOUNTPOINT", printable(name))
	}
	return nil
}

func (e *env) clone(ctx context.Context, reg *workspace.Registry, parent *workspace.Entry, o workspace.CloneOptions) (*workspace.Entry, error) {
	if !o.WithChanges {
		return workspace.Clone(ctx, reg, parent, nil, o)
	}
	ops, closeOps, err := e.open(parent, workspace.ReadWrite)
	if err != nil {
		return nil, err
	}
	entry, err := workspace.Clone(ctx, reg, parent, ops, o)
	if cerr := closeOps(); err == nil {
		err = cerr
	}
	return entry, err
}
