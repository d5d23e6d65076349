package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/cmd/winkfs/internal/control"
	"github.com/winkfs/winkfs/workspace"
)

type runOptions struct {
	execFlags
	name, source         string
	keep, apply, discard bool
	limited              bool // a time limit was asked for
}

func newRunCommand(e *env) *cli.Command {
	var o runOptions
	return &cli.Command{
		Name: "run", Usage: "run a command over a directory, then decide what stays", ArgsUsage: "[-- CMD...]",
		Description: "The current directory, or --source, shows at its own path. Its files don't change unless you apply.\nWithout CMD your shell is started.",
		Flags: append(o.execFlags.flags(), jsonFlag(e),
			&cli.StringFlag{Name: "source", Usage: "work over `DIR` instead of the current directory", Destination: &o.source},
			&cli.StringFlag{Name: "name", Usage: "name the workspace `N`", Destination: &o.name},
			&cli.BoolFlag{Name: "keep", Usage: "keep the changes without asking", Destination: &o.keep},
			&cli.BoolFlag{Name: "apply", Usage: "apply the changes without asking", Destination: &o.apply},
			&cli.BoolFlag{Name: "discard", Usage: "discard the changes without asking", Destination: &o.discard},
		),
		Action: func(c *cli.Context) error {
			command := c.Args().Slice()
			if len(command) == 0 {
				command = shellCommand(e)
			}
			req, err := o.request(e, c, command)
			if err != nil {
				return err
			}
			o.limited = c.IsSet("timeout")
			return runRun(c.Context, e, o, req)
		},
	}
}

func runRun(ctx context.Context, e *env, o runOptions, req *workspace.ExecRequest) error {
	if err := o.check(); err != nil {
		return err
	}
	entry, source, err := e.newRun(o)
	if err != nil {
		return err
	}
	begun := ctx
	ctx = context.WithoutCancel(ctx)
	if err := e.spawnForRun(ctx, entry); err != nil {
		return errors.Join(&sandboxError{err}, workspace.Remove(entry))
	}
	interactive(e, req, o.limited)
	req.Capture = e.globals.json
	req.At = []string{source}
	if req.Cwd == "" {
		req.Cwd = e.runCwd(source)
	}
	var stdin = e.stdin
	if req.Capture {
		stdin = nil
	}
	res, err := e.execRun(begun, entry, req, stdin)
	if err != nil {
		return errors.Join(&sandboxError{err}, e.abandonRun(ctx, entry))
	}
	return e.afterRun(ctx, entry, o, req, res)
}

func (o *runOptions) check() error {
	n := 0
	for _, on := range []bool{o.keep, o.apply, o.discard} {
		if on {
			n++
		}
	}
	if n > 1 {
		return usage("choose one of --keep, --apply and --discard")
	}
	return nil
}

// newRun makes the workspace that a run works in.
func (e *env) newRun(o runOptions) (*workspace.Entry, string, error) {
	dir := o.source
	if dir == "" {
		dir = e.dir
	}
	reg, err := e.registry()
	if err != nil {
		return nil, "", err
	}
	source, err := workspace.RunSource(dir)
	if err != nil {
		return nil, "", err
	}
	if home := e.getenv("HOME"); home != "" && filepath.Clean(home) == source {
		e.note("note: this is your home directory: all of it is visible to the command")
	}
	cfg := workspace.DefaultConfig()
	cfg.Name = o.name
	cfg.Sources = []workspace.Source{{Host: source, At: "/", Mode: "rw"}}
	entry, err := workspace.Create(reg, cfg)
	return entry, source, err
}

// spawnForRun starts the daemon so that nobody else sees the mount: in a mount
// namespace of its own, and for an ordinary user in a user namespace too.
// Where the user can't open /dev/fuse, the setuid helper has to mount, in the
// host's namespace.
func (e *env) spawnForRun(ctx context.Context, entry *workspace.Entry) error {
	d := daemonSpec{entry: entry, mountpoint: filepath.Join(entry.Dir, "mnt")}
	if err := os.Mkdir(d.mountpoint, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	d.private = os.Geteuid() == 0 || workspace.CanOpenFuse()
	d.userNS = d.private && os.Geteuid() != 0
	_, err := e.spawn(ctx, d)
	if err != nil && d.userNS && workspace.HasFusermount() {
		d.private, d.userNS = false, false
		_, err = e.spawn(ctx, d)
	}
	return err
}

// runCwd returns the working directory inside: where the caller is, if that is
// in the source, else the source.
func (e *env) runCwd(source string) string {
	dir, err := filepath.EvalSymlinks(e.dir)
	if err != nil || !inside(dir, source) {
		return source
	}
	return dir
}

func (e *env) execRun(ctx context.Context, entry *workspace.Entry, req *workspace.ExecRequest, stdin *os.File) (*workspace.ExecResult, error) {
	if stdin == nil {
		return e.execIn(ctx, entry.ID, req, nil)
	}
	return e.execIn(ctx, entry.ID, req, stdin)
}

// endRun unmounts and waits until the daemon has let go of the journal.
func (e *env) endRun(ctx context.Context, entry *workspace.Entry) error {
	c := control.NewClient(entry.Dir)
	defer c.Close()
	_, err := c.Unmount(ctx, &workspace.UnmountRequest{Lazy: true})
	return err
}

// abandonRun ends a run whose command could not be started. What it changed,
// if anything, is kept.
func (e *env) abandonRun(ctx context.Context, entry *workspace.Entry) error {
	changed, err := e.changed(ctx, entry)
	if eerr := e.endRun(ctx, entry); err == nil {
		err = eerr
	}
	if err != nil || changed {
		return err
	}
	return workspace.Remove(entry)
}

func (e *env) changed(ctx context.Context, entry *workspace.Entry) (bool, error) {
	st, err := control.NewClient(entry.Dir).Status(ctx)
	if err != nil {
		return true, err
	}
	return st.Changes != (workspace.ChangeCounts{}), nil
}
