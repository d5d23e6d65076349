package main

import (
	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/hydrate"
	"github.com/winkfs/winkfs/workspace"
)

// newWalkCommand is what the daemon starts after mounting.
func newWalkCommand() *cli.Command {
	return &cli.Command{
		Name: workspace.WalkCommand, Hidden: true,
		Action: func(c *cli.Context) error { return runWalk(c.Args().First()) },
	}
}

// runWalk takes the lowest priority first: whoever works in the mount goes
// before.
func runWalk(dir string) error {
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 19)
	_, err := hydrate.Walk(dir, workspace.WalkEntries)
	return err
}
