// Package apply writes reviewed changes to the source directories: all of them
// or, after a failure or a crash, none.
//
// # How an apply runs
//
//  1. Preflight. Every path is looked at and compared with what the workspace
//     was based on. Any drift is a Conflict, and nothing has been touched.
//  2. The intent file is created and synced (FORMAT below).
//  3. Staging. Each new file, link and directory is made whole under a temporary
//     name (".winkfs-apply-...") in the directory that it will lie in, or in the
//     nearest one above it that exists and stays, and synced. Contents that the
//     end of the apply could not simply move into the state directory are copied
//     there (pre-images).
//  4. The intent file says "staged". From here a crash is resumed.
//  5. Commit. Only renames and directory creations: a new file is exchanged with
//     the old one, a deleted file is moved to a temporary name. What came out of
//     an exchange is compared with what preflight saw; if somebody was faster,
//     the exchange is taken back and the apply reverts. Any error reverts too, by
//     the same renames in the other order.
//  6. The intent file says "committed": point of no return. The old files move
//     into the state directory as pre-images, directories are synced, and the
//     intent file says "done".
//
// Recover finishes what a crash left: before "staged" it removes the temporary
// names, between "staged" and "committed" it resumes and, if that fails,
// reverts, after "committed" it finishes.
//
// # Invariants
//
//   - No path is ever joined below a root. Parents are opened one component at a
//     time by openat2 with RESOLVE_BENEATH, NO_SYMLINKS, NO_MAGICLINKS and NO_XDEV,
//     and everything else is an *at call on (parent, name).
//   - A file's contents are never changed in place, so a hard link elsewhere keeps
//     the old contents, and a reader sees the old file or the new one.
//   - Of attributes, user.* and access control lists are carried, nothing else. A
//     list that the host can't have is left out with a note; a new file that
//     replaces another keeps the other's list, as its owner, unless it has one.
//   - FIFOs, sockets and devices are never opened, written or made.
//   - No byte is destroyed before its pre-image is in the state directory: until
//     "committed" the old files lie whole beside the new ones, under temporary names.
//   - Every step of commit can be repeated: whether it was done is read from the
//     inode numbers on disk, not from a log.
//
// Run and Recover hold no locks; the caller lets one apply run at a time for each
// state directory. A second writer on the host is expected and is what the
// checks are for.
//
// # Format of an apply's directory
//
// DIR/N/ (0700) holds "intent", lines of JSON: {"plan":...} first, then
// {"state":"staged"|"committed"|"done"|"reverted", ...}; a line that is cut off
// does not count. Names are base64, since they need not be UTF-8. "pre/I" is the
// pre-image of operation I. The plan has for each operation the old metadata,
// "staged" has inode and SHA-256 of what was written, and "done" the fingerprints
// after it: together all that taking the apply back needs.
//
// # Decisions
//
//   - A file's pre-image is made before the commit only where the state directory
//     lies on another file system or the file has further hard links. Elsewhere the
//     old inode itself becomes the pre-image, after the commit and before anything
//     is unlinked: no copy, and a failed apply has not touched its ctime.
//   - Modes are applied as mode & 0777. SECURITY.md says 0755, which would make a
//     file that the reviewer saw as 0664 differ from the workspace for ever; the
//     mode is part of what is reviewed.
//   - As root, a new file gets the owner of the directory that it is made in. A
//     replaced one keeps its owner.
//   - Where RENAME_EXCHANGE is missing, the old file is moved away and the new one
//     moved in, so that for a moment the name does not exist.
package apply
