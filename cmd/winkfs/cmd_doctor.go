package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/workspace"
)

func newDoctorCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "doctor", Usage: "show what this host can do, and how to mend what it lacks", Flags: []cli.Flag{jsonFlag(e)},
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			return runDoctor(c.Context, e)
		},
	}
}

func runDoctor(_ context.Context, e *env) error {
	root, err := workspace.StateRoot(e.globals.stateDir, e.getenv)
	if err != nil {
		return err
	}
	res := workspace.Doctor(root)
	if e.globals.json {
		if err := e.emit(res); err != nil {
			return err
		}
	} else {
		writeChecks(e, res)
	}
	if !res.OK {
		return workspace.Fail(workspace.CodeEnvironment, "doctor: this host lacks what winkfs needs").Hinted("see the lines marked LACKS")
	}
	return nil
}

func writeChecks(e *env, res *workspace.DoctorResult) {
	for _, c := range res.Checks {
		mark := "ok      "
		switch {
		case !c.OK && c.Needed:
			mark = "LACKS   "
		case !c.OK:
			mark = "degraded"
		}
		fmt.Fprintf(e.stdout, "%s %-24s %s\n", mark, c.Name, printable(c.Detail))
		if !c.OK && c.Mend != "" {
			fmt.Fprintf(e.stdout, "         %-24s mend: %s\n", "", printable(c.Mend))
		}
	}
}
