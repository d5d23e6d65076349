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
// A change of history is worked out beside the running workspace, and if that
// went on meanwhile the changes are worked out afresh under the tree's lock from
// the same records, so that a busy command can't keep an undo off. Files that
// it takes away go as an unlink lets them go: who has one open goes on.
//
// A change of history asks the rules for every path that it touches before it
// is made, as a process that did the same would be asked, and is refused as a
// whole: a clone may be under narrower rules than the work that it inherited.
//
// Undoing a set of records that is not the newest is refused rather than
// guessed: a name that others set since, or a file that they removed, is a
// conflict even if the result would look right, since a later undo of theirs
// would go wrong. Times alone never conflict.
//
// What was undone is found by walking the records that take others back from
// the newest on (the journal's index by operation lists them): such a record
// counts only if nothing later took it back in its turn. Groups of commands
// are two records, and what began between them belongs to the group.
//
// A daemon's notification raises no inotify event, so a helper process repeats
// changes of history through the mount for those who watch (tree.Replay): only
// where /proc shows a watch on what changed, and where a file gets shorter,
// because who has it open to append would write behind its old end.
//
// A past state is mounted by the daemon of the live one, or, if there is none,
// by a process that has the journal open for reading, as long as it is mounted:
// the live workspace can't be mounted beside it then.
//
// Apply makes the applied state the origin of its nodes, so that the next
// apply compares with that. A rename is applied as a removal and a creation.
//
// A clone with changes begins with all of its parent's history, also one of an
// older point, which then takes back what came later in its first own record:
// sealed files can't be cut. A command takes the clone's directory, has the
// journal put into it by whoever has the parent open, and makes it a workspace
// last, so that the daemon of the parent needs to know no more than a place.
//
// A merge goes by nodes and names rather than by paths or by the fork's
// records. Both sides are compared with the fork point, so undos, rollbacks and
// trimmed history on either side don't matter, and a change finds its file in
// a directory that the other side has renamed. Both sides give out the same
// numbers to new nodes, so the fork's are counted on from the parent's next
// number; the merge's record keeps the relation, and a later merge of the same
// fork starts from there. What a
// file has in the parent already is referred to, what the fork stored since is
// copied into the parent's packs, a MiB at a time: a link to the fork's pack
// would need another number in its header, and would keep all of the pack for
// what may be little.
//
// A point of another workspace is written ws:NAME or ws:NAME@POINT: it stands
// wherever a diff takes a point, and can't be mistaken for one of this
// workspace's. Two related workspaces are compared by node as well as by path,
// so that renames show; their common numbers are those given out before either
// left the last ancestor that both have.
//
// A fork in use is merged, or compared, from a snapshot of its journal: a clone
// that is no workspace and is removed afterwards.
//
// A directory counts as the source of one workspace however often it is
// mounted at the same place: `mount SOURCE MOUNTPOINT` goes on with the
// workspace that was mounted there over it, which is what fstab needs.
//
// The daemon's view of the mount is written to runtime.json, which is advice
// only: whether a daemon lives is decided by connecting to its socket.
package workspace
