package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/workspace"
)

func newBlameCommand(e *env) *cli.Command {
	var ref string
	return &cli.Command{
		Name: "blame", Usage: "show for each line of a file the command that last wrote it", ArgsUsage: "PATH",
		Description: "Lines that the source had are marked \"base\". Renames are followed, and a file that another replaced\n" +
			"under its name, as editors do. Control characters are shown escaped; --json has the lines as they are.",
		Flags: []cli.Flag{workspaceFlag(&ref), jsonFlag(e)},
		Action: func(c *cli.Context) error {
			if c.Args().Len() != 1 {
				return usage("blame takes one path")
			}
			return runBlame(c.Context, e, ref, c.Args().First())
		},
	}
}

func runBlame(ctx context.Context, e *env, ref, path string) error {
	return e.withWorkspace(ctx, ref, workspace.ReadOnly, func(ops workspace.Operations) error {
		paths, err := e.paths(ctx, ops, []string{path})
		if err != nil {
			return err
		}
		res, err := ops.Blame(ctx, &workspace.BlameRequest{Path: paths[0]})
		if err != nil {
			return err
		}
		if e.globals.json {
			return e.emit(res)
		}
		return e.paged(func(w io.Writer) error { return writeBlame(w, res) })
	})
}

func writeBlame(w io.Writer, res *workspace.BlameResult) error {
	digits := len(fmt.Sprint(len(res.Lines)))
	for i := range res.Lines {
		l := &res.Lines[i]
		text := l.Text
		if l.Bytes != nil {
			text = string(l.Bytes)
		}
		_, err := fmt.Fprintf(w, "%-34s  %*d  %s\n", blamed(l), digits, l.Line, printable(text))
		if err != nil {
			return err
		}
	}
	return nil
}

// blamed says who wrote a line and when.
func blamed(l *workspace.BlameLine) string {
	if l.Base {
		return "base"
	}
	who := "-"
	if l.Exec != 0 {
		who = fmt.Sprintf("exec:%d", l.Exec)
	}
	return fmt.Sprintf("%-8s %-11s %s", who, printable(l.Comm), l.Time.Local().Format("01-02 15:04:05"))
}
