package journal

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"time"
)

// Retention bounds history. Zero fields bound nothing.
type Retention struct {
	Age     time.Duration // records older than this may go
	Bytes   int64         // of log and data; the oldest go until what is left fits
	Records uint64        // as many are kept
}

// Pin is a point that must stay in reach.
type Pin struct {
	At   Seq
	Name string // for people: who wants it
}

// GCOptions are the settings of a collection.
type GCOptions struct {
	Retention
	Pins []Pin // beside the checkpoints and holds, which the store knows
	// Open are nodes that nothing leads to but somebody has open. They and
	// their contents stay. It is called once points before the new begin of
	// history can't be returned to any more.
	Open func() []NodeID
	// Quiesce runs a function while nobody is working out a change of history
	// from old records; nil = there is nobody.
	Quiesce func(func())
	// DryRun finds out what would be freed and changes nothing.
	DryRun bool
	// salvage takes the state at the head from the database as it is, and drops
	// all of history, which may be damaged.
	salvage bool
	// Progress is told how far the collection is, now and then; nil = nobody.
	Progress func(GCProgress)
}

// GCProgress says how far a collection is.
type GCProgress struct {
	Step        string
	Done, Total int64 // of this step; Total 0 = not known
}

// GCReport says what a collection did or would do.
type GCReport struct {
	First     Seq    // the oldest record that is left
	Dropped   uint64 // records
	Moved     int64  // bytes of live data that were carried out of files that went
	Freed     int64  // bytes on disk, of log and data; of a dry run an estimate
	LogBytes  int64  // afterwards
	DataBytes int64  // afterwards
	DBBytes   int64  // afterwards
	HeldBy    string // what keeps more from going, "" = only the limits
}

// GC trims history to what the retention asks for and frees what nothing needs
// any more. It works beside appends and readers, and is all or nothing: the
// new database, made beside the old one, takes its place in one rename, and
// what goes is removed only then. What it needs meanwhile is room for the
// database and for the data that it moves.
//
// Nothing that is live goes: the state at the head, every record from the new
// begin of history on and what it refers to, checkpoints, pins and holds. The
// records before are gone with all points before. Of the old log only whole
// segments go; one that the retention cuts in two stays.
//
// A second collection at the same time is refused with ErrCollecting.
func (s *Store) GC(ctx context.Context, o GCOptions) (*GCReport, error) {
	if err := s.writable(); err != nil {
		return nil, fmt.Errorf("collect: %w", err)
	}
	if !s.gcMu.TryLock() {
		return nil, fmt.Errorf("collect: %w", ErrCollecting)
	}
	defer s.gcMu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.stop: // the store closes
			cancel()
		case <-ctx.Done():
		}
	}()
	c := &collector{s: s, ctx: ctx, o: o}
	if err := c.run(); err != nil {
		return nil, fmt.Errorf("collect: %w", err)
	}
	return &c.report, nil
}

// collector is one collection on its way.
type collector struct {
	s      *Store
	ctx    context.Context
	o      GCOptions
	report GCReport

	old    Seq             // history begins behind it so far
	cut    Seq             // and will begin behind it
	to     Seq             // records up to here have been looked at for what is live
	packs  []*dataFile     // packs and keeps that may be replaced
	gone   []*dataFile     // log segments that go
	build  *builder        // the new database
	base   *base           // the new one
	live   liveSet         // what is needed of packs, gone and old keeps
	kept   []*dataFile     // keeps made
	drops  []*dataFile     // files to remove at the end
	origin []byte          // record 1
	revive map[NodeID]bool // nodes that are gone at the cut but are needed
	done   bool            // the new database is in its place
}

// run is the collection. What it makes before the swap counts for nothing
// without it and is removed on failure.
func (c *collector) run() error {
	s := c.s
	c.old = s.First() - 1
	if err := s.Commit(); err != nil {
		return err
	}
	if err := c.choose(); err != nil {
		return err
	}
	if c.cut <= c.old {
		c.report.Freed = 0
		c.summary()
		return nil
	}
	err := c.refuseOld()
	if err == nil {
		err = c.collect()
	}
	if !c.done {
		c.undo()
	}
	c.summary()
	return err
}

// refuseOld makes points before the cut unreachable from here on, so that
// nothing that is about to go can come into use again.
func (c *collector) refuseOld() (err error) {
	if c.o.DryRun {
		return nil
	}
	quiesce := c.o.Quiesce
	if quiesce == nil {
		quiesce = func(fn func()) { fn() }
	}
	quiesce(func() {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		for h := range c.s.holds {
			if h.at < c.cut {
				err = fmt.Errorf("a view of record %d came into use meanwhile", h.at)
				return
			}
		}
		c.s.trimmed = c.cut
	})
	return err
}

// collect does the work: see FORMAT.md, "Collection".
func (c *collector) collect() error {
	for _, step := range []struct {
		name string
		fn   func() error
	}{
		{"read history that goes", c.buildState},
		{"look for live data", c.findLive},
		{"move live data", c.moveLive},
		{"write base", c.writeBase},
		{"read history that stays", c.catchUp},
		{"replace database", c.swap},
		{"remove files", c.remove},
	} {
		if err := c.ctx.Err(); err != nil && !c.done {
			return err
		}
		if c.o.DryRun && c.base != nil {
			return nil // all is known
		}
		c.progress(step.name, 0, 0)
		if err := step.fn(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

func (c *collector) progress(step string, done, total int64) {
	if c.o.Progress != nil {
		c.o.Progress(GCProgress{Step: step, Done: done, Total: total})
	}
}

// undo takes back what a collection that failed has made.
func (c *collector) undo() {
	s := c.s
	s.mu.Lock()
	s.trimmed = c.old
	s.mu.Unlock()
	if c.build != nil {
		c.build.db.Close()
	}
	c.discard(dbName + ".new")
	for _, d := range c.kept {
		c.discard(d.name)
	}
	c.discard(baseName(c.cut))
}

func (c *collector) discard(name string) {
	if err := c.s.disk.remove(c.s.path(name)); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		c.s.log.Warn("file of a collection that failed stays", "file", name, "error", err)
	}
}

func (c *collector) summary() {
	r := &c.report
	r.First = c.cut + 1
	r.LogBytes, r.DataBytes, r.DBBytes = c.s.Sizes()
}
