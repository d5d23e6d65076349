// Package exec runs a command that sees a workspace's mount, a read-only
// system and nothing else of the host.
//
// NewPlan turns a Spec into a Plan by facts about the Host; it is pure, and
// Plan.String is what `exec --dry-run` prints. Run carries the plan out from
// inside the daemon. Probe finds the facts. Main must be the first call of
// main, for Run starts the program again as the sandbox's own processes:
//
//	daemon                    stage 1, pid 1 inside              stage 2
//	  cgroups, pipes
//	  id-mapped mount
//	  clone ------------------> waits
//	  into the cgroups
//	  OnStart
//	  plan -------------------> tree, pivot_root, loopback
//	                            clone -------------------------> waits
//	                            hides itself
//	                            plan --------------------------> rlimits, capabilities,
//	                                                             no_new_privs, cwd, seccomp
//	  <------------- started    <--------- end of its link ----- execve
//	                            reaps
//	  <---------------- exit    payload ended
//	  kills, waits, drains
//
// The arrows are links: socket pairs with framed JSON (message has the
// protocol). Nothing is told by arguments or environment. Errors travel the
// same way and name the layer and the mend.
//
// # Invariants
//
// The payload's kernel uid is never 0. It holds no capability in any set, which
// is read back before execve. It starts only on the mount that was meant: the
// type and the device number of its file system are compared. When Run returns
// no process of the sandbox is left: the death of pid 1 is the death of its
// namespace and is reported after it. Stage 1 dies with the daemon, by PDEATHSIG
// on a thread that lives as long as the daemon and by the end of its link.
//
// The daemon serves the mount that the sandbox uses, so Run never looks into it:
// what is asked of the mount is asked by stage 1.
//
// # Who the payload is
//
// Started by the initial namespace's root, the payload is SandboxID, and an
// id-mapped clone of the mount shows the owner's files as its own (KERNEL.md
// section 3). Started by anyone else, also by a user's daemon that is root in a
// user namespace of its own, it keeps the user's kernel id. Inside it has the
// owner's number, but for root's, in a second user namespace that owns none of
// the mounts.
//
// # Locks
//
//	mappings.mu   held over the making of a mapping's namespace; no other
//	              lock is taken under it
//
// Run holds none. Several runs may be under way at the same time; one thread,
// the spawner's, forks for all of them.
//
// # Decisions
//
//   - SandboxID is not 100000, as in KERNEL.md's experiments: /etc/subuid gives
//     that range to the first user, who could enter the sandbox by it.
//   - Files of root show as ShownID's inside: tools that believe to be root
//     change owners and install into the system, neither of which works.
//   - The cgroup namespace is entered by stage 1, once it is in its leaf, so
//     that the leaf is its root. A cgroup is made only for a limit: killing
//     needs the pid namespace and nothing else.
//   - Stage 1 has every signal's default action instead of the runtime's
//     handlers: the kernel then keeps from it whatever the payload sends.
//   - SECURITY.md's Landlock layer is not there yet. It goes into becomePayload
//     between no_new_privs and the working directory.
//
// # Limits
//
// A payload started by root may use the files of the source's owner only; those
// of others show as nobody's. With no cgroup to be had, the number of processes
// is bounded by RLIMIT_NPROC, memory by process with RLIMIT_DATA and processor
// time not at all, and the plan says so. A user's payload keeps the user's
// supplementary groups, since only root may drop them.
package exec
