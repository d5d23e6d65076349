package journal

import (
	"encoding/binary"
	"slices"

	"go.etcd.io/bbolt"
)

// liveSet collects what is needed of some files.
type liveSet map[uint32][]span

// watch makes the set collect what is needed of a file.
func (l liveSet) watch(num uint32) {
	if _, ok := l[num]; !ok {
		l[num] = nil
	}
}

// add notes that n bytes at a place are needed.
func (l liveSet) add(at Loc, n uint64) {
	list, ok := l[at.File]
	if !ok || n == 0 {
		return
	}
	sp := span{int64(at.Pos), int64(n)}
	if i := len(list) - 1; i >= 0 && list[i].end() == sp.pos {
		list[i].len += sp.len
		return
	}
	l[at.File] = append(list, sp)
}

func (l liveSet) extents(es []Extent) {
	for _, e := range es {
		if e.Kind == ExtentData {
			l.add(e.Loc, e.Len)
		}
	}
}

// of returns what is needed of a file, in order, apart, and joined where it
// touches, and how many bytes that is.
func (l liveSet) of(num uint32) (spans []span, n int64) {
	list := l[num]
	slices.SortFunc(list, func(a, b span) int { return int(a.pos - b.pos) })
	for _, sp := range list {
		i := len(spans) - 1
		if i >= 0 && spans[i].end() >= sp.pos {
			spans[i].len = max(spans[i].end(), sp.end()) - spans[i].pos
			continue
		}
		spans = append(spans, sp)
	}
	for _, sp := range spans {
		n += sp.len
	}
	return spans, n
}

// findLive finds out what is needed of the files that may be replaced: by
// records that stay, and by the state at the cut. It takes out of that state
// what no record that stays is about.
func (c *collector) findLive() error {
	s := c.s
	c.live, c.revive = liveSet{}, map[NodeID]bool{}
	for _, d := range c.gone {
		c.live.watch(d.num)
	}
	for _, d := range append(s.files.packs(), s.files.kept()...) {
		if d.kind == kindKeep || s.packs.settled(d.num) {
			c.packs = append(c.packs, d)
			c.live.watch(d.num)
		}
	}
	// All data in these are named by records up to here; what later records
	// name of them is live already, since older points can't be returned to.
	if err := s.Commit(); err != nil {
		return err
	}
	c.to = s.committed()
	if c.o.Open != nil {
		for _, id := range c.o.Open() {
			c.revive[id] = true
		}
	}
	if err := c.read(c.cut+1, c.to, c.needs); err != nil {
		return err
	}
	return c.pruneState()
}

// committed returns the record that the database is at.
func (s *Store) committed() Seq {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	return s.meta.seq
}

// needs notes what a record that stays refers to.
func (c *collector) needs(ch *chain) error {
	for _, d := range ch.rec.Data {
		c.live.add(d.Loc, d.Len)
	}
	for i := range ch.rec.Changes {
		switch g := &ch.rec.Changes[i]; {
		case g.Node != nil:
			c.concerns(g.Node.ID)
		case g.Entry != nil:
			c.concerns(g.Entry.Before.Node)
			c.concerns(g.Entry.After.Node)
		case g.Content != nil:
			c.concerns(g.Content.ID)
			c.live.extents(g.Content.Before)
			c.live.extents(g.Content.After)
		}
	}
	return nil
}

func (c *collector) concerns(id NodeID) {
	if id >= CreatedBit {
		c.revive[id] = true
	}
}

// pruneState makes the database of the state at the cut what a builder makes of
// the new base: nodes that are gone and that nothing is about any more, commands
// that have ended, and all indexes go. What is left is live.
func (c *collector) pruneState() error {
	b := c.build
	err := b.db.Update(func(tx *bbolt.Tx) error {
		for _, bucket := range []int{bucketGone, bucketGoneContent} {
			if err := c.prune(tx, bucket, c.unneeded); err != nil {
				return err
			}
		}
		if err := c.prune(tx, bucketExecs, c.ended); err != nil {
			return err
		}
		for _, bucket := range []int{bucketContent, bucketGoneContent} {
			if err := c.liveContents(tx, bucket); err != nil {
				return err
			}
		}
		for bucket := bucketLogs; bucket < bucketCount; bucket++ {
			if err := emptyBucket(tx, b.m, bucket); err != nil {
				return err
			}
		}
		b.m.base = c.cut
		return writeMeta(tx, b.m)
	})
	if err != nil {
		return err
	}
	c.base = &base{at: b.m.seq, hash: b.m.hash, nextNode: b.m.nextNode, nextExec: b.m.nextExec, first: c.origin}
	return c.estimate()
}

// prune removes the pairs for which gone is true.
func (c *collector) prune(tx *bbolt.Tx, bucket int, gone func(key, payload []byte) (bool, error)) error {
	t, err := tableOf(tx, c.build.m, bucket)
	if err != nil {
		return err
	}
	var keys [][]byte
	err = t.each(func(key, payload []byte) error {
		drop, err := gone(key, payload)
		if drop {
			keys = append(keys, slices.Clone(key))
		}
		return err
	})
	for _, k := range keys {
		if err == nil {
			err = t.del(k)
		}
	}
	return err
}

func (c *collector) unneeded(key, _ []byte) (bool, error) {
	return !c.revive[NodeID(binary.BigEndian.Uint64(key))], nil
}

func (c *collector) ended(_, payload []byte) (bool, error) {
	w := &wire{b: payload}
	x := w.exec()
	return x.Last != 0, dbWire(w)
}

func (c *collector) liveContents(tx *bbolt.Tx, bucket int) error {
	t, err := tableOf(tx, c.build.m, bucket)
	if err != nil {
		return err
	}
	return t.each(func(key, payload []byte) error {
		chunk := &Content{}
		if err := setStoredChunk(chunk, binary.BigEndian.Uint64(key[8:]), payload); err != nil {
			return err
		}
		c.live.extents(chunk.runs)
		chunk.chunks.each(func(_ uint64, es []Extent) { c.live.extents(es) })
		return nil
	})
}

// emptyBucket removes all pairs of a bucket.
func emptyBucket(tx *bbolt.Tx, m *dbMeta, bucket int) error {
	if err := tx.DeleteBucket([]byte(bucketNames[bucket])); err != nil {
		return err
	}
	m.sums[bucket] = bucketSum{}
	_, err := tx.CreateBucket([]byte(bucketNames[bucket]))
	return err
}
