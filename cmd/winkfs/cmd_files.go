package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/workspace"
)

func newFilesCommand(e *env) *cli.Command {
	var ref string
	return &cli.Command{
		Name: "files", Usage: "list the files that the workspace changed", ArgsUsage: "[PATH]",
		Description: "A file's version counts its contents from 1, one more for each recorded change of its bytes.",
		Flags:       []cli.Flag{workspaceFlag(&ref), jsonFlag(e)},
		Action: func(c *cli.Context) error {
			if c.Args().Len() > 1 {
				return usage("files takes one path")
			}
			return runFiles(c.Context, e, ref, c.Args().Slice())
		},
	}
}

func runFiles(ctx context.Context, e *env, ref string, args []string) error {
	return e.withWorkspace(ctx, ref, workspace.ReadOnly, func(ops workspace.Operations) error {
		paths, err := e.paths(ctx, ops, args)
		if err != nil {
			return err
		}
		res, err := ops.Files(ctx, &workspace.FilesRequest{Paths: paths})
		if err != nil {
			return err
		}
		if e.globals.json {
			return e.emit(res)
		}
		return e.paged(func(w io.Writer) error { return writeFiles(w, res.Files) })
	})
}

func writeFiles(w io.Writer, files []workspace.ListedFile) error {
	if len(files) == 0 {
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "VERSION\tSIZE\tUPDATED\tEXEC\tPATH")
	for _, f := range files {
		exec := "-"
		if f.Exec != 0 {
			exec = fmt.Sprintf("exec:%d", f.Exec)
		}
		fmt.Fprintf(tw, "%d\t%d\t%s\t%s\t%s\n", f.Version, f.Size, f.Updated.Local().Format("2006-01-02 15:04:05"), exec, printable(f.Path))
	}
	return tw.Flush()
}
