package main

import (
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
)

// faults returns what the tests make of the daemon's writes to disk:
// WINKFS_CRASH_AT_WRITE kills it at the k-th, WINKFS_STALL_SYNC holds up every
// sync for as long as the file that it names is there. Without them, nil.
func faults(e *env) func(kind string) {
	crash, stall := crashAt(e.getenv("WINKFS_CRASH_AT_WRITE")), e.getenv("WINKFS_STALL_SYNC")
	if stall == "" {
		return crash
	}
	return func(kind string) {
		if crash != nil {
			crash(kind)
		}
		for kind == journal.KindFsync && unix.Access(stall, unix.F_OK) == nil {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func crashAt(at string) func(string) {
	k, err := strconv.ParseInt(at, 10, 64)
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
