// Package crash kills the daemon at its k-th write to disk during a random
// workload, for rising k, and looks at what comes back: the workspace mounts
// again, `winkfs verify` is clean, every operation that was answered is there,
// in order, and of the one that was not, all or nothing.
//
// The daemon kills itself when WINKFS_CRASH_AT_WRITE=k is in its environment:
// it counts every write, sync and rename of its store. A kill shows wrong
// order, and what is missing in the log; it loses no data that was written but
// not synced.
//
// The same is done to undo, rollback, discard and gc, and a disk with the state
// directory loses its power while it is written to.
//
//	MODEL_SEED  plays this seed alone
//	CRASH_RUNS  number of kills
//	CRASH_AT    kills at this write alone
package crash
