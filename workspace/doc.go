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
//     rename; a directory without it is a workspace that was never born, and is
//     removed by the next creation if its mark says that it was on its way.
//   - Whatever the host must not lose is in the journal before a source is
//     touched.
//
// # Decisions
//
// Keys of the configuration that would restrict something and that this
// version doesn't enforce are refused at creation, never ignored.
//
// A rollback or discard of the whole workspace records only the point that it
// returned to: that it reverted everything behind it follows from that, and
// the list would grow with the history. One that is limited to some paths says
// so in its note. Redo takes back the last undo, rollback or discard that
// stands, and later work stays, as with undo.
//
// Undo merges text by path where an editor replaced the file by renaming
// another over it (sed -i does): to the people who ask for the undo it is the
// same file. UndoSet, which goes by node, decides all else.
//
// Apply makes the applied state the origin of its nodes, so that the next
// apply compares with that. A rename is applied as a removal and a creation.
//
// A directory counts as the source of one workspace however often it is
// mounted at the same place: `mount SOURCE MOUNTPOINT` goes on with the
// workspace that was mounted there over it, which is what fstab needs.
//
// The daemon's view of the mount is written to runtime.json, which is advice
// only: whether a daemon lives is decided by connecting to its socket.
package workspace
