package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/workspace"
)

func newShowCommand(e *env) *cli.Command {
	var ref string
	return &cli.Command{
		Name: "show", Usage: "show one record or one command, with its difference", ArgsUsage: "SEQ|exec:N",
		Flags: []cli.Flag{workspaceFlag(&ref), jsonFlag(e)},
		Action: func(c *cli.Context) error {
			if c.Args().Len() != 1 {
				return usage("show takes one argument: a record's number or exec:N")
			}
			return runShow(c.Context, e, ref, c.Args().First())
		},
	}
}

func runShow(ctx context.Context, e *env, ref, what string) error {
	colour, err := e.colour()
	if err != nil {
		return err
	}
	return e.withWorkspace(ctx, ref, workspace.ReadOnly, func(ops workspace.Operations) error {
		res, err := ops.Show(ctx, &workspace.ShowRequest{What: what})
		if err != nil {
			return err
		}
		if e.globals.json {
			return e.emit(res)
		}
		return e.paged(func(w io.Writer) error { return e.writeShown(ctx, w, ops, res, colour) })
	})
}

func (e *env) writeShown(ctx context.Context, w io.Writer, ops workspace.Operations, res *workspace.ShowResult, colour bool) error {
	req := &workspace.DiffRequest{
		From: strconv.FormatUint(res.From, 10), To: strconv.FormatUint(res.To, 10),
		Format: workspace.FormatPatch, Colour: colour, Escape: isTerminal(e.stdout),
	}
	if x := res.Exec; x != nil {
		writeExecInfo(w, x)
		req.Exec = x.ID
	} else {
		if err := writeLogLine(w, res.Record); err != nil {
			return err
		}
		req.Seq = res.Record.Seq
	}
	fmt.Fprintln(w)
	_, err := ops.Diff(ctx, req, w)
	return err
}

func writeExecInfo(w io.Writer, x *workspace.ExecInfo) {
	fmt.Fprintf(w, "exec:%d  %s\n", x.ID, commandLine(x.Command))
	fmt.Fprintf(w, "began    %s in %s, runner %s\n", x.Begin, printable(x.Cwd), printable(x.Runner))
	switch {
	case x.Running:
		fmt.Fprintln(w, "still running, or cut off when the daemon ended")
	case x.TimedOut:
		fmt.Fprintf(w, "ended    %s, timed out\n", x.End)
	default:
		fmt.Fprintf(w, "ended    %s, exit %d\n", x.End, x.ExitCode)
	}
	fmt.Fprintf(w, "records  %d to %d (%d its own)\n", x.Seq[0], x.Seq[1], x.Records)
}
