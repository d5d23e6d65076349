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
			&cli.BoolFlag{Name: "repair", Usage: "mend what can be mended; the files as they were are kept beside it", Destination: &repair},
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
		e.writeVerify(res)
	}
	if !res.Clean {
		return workspace.Fail(workspace.CodeCorrupt, "verify: the journal of workspace %s is damaged: %d problem(s)", entry.ID, len(res.Problems))
	}
	e.note("clean")
	return nil
}

func (e *env) writeVerify(res *workspace.VerifyResult) {
	fmt.Fprintf(e.stdout, "%d records, head %d\n", res.Records, res.Head)
	for _, list := range []struct {
		title string
		lines []string
	}{{"", res.Problems}, {"done: ", res.Repaired}, {"lost: ", res.Lost}} {
		for _, l := range list.lines {
			fmt.Fprintln(e.stdout, list.title+printable(l))
		}
	}
	if res.Evidence != "" {
		fmt.Fprintf(e.stdout, "the damaged files are kept in %s\n", printable(res.Evidence))
	}
	if !res.Clean && res.GoodTo > 0 {
		fmt.Fprintf(e.stdout, "the log is good up to record %d\n", res.GoodTo)
	}
}
