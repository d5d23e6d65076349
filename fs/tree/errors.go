package tree

import "errors"

// Errors of the tree's operations. They are wrapped with the operation and the
// name; a lower or store failure wraps the system's errno instead. The fs
// package turns both into what the caller of the system call sees.
var (
	ErrNotExist     = errors.New("no such file or directory")
	ErrExist        = errors.New("file exists")
	ErrNotDir       = errors.New("not a directory")
	ErrIsDir        = errors.New("is a directory")
	ErrNotEmpty     = errors.New("directory not empty")
	ErrInvalid      = errors.New("invalid argument")
	ErrNotPermitted = errors.New("operation not permitted")
	ErrAccess       = errors.New("permission denied")
	ErrReadOnly     = errors.New("read-only workspace")
	ErrCrossDevice  = errors.New("a rule forbids moving the file there")
	ErrLoop         = errors.New("symbolic link not allowed")
	ErrNameTooLong  = errors.New("name too long")
	ErrTooLarge     = errors.New("file too large")
	ErrQuota        = errors.New("quota exceeded")
	ErrNoSpace      = errors.New("no space left in the state directory")
	ErrNoAttr       = errors.New("no such extended attribute")
	ErrRange        = errors.New("buffer too small")
	ErrNotSupported = errors.New("operation not supported")
	ErrNoData       = errors.New("no data or hole at that offset") // ENXIO of lseek
	ErrStale        = errors.New("stale node number")
	ErrMaxLinks     = errors.New("too many links")
)
