package exec

import (
	"errors"
	"fmt"
)

// Error is a failure of the sandbox itself or to invoke the command. It crosses
// the link between the stages as JSON.
type Error struct {
	Layer   string `json:"layer"`          // what failed: "id-mapped mount", "command", ...
	Message string `json:"message"`        // verb object: cause
	Mend    string `json:"mend,omitempty"` // what to do about it
	Code    int    `json:"code"`           // ExitSandbox, ExitInvoke or ExitNotFound

	cause error
}

// Error gives the layer, what happened and the mend.
func (e *Error) Error() string {
	text := e.Layer + ": " + e.Message
	if e.Layer == layerCommand {
		text = e.Message
	}
	if e.Mend != "" {
		text += " (" + e.Mend + ")"
	}
	return text
}

// Unwrap gives the cause, on the side of the link where it arose.
func (e *Error) Unwrap() error { return e.cause }

// Names of layers in errors, in Host.Layers and in Plan.Degraded.
const (
	layerSpec     = "request"
	layerNS       = "namespaces"
	layerIdmap    = "id-mapped mount"
	layerMount    = "workspace mount"
	layerRoot     = "root file system"
	layerProc     = "proc"
	layerDev      = "devices"
	layerNet      = "network"
	layerTTY      = "terminal"
	layerCaps     = "capabilities"
	layerNNP      = "no_new_privs"
	layerRlimits  = "rlimits"
	layerSeccomp  = "seccomp"
	layerCwd      = "working directory"
	layerCommand  = "command"
	layerLink     = "link"
	layerMemory   = "memory limit"
	layerPids     = "process limit"
	layerCPU      = "cpu limit"
	layerUserNSes = "nested user namespaces"
)

// fail makes a sandbox failure of a layer.
func fail(layer, doing string, err error) *Error {
	return &Error{Layer: layer, Message: fmt.Sprintf("%s: %v", doing, err), Code: ExitSandbox, cause: err}
}

// refuse makes a refusal that has no system error behind it.
func refuse(layer, mend, format string, args ...any) *Error {
	return &Error{Layer: layer, Message: fmt.Sprintf(format, args...), Mend: mend, Code: ExitSandbox}
}

// withMend adds what to do about it.
func (e *Error) withMend(mend string) *Error {
	e.Mend = mend
	return e
}

// asError makes an Error of any failure.
func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Layer: layerLink, Message: err.Error(), Code: ExitSandbox, cause: err}
}
