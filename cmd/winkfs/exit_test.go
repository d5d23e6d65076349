package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/winkfs/winkfs/workspace"
)

func TestExitCode(t *testing.T) {
	fail := func(c workspace.Code) error { return workspace.Fail(c, "x") }
	tests := []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{fail(workspace.CodeUsage), 2},
		{fail(workspace.CodeConfig), 2},
		{fail(workspace.CodeUnknown), 3},
		{fail(workspace.CodeNothing), 3},
		{fail(workspace.CodeRefused), 4},
		{fail(workspace.CodeConflict), 5},
		{fail(workspace.CodeNotMounted), 6},
		{fail(workspace.CodeEnvironment), 7},
		{fail(workspace.CodeCorrupt), 1},
		{fmt.Errorf("wrapped: %w", fail(workspace.CodeConflict)), 5},
		{exitStatus(42), 42},
		{&sandboxError{errors.New("x")}, 125},
		{&sandboxError{fail(workspace.CodeFailure)}, 125},
		{&sandboxError{fail(workspace.CodeCannotRun)}, 126},
		{&sandboxError{fail(workspace.CodeNoCommand)}, 127},
		{&sandboxError{fail(workspace.CodeNotMounted)}, 6},
		{&sandboxError{fail(workspace.CodeUnknown)}, 3},
	}
	for _, tt := range tests {
		if got := exitCode(tt.err); got != tt.want {
			t.Errorf("%v: got %d, want %d", tt.err, got, tt.want)
		}
	}
}

func TestPrintErrorEscapes(t *testing.T) {
	var b bytes.Buffer
	err := workspace.Fail(workspace.CodeConflict, "apply \x1b[31mred").Hinted("hint \x07")
	err.Conflicts = []workspace.Conflict{{Path: "a\nb", Reason: "r"}}
	printError(&b, err, false)
	if s := b.String(); strings.ContainsAny(s, "\x1b\x07") || strings.Count(s, "\n") != 3 {
		t.Errorf("raw characters reach the terminal: %q", s)
	}
}

func TestPrintErrorJSON(t *testing.T) {
	var b bytes.Buffer
	printError(&b, fmt.Errorf("outer: %w", workspace.Fail(workspace.CodeNothing, "inner").Hinted("h").At("p")), true)
	want := `{"schema":"winkfs.error/v1","code":"nothing_to_do","message":"outer: inner","hint":"h","path":"p"}` + "\n"
	if b.String() != want {
		t.Errorf("got %s, want %s", b.String(), want)
	}
}

func TestWorkspacePath(t *testing.T) {
	st := &workspace.Status{Mountpoint: "/mnt/w", Workdir: "/workspace", Sources: []workspace.Source{{Host: "/home/u/src", At: "/"}, {Host: "/data", At: "in/data"}}}
	tests := []struct{ cwd, arg, want string }{
		{"/", "a/b", "a/b"},
		{"/mnt/w/d", "a", "d/a"},
		{"/mnt/w/d", "../a", "a"},
		{"/", "/mnt/w/x", "x"},
		{"/", "/mnt/w", ""},
		{"/", "/workspace/x", "x"},
		{"/", "/home/u/src/x/y", "x/y"},
		{"/", "/data/z", "in/data/z"},
		{"/", "..a", "..a"},
	}
	for _, tt := range tests {
		got, err := workspacePath(st, tt.cwd, tt.arg)
		if err != nil || got != tt.want {
			t.Errorf("%s in %s: got %q, %v, want %q", tt.arg, tt.cwd, got, err, tt.want)
		}
	}
	for _, arg := range []string{"../x", "/etc/passwd", "/mnt/wx"} {
		if got, err := workspacePath(st, "/", arg); err == nil {
			t.Errorf("%s: got %q, want an error", arg, got)
		}
	}
}
