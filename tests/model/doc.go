// Package model plays random system calls on two directories and compares: a
// mounted workspace over a lower tree, and a plain copy of that tree. After
// each operation the results and error numbers must be equal, at the end the
// trees, and again after a remount and with dropped caches.
//
// The operations come from the test itself, from several processes that take
// turns, with descriptors, mappings and working directories of their own
// (Op.Proc), or from several processes at the same time in directories of their
// own. With processes the kernel's caches are dropped every 0.3 s in half of
// the runs, and the daemon is stopped or killed and the workspace mounted again
// in between.
//
// The operations are plain values (Op), so a failing sequence can be printed,
// shortened and played again. The crash and history tests use them too.
//
//	MODEL_SEED  plays this seed alone
//	MODEL_RUNS  number of seeds, MODEL_OPS operations for each
//	MODEL_DIR   compares with a directory below this one instead of a mount
//
// TestSoak does all of it at the same time, for as long as SOAK_SECONDS says, and
// watches what the daemon holds: SOAK_SECONDS=1200 before a release.
//
// # What is not compared
//
// Times but for those set by utimensat, link counts and sizes of directories,
// allocated blocks: two ordinary file systems differ in these as well.
package model
