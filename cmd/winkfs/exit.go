package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/winkfs/winkfs/workspace"
)

// Exit statuses, as CLI.md has them.
const (
	exitDone        = 0
	exitFailure     = 1
	exitUsage       = 2
	exitUnknown     = 3
	exitRefused     = 4
	exitConflict    = 5
	exitNotMounted  = 6
	exitEnvironment = 7
	exitTimeout     = 124
	exitSandbox     = 125
	exitCannotRun   = 126
	exitNoCommand   = 127
	exitSignal      = 128
)

// exitStatus is an error that says nothing and only sets the exit status: the
// command's own, or that of `diff --exit-code`.
type exitStatus int

// Error returns a text for those who print it by mistake.
func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// sandboxError marks a failure of run, exec or shell itself, as opposed to one
// of the command.
type sandboxError struct{ err error }

func (e *sandboxError) Error() string { return e.err.Error() }
func (e *sandboxError) Unwrap() error { return e.err }

// exitCode is the only place that turns an error into an exit status.
func exitCode(err error) int {
	var status exitStatus
	var sandbox *sandboxError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &status):
		return int(status)
	case errors.Is(err, context.Canceled):
		return exitSignal + 2
	case errors.As(err, &sandbox):
		return sandboxCode(workspace.CodeOf(err))
	}
	return plainCode(workspace.CodeOf(err))
}

func plainCode(c workspace.Code) int {
	switch c {
	case workspace.CodeUsage, workspace.CodeConfig:
		return exitUsage
	case workspace.CodeUnknown, workspace.CodeNothing:
		return exitUnknown
	case workspace.CodeRefused:
		return exitRefused
	case workspace.CodeConflict:
		return exitConflict
	case workspace.CodeNotMounted:
		return exitNotMounted
	case workspace.CodeEnvironment:
		return exitEnvironment
	case workspace.CodeCannotRun:
		return exitCannotRun
	case workspace.CodeNoCommand:
		return exitNoCommand
	}
	return exitFailure
}

// sandboxCode is for commands that return the exit status of what they run:
// winkfs's own failure must not look like the command's.
func sandboxCode(c workspace.Code) int {
	switch c {
	case workspace.CodeUsage, workspace.CodeConfig, workspace.CodeUnknown, workspace.CodeNothing,
		workspace.CodeNotMounted, workspace.CodeEnvironment, workspace.CodeCannotRun, workspace.CodeNoCommand:
		return plainCode(c)
	}
	return exitSandbox
}

// errorDocument is the form of errors under --json.
type errorDocument struct {
	Schema string `json:"schema"`
	*workspace.Error
}

// printError shows an error to the person or the program that called.
func printError(w io.Writer, err error, asJSON bool) {
	var status exitStatus
	if err == nil || errors.As(err, &status) {
		return
	}
	e := workspace.AsError(err)
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(errorDocument{"winkfs.error/v1", e})
		return
	}
	fmt.Fprintf(w, "winkfs: %s\n", printable(e.Message))
	var told *toldConflicts
	if errors.As(err, &told) {
		e.Conflicts = nil
	}
	for _, c := range e.Conflicts {
		fmt.Fprintf(w, "  %s: %s\n", printable(c.Path), printable(c.Reason))
	}
	if e.Hint != "" {
		fmt.Fprintf(w, "hint: %s\n", printable(e.Hint))
	}
}
