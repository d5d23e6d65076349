// Package fs shows a tree to the kernel: it decodes FUSE requests, asks the
// tree, and encodes its answers. It decides nothing about files itself.
//
// # Invariants
//
//   - Handleless: OPEN, OPENDIR and FLUSH are answered ENOSYS, so the kernel
//     sends none of them again and no RELEASE. Everything is addressed by node
//     number, and CREATE answers file handle 0. With MountConfig.AuditOpens
//     the kernel sends OPEN and RELEASE; nothing depends on them either.
//   - toErrno is the only place where an errno is made. ENOSYS is answered on
//     purpose only, to the operations named above, ACCESS and the lock
//     operations, because the kernel then never asks again.
//   - Names, targets and values come from whoever uses the mount. They are
//     never logged but quoted.
//   - A reply is complete or an error. A listing that fails half way is the
//     half that there is: its entries may count as looked up already.
//
// # Locks
//
// The package has no locks of its own but that of the log limiter, which is a
// leaf.
//
// # Decisions
//
// The umask is the tree's to apply, since a directory's default ACL takes its
// place. ACLs themselves are evaluated by the kernel.
//
// In a mount that is nosuid, security.capability is answered "no such attribute"
// without asking the tree, and left out of lists. The kernel asks for it before
// the first write to a file and at each exec, and file capabilities have no
// effect there.
//
// CREATE of a name that exists although the kernel thought it did not (the
// daemon put it there meanwhile) answers ESTALE without O_EXCL: the kernel then
// looks the name up again and opens the file after checking its permissions,
// which it does not do for a file that it believes to have just been created.
//
// A request's number is passed on without the bit that marks it as sent again
// to a replacement daemon, so that both have the same number.
package fs
