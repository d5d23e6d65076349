// Package workspace is one workspace as a whole: its state directory, its
// frozen configuration, its journal, its merged tree and its mount, and every
// operation of the command line as a method with plain request and result
// structs. The structs' JSON is both the control socket's wire format and the
// documents that `--json` prints.
//
// A Workspace is opened once per process: by the daemon, which mounts it, or,
// when no daemon runs, by a command that works on the state directory
// directly. The journal's lock makes sure that only one of them writes.
//
// # Locks
//
//	Workspace.admin      one operation that changes history by hand (undo,
//	                     rollback, discard, apply, checkpoint) at a time
//	  Workspace.mu       fields of the mount and of running commands
//
// The tree and the journal lock for themselves, below both.
//
// # Invariants
//
//   - The state root, a source and a mount point never lie inside each other.
//   - workspace.yaml is written once, when the workspace is created, with a
//     rename; a directory without it is a workspace that was never born.
//   - Whatever the host must not lose is in the journal before a source is
//     touched.
//
// # Decisions
//
// Keys of the configuration that would restrict something and that this
// version doesn't enforce are refused at creation, never ignored.
//
// The daemon's view of the mount is written to runtime.json, which is advice
// only: whether a daemon lives is decided by connecting to its socket.
package workspace
