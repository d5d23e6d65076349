// Command bench prints what work in a workspace costs: each workload on the
// plain directory (native), in winkfs, in the kernel's overlayfs (for root) and
// in fuse-overlayfs (where installed), all on one disk, the runs of the systems
// taken in turn, medians, and the ratio to native beside its budget.
//
// Run it by `make bench` on a quiet machine.
//
//	BENCH_RUNS   runs of each row, 5
//	BENCH_ROWS   regular expression: only rows whose name matches
//	BENCH_DIR    where to work, a directory on an ordinary disk; default: the temporary directory
//	BENCH_SCALE  factor on the amount of work, 1
//
// Cold rows mount anew and, for root, drop the kernel's caches first. It ends
// with status 1 when a row that has a budget is over it.
package main
