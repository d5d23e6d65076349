package main

import (
	"context"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/winkfs/winkfs/workspace"
)

// env is everything of the process's surroundings that commands use, so that
// tests can hand in their own.
type env struct {
	args    []string
	stdin   *os.File
	stdout  io.Writer
	stderr  io.Writer
	environ []string
	dir     string // current directory
	globals globals
}

// globals are the flags that every command knows.
type globals struct {
	stateDir string
	color    string
	json     bool
	quiet    bool
}

func newEnv() *env {
	dir, err := os.Getwd()
	if err != nil {
		dir = ""
	}
	return &env{args: os.Args, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ(), dir: dir}
}

// getenv returns a variable of the environment. The last setting counts.
func (e *env) getenv(key string) string {
	for i := len(e.environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(e.environ[i], key+"="); ok {
			return v
		}
	}
	return ""
}

func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && file != nil && term.IsTerminal(int(file.Fd()))
}

// interactive reports whether a person can be asked: standard input and
// standard error are a terminal.
func (e *env) interactive() bool { return isTerminal(e.stdin) && isTerminal(e.stderr) }

// registry returns the workspaces of the chosen state root.
func (e *env) registry() (*workspace.Registry, error) {
	root, err := workspace.StateRoot(e.globals.stateDir, e.getenv)
	if err != nil {
		return nil, err
	}
	return workspace.NewRegistry(root), nil
}

// find returns the workspace that ref names: an id, a name or a mount point;
// else WINKFS_WORKSPACE; else the one the current directory lies in; else the
// only live one.
func (e *env) find(ref string) (*workspace.Entry, error) {
	reg, err := e.registry()
	if err != nil {
		return nil, err
	}
	if ref == "" {
		ref = e.getenv("WINKFS_WORKSPACE")
	}
	if ref == "" {
		return reg.Default(e.dir)
	}
	return reg.Find(ref)
}

// withWorkspace calls fn with the operations of the workspace that ref names:
// the daemon's where one runs, else those on the state directory itself.
func (e *env) withWorkspace(ctx context.Context, ref string, mode workspace.OpenMode, fn func(workspace.Operations) error) error {
	entry, err := e.find(ref)
	if err != nil {
		return err
	}
	ops, closeOps, err := e.open(entry, mode)
	if err != nil {
		return err
	}
	err = fn(ops)
	if cerr := closeOps(); err == nil {
		err = cerr
	}
	return err
}
