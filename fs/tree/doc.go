// Package tree is the merged tree of a workspace: the upper state that the
// journal holds over the lower directories that the host has. It knows neither
// FUSE nor bbolt and is tested without a mount.
//
// # Model
//
// A node is found by its number. Its upper state (journal.Node) is one of
// three: none (everything follows the lower), pinned (the node's name is held
// in place, attributes follow the lower) or own (attributes and extended
// attributes are its own; for a regular file OwnContent says that its bytes
// are, too). Copy-up is the step from one to the next at the first change that
// needs it, never at open, and copies no bytes of large files: the content
// refers to the lower by extents.
//
// Before a node gets a state, its ancestors are pinned, each with its entry,
// so that a change is found by names even if the host renames or replaces what
// is below it. A directory that came from the lower keeps its origin when it
// is renamed, so its lower children are found where they lie: a rename is one
// record whatever is below it.
//
// Hard links are one node, in the lower too, since the number is derived from
// the lower's inode number.
//
// # Invariants
//
//   - A node with upper state is reachable by pinned entries from the root, or
//     it is gone (Nlink 0).
//   - A state change is journaled before it is made; if journaling fails,
//     nothing has changed.
//   - The lower is only read.
//   - No system call on a lower file is made while Tree.mu is held: a hanging
//     lower stops only who asks for it. What was read without the lock is
//     checked again under it (errRetry).
//
// # Locks
//
//	Tree.mu
//	  listCache.mu, refusals.mu
//	  journal.Store's own
//	  lower.FS's own (never while calling the system)
//
// Tree.mu protects the state, the node table and every node's fields. Readers
// share it; a mutation holds it while it validates, appends its record and
// changes the state.
package tree
