package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/workspace"
)

func newVerifyCommand(e *env) *cli.Command {
	var ref string
	var repair bool
	return &cli.Command{
		Name: "verify", Usage: "check the journal, its hash chain and its contents", ArgsUsage: "[WORKSPACE]",
		Flags: []cli.Flag{
			workspaceFlag(&ref), jsonFlag(e),
			&cli.BoolFlag{Name: "repair", Usage: "rebuild the database from the log; the old one is kept beside it", Destination: &repair},
		},
		Action: func(c *cli.Context) error {
			name, err := oneWorkspace(c, ref)
			if err != nil {
				return err
			}
			return runVerify(c.Context, e, name, repair)
		},
	}
}

func runVerify(_ context.Context, e *env, ref string, repair bool) error {
	entry, err := e.find(ref)
	if err != nil {
		return err
	}
	check := workspace.Verify
	if repair {
		check = workspace.Repair
	}
	res, err := check(entry)
	if err != nil {
		return err
	}
	if e.globals.json {
		if err := e.emit(res); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(e.stdout, "%d records, head %d\n", res.Records, res.Head)
		for _, p := range res.Problems {
			fmt.Fprintln(e.stdout, printable(p))
		}
	}
	if !res.Clean {
		return workspace.Fail(workspace.CodeCorrupt, "verify: the journal of workspace %s is damaged: %d problem(s)", entry.ID, len(res.Problems))
	}
	e.note("clean")
	return nil
}
