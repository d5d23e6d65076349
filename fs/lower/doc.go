// Package lower reads source directories as the host has them and never
// changes them, not even an access time: see OpenSource. An ordinary user's
// process can't help those of symbolic links and of others' files.
//
// Everything goes from a directory descriptor to one name: openat2(2) with
// RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS, RESOLVE_NO_MAGICLINKS and
// RESOLVE_NO_XDEV, so neither a planted symbolic link nor a mount below the
// source can lead out of it, and no path is ever joined: paths may be longer
// than PATH_MAX. A Dir remembers its parent and its name, not a descriptor;
// descriptors live in a bounded least-recently-used cache and are opened again
// as needed. What is opened is compared with the inode number that was seen
// before: a file that the host replaced is ErrStale, never read in its place.
//
// Several sources can be stacked in one place; see AddBelow.
//
// # Locks
//
//	fdCache.mu, readAhead.mu
//
// Neither is taken under the other. They are held for map and list operations
// only, never during a system call.
package lower
