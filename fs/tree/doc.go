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
// # The host's edits
//
// A lower node follows its inode: what the host renames or moves keeps its node
// (relocate), and what it puts in a file's place is another node, even with the
// same inode number, since the time of birth differs. A directory with state
// follows its place instead, since its changes were made at that place: when the
// host replaces the directory there, the new one shows below the changes
// (resettle), and when the host moves it away, the changes stay and the moved
// directory is another node (attach). A file that the host deletes while the
// kernel refers to it is kept open, if it was (keep).
//
// The kernel hears of an edit by LowerChanged and its siblings. Each notification
// of a node comes behind one of its name, because that waits for look-ups under
// way, whose answers would else be older and come later. Where the lower can't
// be watched, answers hold for a second, and a look that finds a node changed
// tells the kernel before it is answered (compare).
//
// # Invariants
//
//   - A node with upper state is reachable by pinned entries from the root, or
//     it is gone (Nlink 0).
//   - A state change is journaled before it is made; if journaling fails,
//     nothing has changed.
//   - The lower is only read.
//   - No system call on a lower file is made while a lock is held: a hanging
//     lower stops only who asks for it. What was read without the lock is
//     checked again under it (errRetry).
//   - Nothing waits for the disk while Tree.mu is held: neither a record's way
//     into the log nor a sync nor a copy. A disk that takes its time over a
//     record holds up changes, not look-ups and reads.
//
// # Locks
//
// A lock may be taken while those above it, that it is indented under, are
// held, never the other way:
//
//	Tree.still            held for reading by each request that changes the tree
//	  Tree.order          one change at a time, from validation until it shows
//	    journal.Store's own (Append, LookupNode)
//	    Tree.mu
//	      listCache.mu    refusals.mu    openings.mu    Notifier's own
//	      lower.FS's own  (never while calling the system)
//
// Tree.mu protects the state, the node table and every node's fields. Readers
// share it. A change takes it twice: to validate and collect what it does to
// the state, and, once that is journaled, to make it. In between nobody else
// changes the state, since that takes Tree.order; nodes may come into the table
// and leave it, but for those that the change is about (see mutate).
//
// The state of a node without names is dropped from memory when the kernel
// forgets the node; the store still has it. While a group of changes is made
// (Commit), it stays.
//
// # Numbers
//
// The kernel addresses nodes by number alone. Numbers of created nodes are
// never used again. That of a lower file is used again when the host deletes
// the file and makes another that gets its inode number: the two differ by
// their generation, which is made of the time of birth, so that the kernel
// takes the second for another file. If the first has state of its own, the
// second gets a number of its own instead.
package tree
