package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/workspace"
)

type shellOptions struct {
	execFlags
	workspace string
}

func newShellCommand(e *env) *cli.Command {
	var o shellOptions
	return &cli.Command{
		Name: "shell", Usage: "start an interactive shell in the sandbox",
		Flags: append(o.execFlags.flags(), workspaceFlag(&o.workspace)),
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			req, err := o.request(e, c, shellCommand(e))
			if err != nil {
				return err
			}
			return runShell(c.Context, e, o, c.IsSet("timeout"), req)
		},
	}
}

func runShell(ctx context.Context, e *env, o shellOptions, limited bool, req *workspace.ExecRequest) error {
	interactive(e, req, limited)
	res, err := e.execIn(ctx, o.workspace, req, e.stdin)
	if err != nil {
		return &sandboxError{err}
	}
	return e.finishExec(req, res)
}

// interactive prepares a request for a person: a terminal, and no time limit
// unless one was asked for.
func interactive(e *env, req *workspace.ExecRequest, limited bool) {
	req.TTY = isTerminal(e.stdin) && isTerminal(e.stdout)
	if !limited {
		never := workspace.Seconds(0)
		req.Timeout = &never
	}
}

// shellCommand returns the caller's shell, or sh where it is not a path.
func shellCommand(e *env) []string {
	if sh := e.getenv("SHELL"); len(sh) > 1 && sh[0] == '/' {
		return []string{sh}
	}
	return []string{"/bin/sh"}
}
