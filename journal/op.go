package journal

import (
	"errors"
	"fmt"
)

// ErrUnknownOp is returned by ParseOp.
var ErrUnknownOp = errors.New("unknown operation")

var opNames = [opMax]string{
	OpNone:         "none",
	OpCreate:       "create",
	OpMkdir:        "mkdir",
	OpMknod:        "mknod",
	OpSymlink:      "symlink",
	OpLink:         "link",
	OpUnlink:       "unlink",
	OpRmdir:        "rmdir",
	OpRename:       "rename",
	OpExchange:     "exchange",
	OpTmpfile:      "tmpfile",
	OpWrite:        "write",
	OpTruncate:     "truncate",
	OpFallocate:    "fallocate",
	OpCopyRange:    "copy_range",
	OpChmod:        "chmod",
	OpChown:        "chown",
	OpUtimens:      "utimens",
	OpSetattr:      "setattr",
	OpSetxattr:     "setxattr",
	OpRemovexattr:  "removexattr",
	OpExecBegin:    "exec_begin",
	OpExecEnd:      "exec_end",
	OpCheckpoint:   "checkpoint",
	OpUncheckpoint: "uncheckpoint",
	OpUndo:         "undo",
	OpRedo:         "redo",
	OpRollback:     "rollback",
	OpDiscard:      "discard",
	OpApply:        "apply",
	OpDenied:       "denied",
	OpGroupBegin:   "begin",
	OpGroupEnd:     "end",
	OpClone:        "clone",
	OpMerge:        "merge",
	OpOpen:         "open",
}

// String returns the operation's name in the log and in JSON.
func (o Op) String() string {
	if o < opMax {
		return opNames[o]
	}
	return fmt.Sprintf("op%d", uint8(o))
}

// ParseOp returns the operation with the name.
func ParseOp(name string) (Op, error) {
	for o := OpNone + 1; o < opMax; o++ {
		if opNames[o] == name {
			return o, nil
		}
	}
	return OpNone, fmt.Errorf("parse operation %q: %w", name, ErrUnknownOp)
}
