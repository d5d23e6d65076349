package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/workspace"
)

// execFlags are the flags that exec, shell and run share.
type execFlags struct {
	runner, cwd, network string
	env                  cli.StringSlice
	timeout              float64
}

func (o *execFlags) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "runner", Usage: "auto or ns", Destination: &o.runner},
		&cli.StringFlag{Name: "cwd", Usage: "working `DIR` inside", Destination: &o.cwd},
		&cli.StringSliceFlag{Name: "env", Aliases: []string{"e"}, Usage: "set `K=V`; K alone passes the caller's value on", Destination: &o.env},
		&cli.Float64Flag{Name: "timeout", Usage: "end the command after `S` seconds; 0 = never", Destination: &o.timeout},
		&cli.StringFlag{Name: "network", Usage: "none or host", Destination: &o.network},
	}
}

// request makes the request that the flags describe.
func (o *execFlags) request(e *env, c *cli.Context, command []string) (*workspace.ExecRequest, error) {
	req := &workspace.ExecRequest{
		Command: command, Cwd: o.cwd, Environ: e.environ, Runner: o.runner, Network: o.network, Env: map[string]string{},
	}
	if c.IsSet("timeout") {
		if o.timeout < 0 {
			return nil, usage("--timeout must not be negative")
		}
		s := workspace.Seconds(o.timeout)
		req.Timeout = &s
	}
	for _, kv := range o.env.Value() {
		k, v, ok := strings.Cut(kv, "=")
		if k == "" {
			return nil, usage("--env needs K=V or K, not %q", kv)
		}
		if !ok {
			v = e.getenv(k)
		}
		req.Env[k] = v
	}
	return req, nil
}

type execOptions struct {
	execFlags
	workspace      string
	stdin          string
	atomic, dryRun bool
}

func newExecCommand(e *env) *cli.Command {
	var o execOptions
	return &cli.Command{
		Name: "exec", Usage: "run a command with only the mount visible", ArgsUsage: "-- CMD...",
		Flags: append(o.execFlags.flags(), workspaceFlag(&o.workspace), jsonFlag(e),
			&cli.StringFlag{Name: "stdin", Usage: "read input from `FILE`, - for standard input", Destination: &o.stdin},
			&cli.BoolFlag{Name: "atomic", Usage: "undo what the command changed if it fails", Destination: &o.atomic},
			&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "print the sandbox's plan", Destination: &o.dryRun},
		),
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return usage("exec needs a command: winkfs exec -- CMD")
			}
			req, err := o.request(e, c, c.Args().Slice())
			if err != nil {
				return err
			}
			req.Atomic, req.DryRun, req.Capture = o.atomic, o.dryRun, e.globals.json
			return runExec(c.Context, e, o, req)
		},
	}
}

func runExec(ctx context.Context, e *env, o execOptions, req *workspace.ExecRequest) error {
	stdin, err := e.input(o.stdin, req.Capture)
	if err != nil {
		return err
	}
	res, err := e.execIn(ctx, o.workspace, req, stdin)
	if err != nil {
		return &sandboxError{err}
	}
	return e.finishExec(req, res)
}

// finishExec prints what is to be printed and returns the command's status.
func (e *env) finishExec(req *workspace.ExecRequest, res *workspace.ExecResult) error {
	switch {
	case e.globals.json:
		if err := e.emit(res); err != nil {
			return &sandboxError{err}
		}
	case req.DryRun:
		fmt.Fprint(e.stdout, res.Plan)
	case isTerminal(e.stderr):
		e.note("%s", effectsLine(res))
	}
	for _, d := range res.Denied {
		if !e.globals.json {
			e.note("refused: %s %s: %s", d.Op, printable(d.Path), printable(d.Message))
		}
	}
	if res.ExitCode != 0 {
		return exitStatus(res.ExitCode)
	}
	return nil
}

// input returns what the command reads: the caller's standard input unless
// something else is said, or nothing when the result is captured.
func (e *env) input(name string, capture bool) (io.Reader, error) {
	switch {
	case name == "" && capture:
		return nil, nil
	case name == "" || name == "-":
		return e.stdin, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, workspace.Wrap(workspace.CodeUsage, err, "open input").At(name)
	}
	return f, nil
}

// execIn runs the request in a workspace with the process's own streams.
func (e *env) execIn(ctx context.Context, ref string, req *workspace.ExecRequest, stdin io.Reader) (*workspace.ExecResult, error) {
	begun := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	signals, stop := relaySignals(cancel)
	defer stop()
	if err := begun.Err(); err != nil {
		return nil, err // interrupted before the command could have heard of it
	}
	if f, ok := stdin.(*os.File); ok {
		r, err := newStoppableReader(f)
		if err != nil {
			return nil, err
		}
		defer r.stop()
		stdin = r
	}
	var res *workspace.ExecResult
	err := e.withWorkspace(ctx, ref, workspace.ReadWrite, func(ops workspace.Operations) (err error) {
		s := &workspace.Streams{Stdin: stdin, Stdout: e.stdout, Stderr: e.stderr, Signals: signals}
		if !req.TTY {
			res, err = ops.Exec(ctx, req, s)
			return err
		}
		return e.onTerminal(func(size workspace.Winsize, resize <-chan workspace.Winsize) error {
			req.Size, s.Resize = &size, resize
			res, err = ops.Exec(ctx, req, s)
			return err
		})
	})
	return res, err
}
