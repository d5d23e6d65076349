package main

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/winkfs/winkfs/workspace"
)

//go:embed completion/winkfs.bash
var bashCompletion string

//go:embed completion/winkfs.zsh
var zshCompletion string

//go:embed completion/winkfs.fish
var fishCompletion string

func newCompletionCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print the completion script for a shell", ArgsUsage: "bash|zsh|fish",
		Description: "bash: source <(winkfs completion bash)\nzsh:  winkfs completion zsh > \"${fpath[1]}/_winkfs\"\nfish: winkfs completion fish | source",
		Action: func(c *cli.Context) error {
			script, ok := map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[c.Args().First()]
			if !ok || c.Args().Len() != 1 {
				return usage("completion takes one of bash, zsh, fish")
			}
			fmt.Fprint(e.stdout, script)
			return nil
		},
	}
}

// newCompleteCommand is what the completion scripts ask: its arguments are the
// words behind `winkfs`, the last one the word to complete. It prints one
// candidate a line and never fails.
func newCompleteCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "__complete", Hidden: true,
		Action: func(c *cli.Context) error {
			for _, s := range complete(c.Context, e, c.App, c.Args().Slice()) {
				fmt.Fprintln(e.stdout, s)
			}
			return nil
		},
	}
}

func complete(ctx context.Context, e *env, app *cli.App, words []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	cmd, ref := commandOf(app, words[:len(words)-1])
	if len(words) > 1 {
		switch words[len(words)-2] {
		case "-w", "--workspace":
			return matching(last, workspaceNames(e))
		case "--color":
			return matching(last, []string{"auto", "always", "never"})
		}
	}
	switch {
	case strings.HasPrefix(last, "-"):
		return matching(last, flagNames(app, cmd))
	case cmd == nil:
		return matching(last, commandNames(app))
	}
	return matching(last, arguments(ctx, e, cmd.Name, ref))
}

// commandOf returns the command among the words, and the workspace if one is
// named.
func commandOf(app *cli.App, words []string) (*cli.Command, string) {
	var cmd *cli.Command
	ref := ""
	for i, w := range words {
		if c := app.Command(w); c != nil && cmd == nil {
			cmd = c
		}
		if i > 0 && (words[i-1] == "-w" || words[i-1] == "--workspace") {
			ref = w
		}
	}
	return cmd, ref
}

func arguments(ctx context.Context, e *env, command, ref string) []string {
	switch command {
	case "status", "umount", "verify", "gc", "rm", "merge":
		return workspaceNames(e)
	case "completion":
		return []string{"bash", "zsh", "fish"}
	case "rollback", "diff", "checkpoint", "undo", "show":
		return checkpointNames(ctx, e, ref)
	}
	return nil
}

func checkpointNames(ctx context.Context, e *env, ref string) (names []string) {
	_ = e.withWorkspace(ctx, ref, workspace.ReadOnly, func(ops workspace.Operations) error {
		known, err := checkpoints(ctx, ops)
		for n := range known {
			names = append(names, n)
		}
		return err
	})
	return names
}

func workspaceNames(e *env) []string {
	reg, err := e.registry()
	if err != nil {
		return nil
	}
	all, _ := reg.List()
	var names []string
	for _, w := range all {
		names = append(names, w.ID)
		if n := w.Name(); n != "" {
			names = append(names, n)
		}
	}
	return names
}

func commandNames(app *cli.App) []string {
	var names []string
	for _, c := range app.Commands {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return names
}

func flagNames(app *cli.App, cmd *cli.Command) []string {
	flags := append([]cli.Flag{cli.HelpFlag}, app.Flags...)
	if cmd != nil {
		flags = append(flags, cmd.Flags...)
	}
	var names []string
	for _, f := range flags {
		for _, n := range f.Names() {
			names = append(names, dashed(n))
		}
	}
	return names
}

// matching returns the candidates that begin with the word and are safe to
// print one a line.
func matching(word string, candidates []string) []string {
	var out []string
	for _, c := range candidates {
		if strings.HasPrefix(c, word) && printable(c) == c {
			out = append(out, c)
		}
	}
	return out
}
