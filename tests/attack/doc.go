// Package attack tries to get out of `winkfs exec`. Each file has one way: a
// probe that runs inside, which is this very test binary put into the source,
// and the test that starts it.
//
// A probe prints one line for each thing that it could do but should not be
// able to, then "done".
//
// # Invariants
//
// A probe tries nothing while it shares a namespace with the host: a sandbox
// that isolates nothing must fail the test, not harm the machine. What would
// change the whole kernel (core_pattern and the like) is opened, never
// written.
package attack
