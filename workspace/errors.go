package workspace

import (
	"errors"
	"fmt"

	"github.com/winkfs/winkfs/journal"
)

// Code classifies an error for scripts. Codes are part of the JSON contract
// and decide the exit status of the command line.
type Code string

// Codes of errors.
const (
	CodeFailure     Code = "failure"           // something went wrong
	CodeUsage       Code = "usage"             // the request itself makes no sense
	CodeUnknown     Code = "unknown_workspace" // no such workspace, or several
	CodeNothing     Code = "nothing_to_do"     // no such record, command or path to act on
	CodeRefused     Code = "refused"           // by a rule or by the person asked
	CodeConflict    Code = "conflict"          // later work overlaps
	CodeNotMounted  Code = "not_mounted"       // no mount, or a stale one
	CodeEnvironment Code = "environment"       // the host lacks something
	CodeConfig      Code = "config"            // the configuration is wrong
	CodeCorrupt     Code = "corrupt"           // the journal is damaged
	CodeCannotRun   Code = "cannot_invoke"     // the command can't be started
	CodeNoCommand   Code = "command_not_found" // the command doesn't exist
)

// Error is an error that a person can act on. It crosses the control socket
// with all its fields but Err.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Path    string `json:"path,omitempty"`
	// Conflicts are the paths that stand in the way, for CodeConflict.
	Conflicts []Conflict `json:"conflicts,omitempty"`
	Err       error      `json:"-"`
}

// Conflict is one path that an operation could not change, and why.
type Conflict struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
	Undone *By    `json:"undone,omitempty"` // whose change was to be taken back
	Later  *By    `json:"later,omitempty"`  // whose later change is in the way
}

// Error returns the message and the cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Hinted sets the hint, which says what to do, and returns the error.
func (e *Error) Hinted(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// At sets the path that the error is about and returns the error.
func (e *Error) At(path string) *Error {
	e.Path = path
	return e
}

// Fail makes an error with a code.
func Fail(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an error with a code and a cause.
func Wrap(code Code, err error, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Err: err}
}

// AsError returns err as an *Error: the one inside it with the texts around
// it, or a failure that carries its text.
func AsError(err error) *Error {
	var e *Error
	var trimmed *journal.TrimmedError
	if !errors.As(err, &e) && errors.As(err, &trimmed) {
		e = trimmedError(trimmed)
		return &Error{Code: e.Code, Message: err.Error(), Hint: e.Hint}
	}
	if !errors.As(err, &e) {
		return &Error{Code: CodeFailure, Message: err.Error()}
	}
	flat := *e
	flat.Message, flat.Err = err.Error(), nil
	return &flat
}

// CodeOf returns the code of an error, CodeFailure where it has none.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	return AsError(err).Code
}
