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
// The package knows no FUSE and makes no errno.
package journal
