package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/workspace"
)

func newStatusCommand(e *env) *cli.Command {
	var ref string
	return &cli.Command{
		Name: "status", Usage: "show one workspace", ArgsUsage: "[WORKSPACE]",
		Flags: []cli.Flag{workspaceFlag(&ref), jsonFlag(e)},
		Action: func(c *cli.Context) error {
			name, err := oneWorkspace(c, ref)
			if err != nil {
				return err
			}
			return runStatus(c.Context, e, name)
		},
	}
}

// oneWorkspace takes the workspace from the flag or the one argument.
func oneWorkspace(c *cli.Context, ref string) (string, error) {
	switch {
	case c.Args().Len() > 1:
		return "", usage("%s takes one workspace", c.Command.Name)
	case c.Args().Len() == 0:
		return ref, nil
	case ref != "":
		return "", usage("name the workspace once, by -w or as an argument")
	}
	return c.Args().First(), nil
}

func runStatus(ctx context.Context, e *env, ref string) error {
	return e.withWorkspace(ctx, ref, workspace.ReadOnly, func(ops workspace.Operations) error {
		st, err := ops.Status(ctx)
		if err != nil {
			return err
		}
		if e.globals.json {
			return e.emit(st)
		}
		writeStatus(e.stdout, st)
		return nil
	})
}

func writeStatus(w io.Writer, st *workspace.Status) {
	title := st.ID
	if st.Name != "" {
		title += " (" + st.Name + ")"
	}
	fmt.Fprintf(w, "workspace  %s\n", printable(title))
	if st.Mounted {
		fmt.Fprintf(w, "mounted    %s, pid %d\n", printable(st.Mountpoint), st.PID)
	} else {
		fmt.Fprintln(w, "mounted    no")
	}
	for _, p := range st.Past {
		fmt.Fprintf(w, "past       record %d at %s\n", p.Point, printable(p.Mountpoint))
	}
	for _, s := range st.Sources {
		fmt.Fprintf(w, "source     %s at %s (%s)\n", printable(s.Host), printable(s.At), s.Mode)
	}
	if p := st.Parent; p != nil {
		fmt.Fprintf(w, "parent     fork of %s at record %d\n", printable(parentName(p)), p.Seq)
	}
	for _, f := range st.Forks {
		fmt.Fprintf(w, "fork       %s (%s) at record %d\n", f.ID, printable(f.Name), f.Seq)
	}
	fmt.Fprintf(w, "changes    %d created, %d modified, %d deleted\n", st.Changes.Created, st.Changes.Modified, st.Changes.Deleted)
	fmt.Fprintf(w, "journal    records %d to %d, %d bytes, contents %d bytes\n", st.First, st.Head, st.JournalBytes, st.ObjectBytes)
	fmt.Fprintf(w, "sandbox    %s, network %s\n", st.Isolation, st.Policy.Exec.Network)
	for _, d := range st.Drift {
		fmt.Fprintf(w, "drift      %s: %s\n", printable(d.Path), printable(d.Reason))
	}
	for _, d := range st.Degraded {
		fmt.Fprintf(w, "degraded   %s\n", printable(d))
	}
}
