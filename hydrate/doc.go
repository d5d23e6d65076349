// Package hydrate brings the sources of a workspace in and keeps sight of them.
//
// Its Watcher tells the tree when the host changes the lower, by inotify on each
// directory that the kernel may have cached and on each file that has several
// names. Walk fills the kernel's caches after a mount.
//
// # Invariants
//
//   - An event that the kernel queued before Watch returned is never lost: the
//     number of the watch is bound to the node before any event is looked at.
//   - The goroutine that reads events never waits for the sink, so a slow sink
//     costs memory that is bounded and then an overflow, never the kernel's
//     queue.
//   - An event may be told more than once or too much, never too little: where
//     something was lost the sink is told so (LowerOverflow).
//   - Watch reports true only where a change by anybody is seen. On file
//     systems that others change behind the kernel's back (nfs, fuse, ...) it
//     reports false.
//
// # Locks
//
// Watcher.mu guards the tables of watches; pending.mu guards what waits for
// delivery. Neither is taken under the other, and none is held while the sink
// is called or the kernel is waited for.
//
// # Decisions
//
// A workspace takes at most half of fs.inotify.max_user_watches, because the
// limit is the user's and not ours: editors and build tools of the same user
// need watches too.
//
// A watch that nobody needs any more is kept for a second, as it is cheaper than
// a new one for a directory that is forgotten and looked up again.
//
// What inotify misses stays missed: stores through a shared mapping until it is
// unmapped, and a second name that a file gets in a directory that is not
// watched, with what is written through it, until the file is looked up again.
package hydrate
