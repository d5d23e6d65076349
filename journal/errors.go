package journal

import (
	"errors"
	"fmt"
)

// Errors of the store. Failures of the disk wrap the system's errno.
var (
	// ErrLocked means that another process has the journal open.
	ErrLocked = errors.New("journal is in use")
	// ErrNewerFormat means that a newer winkfs wrote the journal.
	ErrNewerFormat = errors.New("journal was written by a newer winkfs")
	// ErrOlderFormat means that a winkfs before the first release wrote the
	// journal.
	ErrOlderFormat = errors.New("journal was written by an older winkfs, in a format that is not read any more")
	// ErrReadOnly is returned by changes to a store opened with ReadOnly.
	ErrReadOnly = errors.New("journal is open for reading only")
	// ErrClosed is returned by calls to a closed store.
	ErrClosed = errors.New("journal is closed")
	// ErrInvalidRecord means that a record breaks the rules of the format.
	// Nothing was appended.
	ErrInvalidRecord = errors.New("invalid record")
	// ErrTrimmed means that gc has dropped the part of history asked for.
	ErrTrimmed = errors.New("history was trimmed")
	// ErrCollecting means that a collection is under way already.
	ErrCollecting = errors.New("another gc is running")
	// ErrNotJournal means that the directory holds no journal.
	ErrNotJournal = errors.New("no journal in the directory")
)

// otherFormat reports whether a journal is whole, as far as can be told, but in
// a format that this package doesn't read.
func otherFormat(err error) bool {
	return errors.Is(err, ErrNewerFormat) || errors.Is(err, ErrOlderFormat)
}

// TrimmedError says from where on history is to be had. It matches ErrTrimmed.
type TrimmedError struct {
	Seq   Seq // asked for
	First Seq // the oldest there is
}

// Error says both.
func (e *TrimmedError) Error() string {
	return fmt.Sprintf("record %d was dropped by gc: history begins at record %d", e.Seq, e.First)
}

// Is makes errors.Is(err, ErrTrimmed) true.
func (e *TrimmedError) Is(target error) bool { return target == ErrTrimmed }

// LockedError says who has the journal open. It matches ErrLocked.
type LockedError struct {
	Dir string
	PID int // 0 = not known
}

// Error names the holder if it is known.
func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("lock %s: %v", e.Dir, ErrLocked)
	}
	return fmt.Sprintf("lock %s: %v by process %d", e.Dir, ErrLocked, e.PID)
}

// Is makes errors.Is(err, ErrLocked) true.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// CorruptError says that a file of the journal is not what was written, where,
// and what can be done.
type CorruptError struct {
	File   string // relative to the state directory
	Pos    int64  // position in the file, -1 = the file as a whole
	Seq    Seq    // record concerned, 0 = none or not known
	Reason string
	Way    string // the way out
}

// Error gives place, reason and way out.
func (e *CorruptError) Error() string {
	s := "journal is damaged: " + e.File
	if e.Pos >= 0 {
		s += fmt.Sprintf(" at byte %d", e.Pos)
	}
	if e.Seq != 0 {
		s += fmt.Sprintf(" (record %d)", e.Seq)
	}
	s += ": " + e.Reason
	if e.Way != "" {
		s += "; " + e.Way
	}
	return s
}

const (
	wayRepair  = "the log is the authority: `winkfs verify --repair` rebuilds the database from it"
	wayRestore = "`winkfs verify` lists all damage; `winkfs verify --repair` mends it if only the end of the log is hit; else restore the file from a backup"
)

// corruptDB returns the error for a damaged database.
func corruptDB(format string, args ...any) *CorruptError {
	return &CorruptError{File: dbName, Pos: -1, Reason: fmt.Sprintf(format, args...), Way: wayRepair}
}

// corruptAt returns the error for a damaged log or pack.
func corruptAt(file string, pos int64, seq Seq, format string, args ...any) *CorruptError {
	return &CorruptError{File: file, Pos: pos, Seq: seq, Reason: fmt.Sprintf(format, args...), Way: wayRestore}
}
