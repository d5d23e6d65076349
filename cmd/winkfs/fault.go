package main

import (
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// faults returns what kills the daemon at its k-th write to disk, for the crash
// tests: k is WINKFS_CRASH_AT_WRITE. Without it, nil.
func faults(e *env) func(string) {
	k, err := strconv.ParseInt(e.getenv("WINKFS_CRASH_AT_WRITE"), 10, 64)
	if err != nil || k <= 0 {
		return nil
	}
	var n atomic.Int64
	return func(string) {
		if n.Add(1) == k {
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {}
		}
	}
}
