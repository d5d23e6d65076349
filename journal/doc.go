// Package journal keeps the history and the state of a workspace: an
// append-only record log, the data that records refer to, and a bbolt
// database that holds the state at some record so that opening is quick.
//
// The algebra is small. The state is a set of keyed values: the upper state of
// a node (Node), a directory entry (Entry) and the bytes of a file (Content).
// A Record is one operation by one actor: a list of Changes, each with the
// value before and the value after. Applying a record sets the values after;
// its inverse swaps the two. Rollback, undo, redo, a view at a past point and
// verification are all built on that and on nothing else.
//
// The package knows no FUSE and makes no errno. FORMAT.md describes the files
// byte by byte, and what is made of them after a crash.
//
// # Invariants
//
//   - The log is the authority. What the database holds is exactly what the log
//     leads to at the record that the database names, and that record was
//     durable before the database named it.
//   - A record is in the log whole or not at all; records are numbered without
//     gaps, and each carries the hash of the one before.
//   - Stored bytes never change, and the place by which they are named stays.
//   - A file that a fork has, too, is never written to.
//   - What Append has acknowledged survives the death of the process; what Sync
//     has covered survives the loss of power.
//   - A failed Append or Put has changed nothing.
//   - A value that two States share (State.Clone) is never changed: whichever
//     is to change it puts a copy in its place first. A State that was not
//     cloned yet shares nothing.
//   - A file is never repaired by guessing. Open cuts off what a crash can
//     leave at the end of the log; everything else that is wrong is a
//     *CorruptError.
//
// # A record's way
//
// Append checks and encodes the record, writes it with one system call and
// notes in a batch, in memory, which keys it set. The committer, every five
// seconds or 64 MiB of log, takes the batch, makes packs and log durable, and
// writes the batch into the database in one transaction. Appends go on
// meanwhile into the next batch. A commit that fails puts its batch back in
// front of that one.
//
// # Locks
//
// A lock may be taken while the locks above it are held, never the other way:
//
//	Store.gcMu        one collection at a time; another is refused
//	 Store.commitMu   one commit at a time; protects Store.meta
//	 Store.dbMu       held for reading during a transaction and a fork; a
//	                  collection replaces the database under it
//	  Store.syncMu    one sync at a time; protects Store.syncErr
//	    Store.mu      the log's end, the batches; held during the write of a frame
//	      packWriter.mu  the packs' ends; not held while data is written
//	        fileTable.mu the open files; held for reading during a read
//
// bbolt's write lock is taken under commitMu only, its read transactions
// under none of these and never together with a callback of the caller.
// commitMu and syncMu are held across fsync, mu is not: appends wait for a
// full disk cache at most, not for the disk.
//
// # Decisions
//
// The log is the journal. DESIGN.md's first sketch moved records from a
// write-ahead log into bbolt and then cut the log; here records stay in the
// log, which is append-only until history is trimmed, and bbolt holds the
// state and the indexes. A record is then written once, the background
// committer writes each changed node once a batch however often it changed,
// and the database can be rebuilt from the log.
//
// Data is never overwritten. Written bytes are appended, small ones inside the
// record's own frame, larger ones to a pack file in objects/, and a file's
// Content is a list of extents over them and over the lower file. So any
// record is a point that can be returned to exactly, a write is all or nothing
// across a crash, copy-up of a file of any size copies nothing, and versions
// share what they have in common.
//
// A clone of the state copies the maps of nodes, of directories and of contents
// and shares what these hold. Persistent maps, which would copy nothing, cost
// each look-up more than a Go map does, and every request pays for look-ups;
// a clone of 100,000 changed files takes some 20 ms, and is made for a status,
// a diff, an undo.
//
// The state is loaded whole when a journal is opened, so that no look-up can
// fail later: 100,000 changed files take a tenth of a second and 40 MB. What
// history holds beyond the state costs nothing then. Nodes that are gone have
// buckets of their own, and the check of the database's pages, which is the
// only thing that grows with history, takes 20 ms for a million records.
//
// Inline data stand in front of the record in its frame, so that their place
// is known before the record, which names it, is encoded.
//
// The log is not preallocated. fdatasync after an append into zeroed blocks
// took 93 us where one that grows the file took 115 us (ext4, virtual disk):
// not worth a tail that recovery must tell from records.
//
// Each frame says up to which record the log was durable when it was written,
// and the database in which boot of the machine the log was last opened. With
// these recovery can tell damage, which it refuses, from what the loss of
// power leaves, where pages reach the disk in any order.
//
// A collection keeps places valid rather than rewriting who names them: the
// records are chained by hashes and can't be changed, and a table of moved
// extents would have to be asked for each read. A keep is asked for reads of
// old data only, costs one binary search, and is made and removed as a whole.
// That history begins at the begin of a segment makes trimming a matter of
// removing files; segments are of 16 MiB so that this is fine enough. The
// database is made anew rather than trimmed, which compacts it, and makes it by
// construction what verify expects.
//
// Stored data are not compared with their checksums when they are read: an
// extent may be any part of what was written at once, so that the checksum of a
// 4 KiB read may be over a MiB, and CRC-32C of 128 KiB takes 9 us where reading
// them from the page cache takes 2. What a disk gets wrong it mostly
// reports itself; verify, collections and replay after a loss of power compare.
//
// A fork shares its parent's files by hard links rather than by a chain of
// directories, each with its own objects: it is as deep as one likes at no
// cost for reading, either side can be removed first, and no count of
// references has to be kept right across a crash. The price is that a fork
// seals the parent's open segment and pack, so that there are more of them, and
// copies the database, whose size follows the number of changes (40 MB for
// 100,000 changed files, copied in 15 ms), not their bytes. It is the snapshot of a
// read transaction, so a fork waits for no commit, and what the snapshot lacks is
// replayed from the log.
//
// bbolt has no checksums but on its meta pages, so each value carries one, and
// the meta value has for each bucket the number of pairs and the sum of their
// checksums. The structure of the pages is checked by our own code before
// bbolt maps the file, because bbolt, its Check included, reads out of bounds
// on damaged pages in goroutines that nobody can guard.
package journal
