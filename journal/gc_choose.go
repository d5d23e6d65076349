package journal

import (
	"fmt"
	"slices"

	"go.etcd.io/bbolt"
)

// segment is a log segment as a collection sees it.
type segment struct {
	d     *dataFile
	last  Seq      // its last record
	time  Timespec // of its last record
	bytes int64    // of the segment, and of the data that its records put into packs
}

// choose finds the record that history is to begin behind: the last of a
// segment, as late as the retention wants and the pins allow. It begins a new
// segment if the current one may go, too.
func (c *collector) choose() error {
	c.cut = c.old
	if l, d, _ := c.s.Sizes(); l+d <= c.o.Bytes {
		c.o.Bytes = 0 // the limit is kept; what takes how much need not be known
	}
	segs, err := c.segments()
	if err != nil || len(segs) == 0 {
		return err
	}
	wanted := c.wanted(segs)
	allowed, by := c.allowed(segs[len(segs)-1].last)
	if c.o.salvage {
		allowed = segs[len(segs)-1].last
	}
	if allowed < wanted {
		c.report.HeldBy = by
	}
	for _, g := range segs {
		if g.last > min(wanted, allowed) {
			break
		}
		c.cut = g.last
		c.gone = append(c.gone, g.d)
		c.report.Freed += g.bytes
	}
	if c.cut > c.old {
		if err := c.endSegment(); err != nil {
			return err
		}
	}
	c.report.Dropped = uint64(c.cut - c.old)
	return nil
}

// endSegment begins a new segment behind the cut if it lies at the end of the
// current one. If records came meanwhile the current one stays.
func (c *collector) endSegment() error {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	last := c.gone[len(c.gone)-1]
	if last.num != s.segNum || c.o.DryRun {
		return nil
	}
	if s.head == c.cut {
		if err := s.readyLocked(); err != nil {
			return err
		}
		if s.segNum == last.num {
			return s.rotateLocked()
		}
		return nil
	}
	c.gone = c.gone[:len(c.gone)-1]
	c.cut = last.first - 1
	return nil
}

// segments lists the log segments that have committed records, the current one
// at last.
func (c *collector) segments() ([]segment, error) {
	s := c.s
	s.commitMu.Lock()
	head := s.meta.seq
	s.commitMu.Unlock()
	var segs []segment
	logs := s.files.logs()
	for i, d := range logs {
		g := segment{d: d, last: head}
		if i+1 < len(logs) {
			g.last = logs[i+1].first - 1
		}
		if d.first > g.last || g.last > head {
			break
		}
		segs = append(segs, g)
	}
	for i := range segs {
		if c.o.salvage {
			break // nothing but its end can be relied on
		}
		if err := c.measure(&segs[i]); err != nil {
			return nil, err
		}
	}
	return segs, nil
}

// measure finds out what a segment holds. Data in packs are counted only where
// there is a limit to bytes, since that takes reading all records.
func (c *collector) measure(g *segment) (err error) {
	if g.bytes, err = c.s.files.size(g.d); err != nil {
		return fmt.Errorf("look at log: %w", err)
	}
	from := g.last
	if c.o.Bytes > 0 {
		from = g.d.first
	}
	return c.s.walk(from, g.last, nil, func(r *Record) error {
		g.time = r.Time
		for _, d := range r.Data {
			if d.Loc.File != g.d.num {
				g.bytes += int64(d.Len)
			}
		}
		return c.ctx.Err()
	})
}

// wanted returns the last record that the retention doesn't keep.
func (c *collector) wanted(segs []segment) Seq {
	head := segs[len(segs)-1].last
	want := c.old
	if n := Seq(c.o.Records); n > 0 && head > n {
		want = max(want, head-n)
	}
	if c.o.Age > 0 {
		limit := Timespec(c.s.o.Clock().Add(-c.o.Age).UnixNano())
		for _, g := range segs {
			if g.time >= limit {
				break
			}
			want = max(want, g.last)
		}
	}
	if c.o.Bytes > 0 {
		want = max(want, c.overBytes(segs))
	}
	return want
}

// overBytes returns the last record of the newest segment that, with all that
// comes behind it, is more than the limit.
func (c *collector) overBytes(segs []segment) Seq {
	left := c.o.Bytes
	for _, g := range slices.Backward(segs) {
		if left -= g.bytes; left < 0 {
			return g.last
		}
	}
	return c.old
}

// allowed returns the last record that no pin keeps, and which pin it is.
func (c *collector) allowed(head Seq) (Seq, string) {
	at, by := head, ""
	pins := append(slices.Clone(c.o.Pins), c.s.checkpoints()...)
	c.s.mu.Lock()
	for h := range c.s.holds {
		pins = append(pins, Pin{h.at, "a view of the past that is in use"})
	}
	c.s.mu.Unlock()
	for _, p := range pins {
		if p.At < at {
			at, by = p.At, p.Name
		}
	}
	return at, by
}

// checkpoints returns the checkpoints as pins.
func (s *Store) checkpoints() []Pin {
	var pins []Pin
	err := s.storedCheckpoints(func(name string, at Seq) { pins = append(pins, Pin{at, fmt.Sprintf("checkpoint %q", name)}) })
	if err != nil {
		s.log.Warn("checkpoints can't be read; nothing is collected", "error", err)
		return []Pin{{0, "checkpoints that can't be read"}}
	}
	return pins
}

// storedCheckpoints calls fn for the checkpoints in the database.
func (s *Store) storedCheckpoints(fn func(name string, at Seq)) error {
	return s.view(func(tx *bbolt.Tx) error {
		t, err := tableOf(tx, &dbMeta{}, bucketPoints)
		if err != nil {
			return err
		}
		c := t.b.Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			p, err := unseal(t.name, k, v)
			if err != nil {
				return err
			}
			w := &wire{b: p}
			fn(string(k[1:]), Seq(w.uvarint()))
			if err := dbWire(w); err != nil {
				return err
			}
		}
		return nil
	})
}
