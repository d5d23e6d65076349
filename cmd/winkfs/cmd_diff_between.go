package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/winkfs/winkfs/workspace"
)

// otherWorkspace begins a side of a diff that is another workspace.
const otherWorkspace = "ws:"

// betweenWorkspaces reports whether a diff's first argument names a workspace.
func betweenWorkspaces(arg string) bool {
	from, to, _ := strings.Cut(arg, "..")
	return strings.HasPrefix(from, otherWorkspace) || strings.HasPrefix(to, otherWorkspace)
}

// diffSide is one side of a diff between workspaces.
type diffSide struct {
	label string
	point string // "" = the present
	ws    *workspace.Workspace
	close func() error
}

// diffBetween shows the difference between two workspaces. A side that names
// none is of the workspace that -w names.
func (e *env) diffBetween(ctx context.Context, o diffOptions, req *workspace.DiffRequest, args []string) (err error) {
	if o.exec != 0 {
		return usage("diff --exec makes no sense between workspaces")
	}
	from, to, _ := strings.Cut(args[0], "..")
	a, err := e.side(ctx, o.workspace, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	b, err := e.side(ctx, o.workspace, to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if req.Paths, err = e.paths(ctx, b.ws, args[1:]); err != nil {
		return err
	}
	return e.pagedDiff(o.exitCode, func(w io.Writer) (*workspace.DiffSummary, error) {
		return workspace.DiffBetween(ctx, a.ws, b.ws, a.point, b.point, [2]string{a.label, b.label}, req, w)
	})
}

// side opens one side: "ws:NAME", "ws:NAME@POINT", or a point, "" for the
// present, of the workspace that ref names.
func (e *env) side(ctx context.Context, ref, text string) (*diffSide, error) {
	s := &diffSide{point: text}
	if rest, ok := strings.CutPrefix(text, otherWorkspace); ok {
		if ref, s.point, _ = strings.Cut(rest, "@"); ref == "" {
			return nil, usage("diff: %q names no workspace: write ws:NAME or ws:NAME@POINT", text)
		}
	}
	entry, err := e.find(ref)
	if err != nil {
		return nil, err
	}
	if s.label = otherWorkspace + shown(entry); s.point != "" {
		s.label += "@" + s.point
	}
	s.ws, s.close, err = e.openForReading(ctx, entry)
	return s, err
}

// openForReading opens a workspace in this process, one that a daemon serves
// by a snapshot of its journal.
func (e *env) openForReading(ctx context.Context, entry *workspace.Entry) (*workspace.Workspace, func() error, error) {
	remove := func() error { return nil }
	if entry.Live {
		reg, err := e.registry()
		if err != nil {
			return nil, nil, err
		}
		snap, err := snapshot(ctx, reg, entry)
		if err != nil {
			return nil, nil, err
		}
		entry, remove = snap.Entry(), snap.Remove
	}
	ws, err := workspace.Open(entry, workspace.OpenOptions{Mode: workspace.ReadOnly})
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return ws, func() error { return errors.Join(ws.Close(), remove()) }, nil
}
