package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/diffview"
	"github.com/winkfs/winkfs/workspace"
)

func newShowCommand(e *env) *cli.Command {
	var ref string
	return &cli.Command{
		Name: "show", Usage: "show one record, command or group with its difference, or a file as of a point", ArgsUsage: "SEQ|exec:N|group:N|POINT:PATH",
		Description: "POINT:PATH prints the file as it was at the point: a record's number, exec:N or group:N (before it), a\n" +
			"checkpoint or a time. Of a directory it lists the names.",
		Flags: []cli.Flag{workspaceFlag(&ref), jsonFlag(e)},
		Action: func(c *cli.Context) error {
			if c.Args().Len() != 1 {
				return usage("show takes one argument: a record's number, exec:N, group:N or POINT:PATH")
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
		if point, path, ok := workspace.SplitFile(what); ok {
			return e.showFile(ctx, ops, point, path)
		}
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
	switch x := res.Exec; {
	case x != nil:
		writeExecInfo(w, x)
		req.Exec = x.ID
	case res.Group != nil:
		writeGroupInfo(w, res)
		req.Seqs = res.Seqs
	default:
		if err := writeLogLine(w, res.Record); err != nil {
			return err
		}
		req.Seqs = []uint64{res.Record.Seq}
	}
	fmt.Fprintln(w)
	_, err := ops.Diff(ctx, req, w)
	return err
}

func writeGroupInfo(w io.Writer, res *workspace.ShowResult) {
	g := res.Group
	name := ""
	if g.Name != "" {
		name = "  " + printable(g.Name)
	}
	fmt.Fprintf(w, "group:%d%s\n", g.ID, name)
	if g.Open {
		fmt.Fprintf(w, "records  %d on, still open (%d its own)\n", g.Begin, len(res.Seqs))
		return
	}
	fmt.Fprintf(w, "records  %d to %d (%d its own)\n", g.Begin, g.End, len(res.Seqs))
}

// fileDocument is the document winkfs.file/v1.
type fileDocument struct {
	Schema string `json:"schema"`
	*workspace.FileInfo
	Text  *string `json:"text,omitempty"`
	Bytes []byte  `json:"bytes,omitempty"` // of what is not UTF-8
}

// showFile prints a file as of a point: as it is, but for a terminal escaped.
func (e *env) showFile(ctx context.Context, ops workspace.Operations, point, path string) error {
	if path == "" {
		path = "." // the root
	}
	paths, err := e.paths(ctx, ops, []string{path})
	if err != nil {
		return err
	}
	req := &workspace.FileRequest{Point: point, Path: paths[0]}
	if !e.globals.json && !isTerminal(e.stdout) {
		_, err := ops.File(ctx, req, e.stdout)
		return err
	}
	var b bytes.Buffer
	info, err := ops.File(ctx, req, &b)
	if err != nil {
		return err
	}
	if !e.globals.json {
		return e.paged(func(w io.Writer) error {
			_, err := io.WriteString(w, diffview.EscapeText(b.String()))
			return err
		})
	}
	doc := fileDocument{Schema: "winkfs.file/v1", FileInfo: info, Bytes: b.Bytes()}
	if text := b.String(); utf8.ValidString(text) {
		doc.Text, doc.Bytes = &text, nil
	}
	return e.emit(doc)
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
