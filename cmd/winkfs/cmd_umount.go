package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/workspace"
)

type umountOptions struct {
	workspace string
	lazy      bool
}

func newUmountCommand(e *env) *cli.Command {
	var o umountOptions
	return &cli.Command{
		Name: "umount", Aliases: []string{"unmount"}, Usage: "unmount a workspace; its changes are kept", ArgsUsage: "[WORKSPACE]",
		Flags: []cli.Flag{
			workspaceFlag(&o.workspace), jsonFlag(e),
			&cli.BoolFlag{Name: "lazy", Aliases: []string{"z"}, Usage: "detach even when it is in use", Destination: &o.lazy},
		},
		Action: func(c *cli.Context) (err error) {
			if o.workspace, err = oneWorkspace(c, o.workspace); err != nil {
				return err
			}
			return runUmount(c.Context, e, o)
		},
	}
}

func runUmount(ctx context.Context, e *env, o umountOptions) error {
	if o.workspace != "" && workspace.IsPastMount(o.workspace) {
		res, err := workspace.UnmountPast(o.workspace, o.lazy)
		if err != nil {
			return err
		}
		return e.unmounted(res)
	}
	entry, err := e.find(o.workspace)
	if err != nil {
		return err
	}
	if !entry.Live {
		return e.clearStale(entry)
	}
	ops, closeOps, err := e.open(entry, workspace.ReadOnly)
	if err != nil {
		return err
	}
	defer closeOps()
	res, err := ops.Unmount(ctx, &workspace.UnmountRequest{Lazy: o.lazy})
	if err != nil {
		return err
	}
	return e.unmounted(res)
}

func (e *env) unmounted(res *workspace.UnmountResult) error {
	if len(res.Holders) > 0 {
		return busyError(res)
	}
	if e.globals.json {
		return e.emit(res)
	}
	e.note("unmounted %s", printable(res.Mountpoint))
	return nil
}

// busyError lists who uses the mount.
func busyError(res *workspace.UnmountResult) error {
	err := workspace.Fail(workspace.CodeFailure, "unmount %s: it is in use", res.Mountpoint).
		Hinted("end these processes, or use --lazy")
	for _, h := range res.Holders {
		err.Conflicts = append(err.Conflicts, workspace.Conflict{Path: h.Path, Reason: holderText(h)})
	}
	return err
}

// clearStale unmounts what a dead daemon left behind.
func (e *env) clearStale(entry *workspace.Entry) error {
	healed, err := workspace.Heal(entry.Mountpoint())
	if err != nil {
		return err
	}
	if !healed {
		return workspace.Fail(workspace.CodeNotMounted, "unmount: workspace %s is not mounted", entry.ID)
	}
	e.note("the daemon was gone; the stale mount at %s was removed", printable(entry.Mountpoint()))
	return nil
}
