// Package coherence tests that what the host does to a source shows in the
// mount, whatever the kernel has cached of the mount before.
//
// Each kind of edit is made under each kind of cached state, and the same look
// is taken at the source and at the mount until both agree. The time that takes
// is the latency. A difference that stays is a miss.
//
// # Environment
//
//	COHERENCE_EDITS   how many random edits; 200
//	COHERENCE_ROUNDS  how often each edit is made under each state; 2
//	COHERENCE_SEED    of the random edits; a new one each time
package coherence
