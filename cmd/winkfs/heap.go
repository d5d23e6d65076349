package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// spareHeap is how many bytes of garbage a daemon may gather, however little
	// it has in use, before it collects.
	spareHeap = 32 << 20
	// sparePercent is how much of what is in use that may be at least.
	sparePercent = 40
	// heapEvery is how often the allowance follows what is in use.
	heapEvery = 2 * time.Second
)

// tendHeap keeps the garbage of a daemon that holds a great many nodes small
// beside them, until ctx ends. Go's own setting would let it grow to as much as
// is in use, so that a million cached files took twice their memory.
func tendHeap(ctx context.Context) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	tick := time.NewTicker(heapEvery)
	defer tick.Stop()
	for was := 100; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		metrics.Read(live)
		if now := garbagePercent(live[0].Value.Uint64()); now != was {
			debug.SetGCPercent(now)
			was = now
		}
	}
}

// garbagePercent returns the garbage that may gather, in percent of the bytes in
// use.
func garbagePercent(live uint64) int {
	return int(max(sparePercent, min(100, 100*spareHeap/max(live, 1))))
}
