package main

import (
	"context"
	"io"

	"github.com/urfave/cli/v2"
)

// newApp builds the command tree. Commands write their options into closures;
// nothing is global.
func newApp(e *env) *cli.App {
	app := &cli.App{
		Name:                 "winkfs",
		Usage:                "let a program work on your files, and decide afterwards what stays",
		UsageText:            "winkfs [global flags] COMMAND [flags] [arguments]\n   winkfs SOURCE MOUNTPOINT -o options   (the form that mount(8) uses)",
		Version:              version(),
		HideVersion:          true,
		HideHelpCommand:      true,
		EnableBashCompletion: false,
		// A comma belongs to the value: of --mount, of -o, of a path.
		DisableSliceFlagSeparator: true,
		Reader:                    e.stdin,
		Writer:                    e.stdout,
		ErrWriter:                 io.Discard,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              func(_ *cli.Context, err error, _ bool) error { return usage("%v", err) },
		Flags:                     globalFlags(e),
		Action:                    func(c *cli.Context) error { return cli.ShowAppHelp(c) },
	}
	app.Commands = commands(e)
	for _, c := range app.Commands {
		c.HideHelpCommand = true
		c.OnUsageError = app.OnUsageError
	}
	return app
}

func globalFlags(e *env) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "state-dir", Usage: "keep workspaces in `DIR`", Destination: &e.globals.stateDir},
		&cli.StringFlag{Name: "color", Usage: "colour output: auto, always or never", Value: "auto", Destination: &e.globals.color},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print no messages, only results and errors", Destination: &e.globals.quiet},
		&cli.BoolFlag{Name: "version", Usage: "print the version"},
	}
}

func commands(e *env) []*cli.Command {
	return []*cli.Command{
		newRunCommand(e), newMountCommand(e), newUmountCommand(e), newListCommand(e), newStatusCommand(e),
		newExecCommand(e), newShellCommand(e),
		newLogCommand(e), newShowCommand(e), newBlameCommand(e), newDiffCommand(e), newFilesCommand(e),
		newCheckpointCommand(e), newRollbackCommand(e), newUndoCommand(e), newRedoCommand(e),
		newBeginCommand(e), newEndCommand(e),
		newApplyCommand(e), newDiscardCommand(e),
		newCloneCommand(e), newMergeCommand(e), newRemoveCommand(e),
		newVerifyCommand(e), newGCCommand(e), newDoctorCommand(e), newVersionCommand(e), newCompletionCommand(e),
		newCompleteCommand(e), newDaemonCommand(e), newWalkCommand(), newFillCommand(), newReplayCommand(e),
	}
}

// runApp runs the program with the environment's arguments and returns the
// error that decides the exit status.
func runApp(ctx context.Context, e *env) error {
	app := newApp(e)
	args := versionForm(helpForm(app, mountForm(app, e.args)))
	args, err := reorder(app, args)
	if err != nil {
		return err
	}
	return app.RunContext(ctx, args)
}

// helpForm rewrites `winkfs help CMD` into `winkfs CMD --help`.
func helpForm(app *cli.App, args []string) []string {
	if len(args) < 2 || args[1] != "help" {
		return args
	}
	if len(args) > 2 && app.Command(args[2]) != nil {
		return []string{args[0], args[2], "--help"}
	}
	return append([]string{args[0], "--help"}, args[2:]...)
}

// versionForm rewrites `winkfs --version` into `winkfs version`.
func versionForm(args []string) []string {
	if len(args) == 2 && args[1] == "--version" {
		return []string{args[0], "version"}
	}
	return args
}

// workspaceFlag is the flag that names a workspace.
func workspaceFlag(to *string) cli.Flag {
	return &cli.StringFlag{Name: "workspace", Aliases: []string{"w"}, Usage: "the workspace: `ID`, name or mount point", Destination: to}
}

func yesFlag(to *bool) cli.Flag {
	return &cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "don't ask", Destination: to}
}

func dryRunFlag(to *bool) cli.Flag {
	return &cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "only say what would be done", Destination: to}
}

// noArgs refuses positional arguments.
func noArgs(c *cli.Context) error {
	if c.Args().Present() {
		return usage("%s takes no arguments, got %q", c.Command.Name, c.Args().First())
	}
	return nil
}

// jsonFlag asks for one JSON document instead of text.
func jsonFlag(e *env) cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "print one JSON document, errors as JSON too", Destination: &e.globals.json}
}
