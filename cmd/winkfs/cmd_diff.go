package main

import (
	"context"
	"io"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/workspace"
)

type diffOptions struct {
	workspace        string
	stat, nameStatus bool
	binary, exitCode bool
	exec             uint64
}

func newDiffCommand(e *env) *cli.Command {
	var o diffOptions
	return &cli.Command{
		Name: "diff", Usage: "show changes as a patch that `git apply` takes", ArgsUsage: "[FROM[..TO]] [PATH...]",
		Description: "Without a point the present is compared with the sources. A point is a record's number, exec:N\n(before that command), a checkpoint, a time or a duration ago. Put -- before paths that look like points. ws:NAME stands for\nthe present of another workspace and ws:NAME@POINT for a point of it: `diff ws:A..ws:B`, or `diff ..ws:B` against\nthe present of this one.",
		Flags: []cli.Flag{
			workspaceFlag(&o.workspace), jsonFlag(e),
			&cli.BoolFlag{Name: "stat", Usage: "count lines instead of showing them", Destination: &o.stat},
			&cli.BoolFlag{Name: "name-status", Usage: "names and kinds of change only", Destination: &o.nameStatus},
			&cli.BoolFlag{Name: "binary", Usage: "include binary files in full", Destination: &o.binary},
			&cli.BoolFlag{Name: "exit-code", Usage: "exit 1 when there are differences", Destination: &o.exitCode},
			&cli.Uint64Flag{Name: "exec", Usage: "only what command `N` touched", Destination: &o.exec},
		},
		Action: func(c *cli.Context) error { return runDiff(c.Context, e, o, c.Args().Slice()) },
	}
}

func runDiff(ctx context.Context, e *env, o diffOptions, args []string) error {
	req, err := o.request(e)
	if err != nil {
		return err
	}
	if len(args) > 0 && betweenWorkspaces(args[0]) {
		return e.diffBetween(ctx, o, req, args)
	}
	return e.withWorkspace(ctx, o.workspace, workspace.ReadOnly, func(ops workspace.Operations) error {
		if req.From, req.To, args, err = splitPoints(ctx, ops, args); err != nil {
			return err
		}
		if req.Paths, err = e.paths(ctx, ops, args); err != nil {
			return err
		}
		return e.showDiff(ctx, ops, req, o.exitCode)
	})
}

func (o *diffOptions) request(e *env) (*workspace.DiffRequest, error) {
	colour, err := e.colour()
	if err != nil {
		return nil, err
	}
	req := &workspace.DiffRequest{Format: workspace.FormatPatch, Exec: o.exec, Binary: o.binary, Colour: colour, Escape: isTerminal(e.stdout)}
	chosen := 0
	for format, on := range map[string]bool{workspace.FormatStat: o.stat, workspace.FormatNameStatus: o.nameStatus, workspace.FormatJSON: e.globals.json} {
		if on {
			req.Format = format
			chosen++
		}
	}
	if chosen > 1 {
		return nil, usage("choose one of --stat, --name-status and --json")
	}
	return req, nil
}

func (e *env) showDiff(ctx context.Context, ops workspace.Operations, req *workspace.DiffRequest, exitCode bool) error {
	return e.pagedDiff(exitCode, func(w io.Writer) (*workspace.DiffSummary, error) { return ops.Diff(ctx, req, w) })
}

func (e *env) pagedDiff(exitCode bool, diff func(io.Writer) (*workspace.DiffSummary, error)) error {
	var sum *workspace.DiffSummary
	err := e.paged(func(w io.Writer) (err error) {
		sum, err = diff(w)
		return err
	})
	if err != nil {
		return err
	}
	if exitCode && sum != nil && sum.Any() {
		return exitStatus(exitFailure)
	}
	return nil
}

// splitPoints takes the points off the head of a diff's arguments: a first
// argument that is written like a point or names a checkpoint.
func splitPoints(ctx context.Context, ops workspace.Operations, args []string) (from, to string, rest []string, err error) {
	if len(args) == 0 {
		return "", "", args, nil
	}
	from, to, isRange := strings.Cut(args[0], "..")
	if strings.Contains(from+to, "/") || !isRange && !workspace.LooksLikePoint(from) {
		known, err := checkpoints(ctx, ops)
		if err != nil || !known[from] {
			return "", "", args, err
		}
	}
	return from, to, args[1:], nil
}

// checkpoints returns the names of the workspace's checkpoints.
func checkpoints(ctx context.Context, ops workspace.Operations) (map[string]bool, error) {
	res, err := ops.Checkpoint(ctx, &workspace.CheckpointRequest{List: true})
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, c := range res.Checkpoints {
		names[c.Name] = true
	}
	return names, nil
}

// paths turns arguments into workspace-relative paths. Absolute ones may lie
// in the mount, below the workdir or in a source that shows there.
func (e *env) paths(ctx context.Context, ops workspace.Operations, args []string) ([]string, error) {
	if len(args) == 0 {
		return nil, nil
	}
	st, err := ops.Status(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(args))
	for i, a := range args {
		if out[i], err = workspacePath(st, e.dir, a); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// workspacePath returns the path below the workspace's root that an argument
// names. A relative one counts from the current directory when that lies in
// the mount, else from the root.
func workspacePath(st *workspace.Status, cwd, arg string) (string, error) {
	path := arg
	if !filepath.IsAbs(path) {
		if st.Mountpoint == "" || !inside(cwd, st.Mountpoint) {
			path = filepath.Join("/", path)
			return strings.TrimPrefix(path, "/"), escapes(arg)
		}
		path = filepath.Join(cwd, path)
	}
	if rel, ok := below(path, st.Mountpoint); ok {
		return rel, nil
	}
	for _, s := range st.Sources {
		if rel, ok := below(path, s.Host); ok {
			return strings.TrimPrefix(filepath.Join(s.At, rel), "/"), nil
		}
	}
	if rel, ok := below(path, st.Workdir); ok {
		return rel, nil
	}
	return "", usage("path %q does not lie in the workspace", arg)
}

func escapes(arg string) error {
	if !filepath.IsLocal(arg) {
		return usage("path %q leaves the workspace", arg)
	}
	return nil
}

func inside(path, dir string) bool {
	_, ok := below(path, dir)
	return ok
}

// below returns path relative to dir, "" for dir itself.
func below(path, dir string) (string, bool) {
	if dir == "" {
		return "", false
	}
	rel, err := filepath.Rel(dir, filepath.Clean(path))
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	if rel == "." {
		return "", true
	}
	return rel, true
}
