package workspace

import (
	"context"
	"io"

	"github.com/winkfs/winkfs/diffview"
)

// Operations is what can be done with a workspace. A Workspace has them, and
// so has a client of its daemon; the command line doesn't care which.
//
// Methods that stream take a function or a writer, and hand over what they
// have until it fails.
type Operations interface {
	Status(ctx context.Context) (*Status, error)
	Log(ctx context.Context, req *LogRequest, fn func(*LogEntry) error) error
	Show(ctx context.Context, req *ShowRequest) (*ShowResult, error)
	Files(ctx context.Context, req *FilesRequest) (*FilesResult, error)
	Diff(ctx context.Context, req *DiffRequest, w io.Writer) (*DiffSummary, error)
	File(ctx context.Context, req *FileRequest, w io.Writer) (*FileInfo, error)
	Blame(ctx context.Context, req *BlameRequest) (*BlameResult, error)
	Undo(ctx context.Context, req *UndoRequest) (*HistoryResult, error)
	Redo(ctx context.Context, req *RedoRequest) (*HistoryResult, error)
	Rollback(ctx context.Context, req *RollbackRequest) (*HistoryResult, error)
	Checkpoint(ctx context.Context, req *CheckpointRequest) (*CheckpointResult, error)
	Begin(ctx context.Context, req *BeginRequest) (*GroupResult, error)
	End(ctx context.Context, req *EndRequest) (*GroupResult, error)
	Discard(ctx context.Context, req *DiscardRequest) (*HistoryResult, error)
	Apply(ctx context.Context, req *ApplyRequest) (*ApplyResult, error)
	Fork(ctx context.Context, req *ForkRequest) (*ForkResult, error)
	Merge(ctx context.Context, req *MergeRequest) (*MergeResult, error)
	Exec(ctx context.Context, req *ExecRequest, io *Streams) (*ExecResult, error)
	GC(ctx context.Context, req *GCRequest, fn func(*GCProgress) error) (*GCResult, error)
	MountAt(ctx context.Context, req *MountAtRequest) (*MountAtResult, error)
	Unmount(ctx context.Context, req *UnmountRequest) (*UnmountResult, error)
}

// Status is the document winkfs.status/v1.
type Status struct {
	Schema     string       `json:"schema"`
	ID         string       `json:"id"`
	Name       string       `json:"name"`
	Mountpoint string       `json:"mountpoint"`
	Mounted    bool         `json:"mounted"`
	PID        int          `json:"pid"`
	Workdir    string       `json:"workdir"`
	Sources    []Source     `json:"sources"`
	StartedAt  Time         `json:"started_at"`
	LastUsedAt Time         `json:"last_used_at"`
	First      uint64       `json:"first"` // the oldest record that there is
	Head       uint64       `json:"head"`
	Changes    ChangeCounts `json:"changes"`
	// Drift lists the changed paths that the host has changed, too, since the
	// workspace first touched them: apply refuses them.
	Drift []Conflict `json:"drift"`
	// JournalBytes counts the log and the database, ObjectBytes the contents.
	JournalBytes int64    `json:"journal_bytes"`
	ObjectBytes  int64    `json:"object_bytes"`
	Policy       Policy   `json:"policy"`
	Isolation    string   `json:"isolation"`
	Container    any      `json:"container"`
	Degraded     []string `json:"degraded"`
	// Parent is the workspace that this one is a fork of, Forks are its own.
	Parent *Parent    `json:"parent,omitempty"`
	Forks  []ForkInfo `json:"forks"`
	// Past are the mounts of past states that the daemon serves, too.
	Past []PastInfo `json:"past"`
}

// ChangeCounts counts changed paths against the base.
type ChangeCounts struct {
	Created  int `json:"created"`
	Modified int `json:"modified"`
	Deleted  int `json:"deleted"`
}

// Policy is the effective configuration as status shows it.
type Policy struct {
	Symlinks string     `json:"symlinks"`
	Audit    string     `json:"audit"`
	Exec     ExecConfig `json:"exec"`
}

// LogRequest selects records. Zero fields select everything.
type LogRequest struct {
	Exec   uint64 `json:"exec,omitempty"`
	Path   string `json:"path,omitempty"`  // the path or anything below it
	Op     string `json:"op,omitempty"`    // name of an operation
	Since  string `json:"since,omitempty"` // a point; records behind it
	Denied bool   `json:"denied,omitempty"`
	Limit  int    `json:"limit,omitempty"` // the newest so many
}

// LogEntry is one record as `log` shows it.
type LogEntry struct {
	Seq     uint64   `json:"seq"`
	Time    Time     `json:"time"`
	Op      string   `json:"op"`
	Path    string   `json:"path,omitempty"`
	Path2   string   `json:"path2,omitempty"`
	Exec    uint64   `json:"exec,omitempty"`
	PID     uint32   `json:"pid,omitempty"`
	UID     *uint32  `json:"uid,omitempty"`
	Comm    string   `json:"comm,omitempty"`
	Bytes   uint64   `json:"bytes,omitempty"`
	Command []string `json:"command,omitempty"` // of the exec
	Point   uint64   `json:"point,omitempty"`
	Name    string   `json:"name,omitempty"`   // of a checkpoint
	Undone  []uint64 `json:"undone,omitempty"` // the records inverted
	Rule    string   `json:"rule,omitempty"`
	Refused string   `json:"refused,omitempty"`
	Message string   `json:"message,omitempty"`
	Exit    *int     `json:"exit_code,omitempty"`
}

// ShowRequest names a record ("42"), a command ("exec:3") or a group ("group:1").
type ShowRequest struct {
	What string `json:"what"`
}

// ShowResult is the document winkfs.show/v1. The difference that the record or
// command made is a DiffRequest with From, To and Exec taken from here.
type ShowResult struct {
	Schema  string           `json:"schema"`
	Record  *LogEntry        `json:"record,omitempty"`
	Exec    *ExecInfo        `json:"exec,omitempty"`
	Group   *GroupInfo       `json:"group,omitempty"`
	Seqs    []uint64         `json:"seqs,omitempty"` // records of the group
	From    uint64           `json:"from"`
	To      uint64           `json:"to"`
	Entries []diffview.Entry `json:"entries"`
}

// ExecInfo is one command of the journal.
type ExecInfo struct {
	ID       uint64    `json:"exec"`
	Command  []string  `json:"command"`
	Cwd      string    `json:"cwd"`
	Runner   string    `json:"runner"`
	Begin    Time      `json:"begin"`
	End      Time      `json:"end"`
	Running  bool      `json:"running"`
	ExitCode int       `json:"exit_code"`
	TimedOut bool      `json:"timed_out"`
	Seq      [2]uint64 `json:"seq"`
	Records  int       `json:"records"`
}

// Formats of DiffRequest.
const (
	FormatPatch      = "patch"
	FormatStat       = "stat"
	FormatNameStatus = "name-status"
	FormatJSON       = "json"
)

// DiffRequest asks for the differences between two points. From "" is the
// base, To "" the present.
type DiffRequest struct {
	From   string   `json:"from,omitempty"`
	To     string   `json:"to,omitempty"`
	Paths  PathList `json:"paths,omitempty"`
	Exec   uint64   `json:"exec,omitempty"` // only what this command's records touched
	Seqs   []uint64 `json:"seqs,omitempty"` // only what these records touched
	Format string   `json:"format"`
	Binary bool     `json:"binary,omitempty"`
	Colour bool     `json:"colour,omitempty"`
	// Escape says that the text goes to a terminal: control characters in
	// names and contents are shown escaped.
	Escape bool `json:"escape,omitempty"`
}

// FileRequest names a file at a point, "" = the present.
type FileRequest struct {
	Point string `json:"point,omitempty"`
	Path  string `json:"path"`
}

// FileInfo is what there is to say of a file at a point.
type FileInfo struct {
	Path  string `json:"path"`
	Point uint64 `json:"point"`
	Mode  string `json:"mode"` // as in git, with all bits
	Size  uint64 `json:"size"`
	Mtime Time   `json:"mtime"`
}

// BlameRequest names a text file.
type BlameRequest struct {
	Path string `json:"path"`
}

// BlameResult is the document winkfs.blame/v1.
type BlameResult struct {
	Schema string      `json:"schema"`
	Path   string      `json:"path"`
	Lines  []BlameLine `json:"lines"`
}

// BlameLine is one line of a file and who last wrote it.
type BlameLine struct {
	Line uint64 `json:"line"` // from 1
	// Base says that the line is the source's own.
	Base    bool     `json:"base,omitempty"`
	Exec    uint64   `json:"exec,omitempty"` // 0 = a process outside any command, or the base
	Command []string `json:"command,omitempty"`
	Seq     uint64   `json:"seq,omitempty"` // the newest record of the writing
	Comm    string   `json:"comm,omitempty"`
	Time    Time     `json:"time"`
	Text    string   `json:"text"`            // without the line's end
	Bytes   []byte   `json:"bytes,omitempty"` // the same, of a line that is not UTF-8
}

// FilesRequest names the paths to list; none means all.
type FilesRequest struct {
	Paths PathList `json:"paths,omitempty"`
}

// FilesResult is the document winkfs.files/v1.
type FilesResult struct {
	Schema string       `json:"schema"`
	Files  []ListedFile `json:"files"`
}

// ListedFile is one changed file.
type ListedFile struct {
	Path    string `json:"path"`
	Kind    string `json:"kind"` // file, symlink, fifo or socket
	Size    uint64 `json:"size"`
	Version uint64 `json:"version"` // from 1, one for each recorded change of the content
	Created Time   `json:"created"`
	Updated Time   `json:"updated"`
	Exec    uint64 `json:"exec"` // the last command that changed it, 0 = a process outside any
}

// DiffSummary counts what a diff showed.
type DiffSummary struct {
	ChangeCounts
	Renamed int `json:"renamed"`
}

// Any reports whether there was a difference.
func (s *DiffSummary) Any() bool { return s.Created+s.Modified+s.Deleted+s.Renamed > 0 }

// UndoRequest names what to revert: a command ("exec:3"), a group ("group:1",
// "group:NAME"), a record ("42") or what lies between two points ("42..90").
type UndoRequest struct {
	What   string   `json:"what"`
	Paths  PathList `json:"paths,omitempty"`
	DryRun bool     `json:"dry_run,omitempty"`
}

// RedoRequest asks for the last undo, rollback or discard to be taken back.
type RedoRequest struct {
	DryRun bool `json:"dry_run,omitempty"`
}

// RollbackRequest names the point to return to.
type RollbackRequest struct {
	Point  string   `json:"point"`
	Paths  PathList `json:"paths,omitempty"`
	DryRun bool     `json:"dry_run,omitempty"`
}

// DiscardRequest names the paths whose changes are dropped; none means all.
type DiscardRequest struct {
	Paths  PathList `json:"paths,omitempty"`
	DryRun bool     `json:"dry_run,omitempty"`
}

// HistoryResult is what undo, redo, rollback and discard answer.
type HistoryResult struct {
	Schema  string    `json:"schema"`
	Seq     uint64    `json:"seq"` // the new record, 0 for a dry run or when nothing differs
	Point   uint64    `json:"point,omitempty"`
	Undone  int       `json:"undone"` // records inverted
	Changes EffectSet `json:"changes"`
	// Restored are the changed paths that are as they were before what was
	// taken back, Merged those where later work stays in the same file. Refused
	// are the conflicts; then nothing was changed.
	Restored []string   `json:"restored"`
	Merged   []string   `json:"merged"`
	Refused  []Conflict `json:"refused"`
	DryRun   bool       `json:"dry_run,omitempty"`
}

// HistorySchema is the schema of HistoryResult.
const HistorySchema = "winkfs.history/v1"

// BeginRequest opens a group of commands, under a name if one is given.
type BeginRequest struct {
	Name string `json:"name,omitempty"`
}

// EndRequest closes the open group.
type EndRequest struct {
	Discard bool `json:"discard,omitempty"` // undo it, too
}

// GroupResult is the document winkfs.group/v1.
type GroupResult struct {
	Schema string         `json:"schema"`
	Group  *GroupInfo     `json:"group"`
	Undo   *HistoryResult `json:"undo,omitempty"` // what `end --discard` did
}

// GroupInfo is one group of commands.
type GroupInfo struct {
	ID    uint64 `json:"group"`
	Name  string `json:"name,omitempty"`
	Begin uint64 `json:"begin"` // its first record
	End   uint64 `json:"end"`   // its last, 0 while it is open
	Open  bool   `json:"open"`
}

// EffectSet lists changed paths.
type EffectSet struct {
	Created  []string      `json:"created"`
	Modified []string      `json:"modified"`
	Deleted  []string      `json:"deleted"`
	Renamed  []RenamedPath `json:"renamed"`
}

// RenamedPath is one rename.
type RenamedPath struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// CheckpointRequest names the present point, or deletes or lists names.
type CheckpointRequest struct {
	Name   string `json:"name,omitempty"`
	Delete bool   `json:"delete,omitempty"`
	List   bool   `json:"list,omitempty"`
}

// CheckpointResult is the document winkfs.checkpoint/v1.
type CheckpointResult struct {
	Schema      string           `json:"schema"`
	Checkpoints []CheckpointInfo `json:"checkpoints"`
}

// CheckpointInfo is one named point.
type CheckpointInfo struct {
	Name string `json:"name"`
	Seq  uint64 `json:"seq"`
	Time Time   `json:"time"`
}

// ApplyRequest asks for changes to be written to the sources.
type ApplyRequest struct {
	Paths  PathList `json:"paths,omitempty"`
	DryRun bool     `json:"dry_run,omitempty"`
}

// ApplyResult is the document winkfs.apply/v1.
type ApplyResult struct {
	Schema    string     `json:"schema"`
	Created   []string   `json:"created"`
	Modified  []string   `json:"modified"`
	Deleted   []string   `json:"deleted"`
	Skipped   []string   `json:"skipped"`
	Conflicts []Conflict `json:"conflicts"`
	Seq       uint64     `json:"seq"`
	DryRun    bool       `json:"dry_run,omitempty"`
}

// Count returns how many paths were written.
func (r *ApplyResult) Count() int { return len(r.Created) + len(r.Modified) + len(r.Deleted) }

// ForkRequest asks for the journal of a clone to be made in a directory of the
// state root that is waiting for it.
type ForkRequest struct {
	Into string `json:"into"`         // name of the directory
	At   string `json:"at,omitempty"` // the point to begin with; "" = the present
}

// ForkResult says with which point's state the clone begins.
type ForkResult struct {
	Seq uint64 `json:"seq"`
}

// MergeRequest asks for the changes of a fork of the workspace.
type MergeRequest struct {
	Workspace string `json:"workspace"` // id of the fork
	// Snapshot is the name of a directory of the state root with the fork's
	// journal as it is. A fork in use is read from there; "" = from its own.
	Snapshot string `json:"snapshot,omitempty"`
	DryRun   bool   `json:"dry_run,omitempty"`
}

// MergeResult is the document winkfs.merge/v1.
type MergeResult struct {
	Schema    string    `json:"schema"`
	Workspace string    `json:"workspace"` // id of the fork
	Name      string    `json:"name"`
	From      uint64    `json:"from"`   // the fork's record up to which it was merged
	Seq       uint64    `json:"seq"`    // the new record, 0 for a dry run or when nothing differs
	Merged    []string  `json:"merged"` // texts that were merged line by line
	Changes   EffectSet `json:"changes"`
	DryRun    bool      `json:"dry_run,omitempty"`
}

// CloneResult is the document winkfs.clone/v1.
type CloneResult struct {
	Schema   string   `json:"schema"`
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	StateDir string   `json:"state_dir"`
	Sources  []Source `json:"sources"`
	Parent   *Parent  `json:"parent"` // null for a clone without changes
}

// MountAtRequest asks for a past state to be mounted, read-only.
type MountAtRequest struct {
	Point      string `json:"point"`
	Mountpoint string `json:"mountpoint"` // without symbolic links, see Mountpoint
	AllowOther bool   `json:"allow_other,omitempty"`
}

// MountAtResult is the document winkfs.mount-at/v1.
type MountAtResult struct {
	Schema     string `json:"schema"`
	ID         string `json:"id"`
	Mountpoint string `json:"mountpoint"`
	Point      uint64 `json:"point"`
}

// PastInfo is one mount of a past state.
type PastInfo struct {
	Mountpoint string `json:"mountpoint"`
	Point      uint64 `json:"point"`
}

// UnmountRequest asks the daemon to unmount and end.
type UnmountRequest struct {
	Lazy bool `json:"lazy,omitempty"` // detach even when busy
}

// UnmountResult is the document winkfs.umount/v1.
type UnmountResult struct {
	Schema     string   `json:"schema"`
	Mountpoint string   `json:"mountpoint"`
	Holders    []Holder `json:"holders,omitempty"` // processes that keep the mount busy
}

// Holder is a process that uses the mount.
type Holder struct {
	PID  int    `json:"pid"`
	Comm string `json:"comm"`
	What string `json:"what"` // cwd, root, fd, map
	Path string `json:"path"`
}
