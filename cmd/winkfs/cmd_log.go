package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/workspace"
)

type logOptions struct {
	workspace string
	req       workspace.LogRequest
}

func newLogCommand(e *env) *cli.Command {
	var o logOptions
	return &cli.Command{
		Name: "log", Usage: "show the journal, newest last",
		Flags: []cli.Flag{
			workspaceFlag(&o.workspace), jsonFlag(e),
			&cli.Uint64Flag{Name: "exec", Usage: "records of command `N`", Destination: &o.req.Exec},
			&cli.StringFlag{Name: "path", Usage: "records that touch `PATH` or what lies below", Destination: &o.req.Path},
			&cli.StringFlag{Name: "op", Usage: "records of operation `O` (write, rename, ...)", Destination: &o.req.Op},
			&cli.StringFlag{Name: "since", Usage: "records after a `POINT`: a number, time, duration or checkpoint", Destination: &o.req.Since},
			&cli.BoolFlag{Name: "denied", Usage: "refusals only", Destination: &o.req.Denied},
			&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "the newest `N` records", Destination: &o.req.Limit},
		},
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			return runLog(c.Context, e, o)
		},
	}
}

func runLog(ctx context.Context, e *env, o logOptions) error {
	return e.withWorkspace(ctx, o.workspace, workspace.ReadOnly, func(ops workspace.Operations) error {
		if e.globals.json {
			return ops.Log(ctx, &o.req, func(l *workspace.LogEntry) error {
				return e.emit(struct {
					Schema string `json:"schema"`
					*workspace.LogEntry
				}{"winkfs.log/v1", l})
			})
		}
		return e.paged(func(w io.Writer) error {
			return ops.Log(ctx, &o.req, func(l *workspace.LogEntry) error { return writeLogLine(w, l) })
		})
	})
}

// writeLogLine prints one record: seq, time, exec, command, operation, paths.
func writeLogLine(w io.Writer, l *workspace.LogEntry) error {
	exec := "-"
	if l.Exec != 0 {
		exec = fmt.Sprintf("exec:%d", l.Exec)
	}
	comm := l.Comm
	if comm == "" {
		comm = "-"
	}
	_, err := fmt.Fprintf(w, "%6d  %s  %-8s %-15s  %-11s %s\n", l.Seq, l.Time.Local().Format("2006-01-02 15:04:05.000"), exec, printable(comm), l.Op, logDetail(l))
	return err
}

// logDetail is what a record's line says behind its operation.
func logDetail(l *workspace.LogEntry) string {
	switch {
	case l.Refused != "":
		return fmt.Sprintf("%s %s: %s (%s)", l.Refused, printable(l.Path), printable(l.Message), printable(l.Rule))
	case len(l.Command) > 0 && l.Exit != nil:
		return fmt.Sprintf("%s: exit %d", commandLine(l.Command), *l.Exit)
	case len(l.Command) > 0:
		return commandLine(l.Command)
	case l.Name != "":
		return fmt.Sprintf("%s at %d", printable(l.Name), l.Point)
	case len(l.Undone) > 0:
		return fmt.Sprintf("%d records, %d to %d", len(l.Undone), l.Undone[0], l.Undone[len(l.Undone)-1])
	case l.Path2 != "":
		return printable(l.Path) + " -> " + printable(l.Path2)
	case l.Bytes > 0:
		return fmt.Sprintf("%s (%d bytes)", printable(l.Path), l.Bytes)
	}
	return printable(l.Path)
}

// commandLine prints a command so that it can be read, and mostly pasted.
func commandLine(argv []string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i] = shellWord(a)
	}
	return strings.Join(words, " ")
}

const plainWord = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./=:,+@%"

// shellWord quotes a word for a shell where that is needed.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, plainWord) == "" {
		return s
	}
	return printable("'" + strings.ReplaceAll(s, "'", `'\''`) + "'")
}
