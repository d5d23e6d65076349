package workspace

import (
	"context"
	"errors"
	"time"

	"github.com/winkfs/winkfs/journal"
)

// A mounted workspace keeps its history within the limits by itself: not at
// once, which would slow the first work down, and rarely, since history grows
// slowly against them.
const (
	firstCollection = 30 * time.Minute
	collectEvery    = 6 * time.Hour
)

// keepRetention collects history now and then until ctx ends.
func (w *Workspace) keepRetention(ctx context.Context) {
	t := time.NewTimer(firstCollection)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		w.collectQuietly(ctx)
		t.Reset(collectEvery)
	}
}

func (w *Workspace) collectQuietly(ctx context.Context) {
	res, err := w.GC(ctx, &GCRequest{}, func(*GCProgress) error { return nil })
	switch {
	case errors.Is(err, journal.ErrCollecting), ctx.Err() != nil:
	case err != nil:
		w.log.Warn("history not collected", "err", err)
	case res.Dropped > 0:
		w.log.Info("history collected", "first", res.First, "dropped", res.Dropped, "freed", res.Freed)
	}
}
