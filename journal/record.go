package journal

// Seq numbers records 1, 2, 3, ... without gaps. 0 is the point before the
// first record.
type Seq uint64

// ExecID numbers the commands run in the workspace from 1. 0 is a process
// outside any of them.
type ExecID uint64

// Op names the operation that a record stands for.
type Op uint8

// Operations. The names that String gives are part of the JSON contract.
const (
	OpNone Op = iota
	OpCreate
	OpMkdir
	OpMknod
	OpSymlink
	OpLink
	OpUnlink
	OpRmdir
	OpRename
	OpExchange
	OpTmpfile
	OpWrite
	OpTruncate
	OpFallocate
	OpCopyRange
	OpChmod
	OpChown
	OpUtimens
	OpSetattr // several attributes at once
	OpSetxattr
	OpRemovexattr
	OpExecBegin
	OpExecEnd
	OpCheckpoint
	OpUncheckpoint
	OpUndo
	OpRedo
	OpRollback
	OpDiscard
	OpApply
	OpDenied
	OpGroupBegin // the commands from here on belong together
	OpGroupEnd
	OpClone // a fork begins here
	OpMerge // a fork's changes
	OpOpen  // a file was opened, in a workspace that audits that
	opMax
)

// noted reports whether the operation is one that the index by operation
// lists: all but those on files, which are too many to be of use there.
func (o Op) noted() bool { return o >= OpExecBegin && o != OpOpen }

// Actor is who did it. What could not be found out is left zero or "unknown",
// never guessed.
type Actor struct {
	PID  uint32 // process (thread group) id as the daemon sees it; 0 = unknown
	TID  uint32 // thread that made the request
	UID  uint32
	Comm string // command name (/proc/PID/comm); "unknown" if the process was gone
	Exec ExecID
}

// Record is one journal entry. Append fills Seq, Time and Prev.
type Record struct {
	Seq   Seq
	Time  Timespec // wall clock
	Op    Op
	Actor Actor
	// Unique is the FUSE request's unique number, 0 for none: it lets a
	// replacement daemon recognise a request that was done but not answered.
	Unique uint64
	// Path and Path2 are the workspace-relative paths by which the operation
	// was made, for people; Path2 is the new name of a rename or link. They
	// decide nothing.
	Path, Path2 string
	Changes     []Change
	Data        []DataRef // data that this record added
	Note        *Note     // for records that are not file operations
	Prev        [32]byte  // SHA-256 of the encoded record before this one
}

// Change is one keyed value before and after. Exactly one field is set.
type Change struct {
	Node    *NodeChange
	Entry   *EntryChange
	Content *ContentChange
}

// NodeChange sets the upper state of a node. nil means that the upper has no
// state for it.
type NodeChange struct {
	ID            NodeID
	Before, After *Node
}

// EntryChange sets the upper's value of a name.
type EntryChange struct {
	Parent        NodeID
	Name          string
	Before, After Entry
}

// ContentChange replaces the bytes [Off, Off+Len) of a file's Content. Before
// and After cover the range in order; what no extent covers is a hole. The
// file's size is in its Node.
type ContentChange struct {
	ID            NodeID
	Off, Len      uint64
	Before, After []Extent
}

// DataRef names bytes that a record added to the store, with their CRC-32C.
type DataRef struct {
	Loc Loc
	Len uint64
	CRC uint32
}

// Note is the content of records that are not file operations. Unused fields
// are zero.
type Note struct {
	Exec       *Exec  // OpExecBegin, OpExecEnd: the exec's state then
	Checkpoint string // OpCheckpoint, OpUncheckpoint: its name; OpGroupBegin: the group's, "" = none
	Point      Seq    // OpCheckpoint, OpRollback: the point meant; OpGroupBegin: the group's number; OpGroupEnd: its OpGroupBegin; OpClone: the point of the parent whose state it is
	Undone     []Seq  // OpUndo, OpRedo, OpRollback, OpDiscard: the records inverted
	Rule       string // OpDenied: the rule that refused
	Message    string // OpDenied: the guiding text; OpOpen: the access: read, write, read-write or exec
	Refused    string // OpDenied: the operation refused ("write", ...)
	Text       string // JSON of whatever else the operation wants to keep
}

// Exec is one command run in the workspace.
type Exec struct {
	ID       ExecID
	Command  []string
	Cwd      string
	Runner   string
	Begin    Timespec
	End      Timespec // 0 while it runs
	ExitCode int
	TimedOut bool
	First    Seq // its OpExecBegin
	Last     Seq // its OpExecEnd, 0 while it runs
}
