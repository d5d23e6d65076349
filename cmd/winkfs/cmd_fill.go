package main

import (
	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/hydrate"
	"github.com/winkfs/winkfs/workspace"
)

// newFillCommand is what the daemon starts after mounting a new workspace whose
// upper directory holds files already.
func newFillCommand() *cli.Command {
	return &cli.Command{
		Name: workspace.FillCommand, Hidden: true,
		Action: func(c *cli.Context) error {
			return hydrate.Fill(c.Args().Get(0), c.Args().Get(1), workspace.IsState)
		},
	}
}
