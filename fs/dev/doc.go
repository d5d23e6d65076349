// Package dev is the connection to the kernel's FUSE device: it mounts and
// unmounts, reads requests and writes replies, and tells the kernel what to
// forget. What a request means is the business of the fuse.RawFileSystem that
// is handed in; the package knows no tree.
//
// # Mounting
//
// Whoever has CAP_SYS_ADMIN in the mount namespace's user namespace mounts by
// mount(2): root, and a process in a user namespace of its own. Everybody else
// goes through fusermount3. Mounts are recognised by their type, fuse.winkfs,
// in /proc/self/mountinfo; nothing else is ever unmounted.
//
// # The loop
//
// One reader reads the device and handles what it read itself, on the same
// thread, since waking another thread costs more than most requests. The right
// to read is a token:
//
//	word = seq<<1 | busy
//
// The reader that has the token stores a new seq with the busy bit before it
// handles a request, and clears the bit by compare-and-swap afterwards. A
// watchdog looks at the word every 2 ms. When it sees the same busy word twice
// it takes the token by compare-and-swap and hands it to another reader; the
// slow reader notices at its own compare-and-swap and parks when it is done. So
// a request that hangs delays others by 4 ms at most, once.
//
// Up to 1,024 requests may hang so, each with a reader; the kernel may send as
// many read-ahead requests at once, since those that hang count.
//
// Invariants:
//
//   - At most one reader is in read(2), and it has the token.
//   - Only who has the token stores the word; seq only grows, so a
//     compare-and-swap never succeeds on an old word.
//   - Each request is answered exactly once, but for FORGET, BATCH_FORGET and
//     INTERRUPT. A reply that the kernel rejects is followed by an EIO, since a
//     client waits for good otherwise.
//   - Buffers are mapped and populated before they are used: the kernel ends a
//     request with EIO if copying it faults while the process is being killed.
//     Only readers beyond the 64th do without, lest a lower file system that
//     hangs take a mebibyte for each process that waits for it.
//   - Errnos of 512 and more never reach the kernel, which would reject the
//     whole reply.
//
// # Notifications
//
// Notifications are queued and written by a goroutine of their own, because
// the kernel may block them on a lock that a request in work holds: a handler
// that wrote one itself could wait for its own reply. Messages that are equal
// to one that still waits replace it, which keeps both the queue short and the
// order between different messages.
//
// # Locks
//
//	pool.mu    readers: who is parked, who has a token that nobody wanted
//	Queue.mu   the queue's batches
//
// Neither is held while the other is taken, nor across a system call.
//
// # Decisions
//
// INTERRUPT is answered with ENOSYS, which makes the kernel stop sending it.
// The filesystem's operations are short or not interruptible; and answering
// EAGAIN, as the library does for a request that it doesn't know, makes the
// kernel send the same INTERRUPT again at once.
//
// The library's protocol server treats one file name in the root directory as
// its own (".go-fuse-epoll-hack"). Requests that name it reach the filesystem
// with node number 0 instead of 1, which the library lets pass; Root maps it
// back.
//
// FUSE's PASSTHROUGH is not asked for: it would raise the superblock's stacking
// depth, so that overlayfs could no longer be mounted above a workspace.
//
// POSIX_ACL and DONT_MASK are asked for: the kernel evaluates ACLs and keeps them
// in its caches, and leaves to the filesystem what they mean for modes and for
// new files. The umask comes with each request that makes one.
//
// While requests come fast, 8,000 a second and more, the watchdog asks the kernel
// by PM QoS to let idle CPUs sleep lightly at most, if it may: reader and client
// wake each other on different CPUs, and in a virtual machine each waking of a
// halted CPU takes longer than the request. On an idle one with 2 CPUs random
// writes of 4 KiB went from 39 to 29 us, sequential ones from 42 to 25, making
// and removing a file from 270 to 150. A server in C that only throws the data
// away went from 60 us to 14. Spinning on the device instead, in the reader or in
// threads of idle priority, gained nothing or a third of that.
//
// The descriptor is read by ordinary blocking read(2) calls that the Go
// scheduler knows of. A raw system call would save it some work, but a thread
// in one can't be stopped for the garbage collector: a daemon that read so came
// to a standstill within seconds. Raw writes of replies, and locking the reader
// to its thread, made no difference that could be told from noise.
//
// # Using the mount from the process that serves it
//
// System calls that the scheduler knows of (those of os and x/sys/unix) may
// touch the mount from any goroutine but a handler's. Starting a process may
// not: between fork and exec the parent's thread waits without giving up its
// processor. So os/exec with a program, a working directory or a root inside
// the mount can hang the daemon; a child that goes there after it was executed
// is fine.
package dev
