package journal

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"

	"go.etcd.io/bbolt"
)

// fate says what becomes of a file whose live part is known.
type fate struct {
	d     *dataFile
	spans []span
	live  int64 // bytes
	size  int64 // of the file
	stays bool
}

// fates decides for each file that may be replaced. Log segments go in any
// case; of packs and keeps those of which at least a quarter is dead.
func (c *collector) fates() ([]fate, error) {
	var out []fate
	for _, d := range slices.Concat(c.gone, c.packs) {
		size, err := c.s.files.size(d)
		if err != nil {
			return nil, fmt.Errorf("look at file of the journal: %w", err)
		}
		f := fate{d: d, size: size}
		f.spans, f.live = c.live.of(d.num)
		f.stays = !d.isLog() && f.live > (size-headerSize)/4*3
		out = append(out, f)
	}
	return out, nil
}

// estimate fills in what will be moved and freed.
func (c *collector) estimate() error {
	fs, err := c.fates()
	if err != nil {
		return err
	}
	c.report.Moved, c.report.Freed = 0, 0
	for _, f := range fs {
		if f.stays {
			continue
		}
		c.report.Moved += f.live
		c.report.Freed += f.size - f.live
		if f.live > 0 {
			c.report.Freed -= headerSize
		}
	}
	return nil
}

// moveLive writes keeps for the files that go.
func (c *collector) moveLive() error {
	fs, err := c.fates()
	if err != nil {
		return err
	}
	var moved int64
	for _, f := range fs {
		if f.stays {
			continue
		}
		c.drops = append(c.drops, f.d)
		if f.live == 0 {
			continue
		}
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := c.keep(f); err != nil {
			return err
		}
		moved += f.live
		c.progress("move live data", moved, c.report.Moved)
	}
	return c.s.disk.syncDir(c.s.path(packDir))
}

func (c *collector) keep(f fate) error {
	s := c.s
	if f.d.kind == kindKeep {
		if err := s.checkOwnKeep(f.d); err != nil {
			return err
		}
	}
	d, err := s.keepSpans(f.d.num, c.cut, f.spans)
	if d != nil {
		c.kept = append(c.kept, d)
	}
	if err != nil {
		return err
	}
	d.found, err = s.files.size(d)
	return err
}

// checkOwnKeep compares a keep that is about to be read with its checksums.
func (s *Store) checkOwnKeep(d *dataFile) (err error) {
	f, err := os.Open(s.files.path(d))
	if err != nil {
		return fmt.Errorf("open keep: %w", err)
	}
	defer f.Close()
	x, err := readKeepIndex(f)
	if err != nil {
		return corruptAt(d.name, 0, 0, "%v", err)
	}
	checkKeep(f, x, func(k kept, why string) { err = corruptAt(d.name, k.at, 0, "%s", why) })
	return err
}

// writeBase writes the base of the state at the cut.
func (c *collector) writeBase() error {
	s := c.s
	err := s.disk.replace(s.path(baseName(c.cut)), func(w io.Writer) error {
		return c.build.db.View(func(tx *bbolt.Tx) error { return c.base.writeTo(w, s.id, tx) })
	})
	if err != nil {
		return err
	}
	return s.disk.syncDir(s.path(logDir))
}

// catchUp takes the records behind the cut into the new database.
func (c *collector) catchUp() error {
	logs := c.s.files.logs()
	i := slices.IndexFunc(logs, func(d *dataFile) bool { return d.first == c.cut+1 })
	if i < 0 {
		return corruptAt(logDir, -1, c.cut+1, "the log segment is missing")
	}
	c.build.m.end = Loc{File: logs[i].num, Pos: headerSize}
	return c.take(c.cut+1, c.to)
}

func (c *collector) take(from, to Seq) error {
	err := c.read(from, to, func(ch *chain) error { return c.build.record(ch.rec, ch.hash, ch.at, ch.pos) })
	if err != nil {
		return err
	}
	return c.build.flush()
}

// swap puts the new database into the place of the old one. Commits wait, for
// the few records that came since catchUp.
func (c *collector) swap() error {
	s := c.s
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if err := c.take(c.to+1, s.meta.seq); err != nil {
		return err
	}
	b := c.build
	if b.m.seq != s.meta.seq || b.m.hash != s.meta.hash {
		return corruptDB("it is at record %d, the log leads to record %d there", s.meta.seq, b.m.seq)
	}
	b.m.nextNode, b.m.nextExec, b.m.boot = max(b.m.nextNode, s.meta.nextNode), max(b.m.nextExec, s.meta.nextExec), s.meta.boot
	if err := c.noteFiles(); err != nil {
		return err
	}
	if err := b.db.Sync(); err != nil {
		return fmt.Errorf("sync database: %w", err)
	}
	if err := b.db.Close(); err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	return c.exchange()
}

// noteFiles lists the packs that stay and the keeps in the new database.
func (c *collector) noteFiles() error {
	s := c.s
	var sizes map[uint32]uint64
	err := s.view(func(tx *bbolt.Tx) (err error) {
		sizes, err = c.packsThatStay(tx)
		return err
	})
	if err != nil {
		return err
	}
	return c.build.db.Update(func(tx *bbolt.Tx) error {
		t, err := tableOf(tx, c.build.m, bucketPacks)
		if err != nil {
			return err
		}
		for num, size := range sizes {
			if err := putPack(t, num, int64(size)); err != nil {
				return err
			}
		}
		if t, err = tableOf(tx, c.build.m, bucketKeeps); err != nil {
			return err
		}
		for _, d := range append(c.keepsThatStay(), c.kept...) {
			if err := putKeep(t, d); err != nil {
				return err
			}
		}
		return writeMeta(tx, c.build.m)
	})
}

func putKeep(t *table, d *dataFile) error {
	v := binary.AppendUvarint(nil, uint64(d.first))
	return t.put(beKey(uint64(d.num)), binary.AppendUvarint(v, uint64(d.found)))
}

func (c *collector) packsThatStay(tx *bbolt.Tx) (map[uint32]uint64, error) {
	t, err := tableOf(tx, c.s.meta, bucketPacks)
	if err != nil {
		return nil, err
	}
	sizes := map[uint32]uint64{}
	err = t.each(func(key, payload []byte) error {
		num, err := idKey(key, 8)
		if err != nil {
			return err
		}
		w := &wire{b: payload}
		if n := w.uvarint(); !c.goes(uint32(num)) {
			sizes[uint32(num)] = n
		}
		return dbWire(w)
	})
	return sizes, err
}

func (c *collector) goes(num uint32) bool {
	return slices.ContainsFunc(c.drops, func(d *dataFile) bool { return d.num == num })
}

func (c *collector) keepsThatStay() []*dataFile {
	return slices.DeleteFunc(c.s.files.kept(), func(d *dataFile) bool { return c.goes(d.num) })
}

// exchange renames the new database over the old one, which is the point of no
// return, and takes the new set of files into use. The caller holds commitMu.
func (c *collector) exchange() error {
	s := c.s
	db, err := openBolt(s.path(dbName+".new"), false)
	if err != nil {
		return err
	}
	s.dbMu.Lock()
	defer s.dbMu.Unlock()
	if err := s.disk.renameOnly(s.path(dbName+".new"), s.path(dbName)); err != nil {
		db.Close()
		return err
	}
	c.done = true
	s.db.Close()
	s.db, s.meta = db, c.build.m
	c.drops = append(c.drops, s.files.exchange(c)...)
	for _, d := range c.drops {
		s.packs.forget(d.num)
	}
	s.mu.Lock()
	s.base, s.trimmed = c.base, c.cut
	s.mu.Unlock()
	if err := s.disk.syncDir(s.dir); err != nil {
		c.drops = nil // the old database may come back
		return err
	}
	return nil
}

// exchange takes the collection's files into use and returns the bases that
// are not needed any more.
func (t *fileTable) exchange(c *collector) (bases []*dataFile) {
	for _, d := range c.drops {
		t.forget(d.num)
	}
	for _, d := range c.kept {
		t.add(d)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	bases = t.bases
	d := &dataFile{kind: kindBase, first: c.cut, name: baseName(c.cut)}
	if fi, err := os.Stat(t.path(d)); err == nil {
		d.found = fi.Size()
	}
	t.bases = []*dataFile{d}
	return bases
}

// remove removes what was replaced: the log from its begin on, then packs and
// keeps, then the old base. What can't be removed is by the next Open.
func (c *collector) remove() error {
	for _, d := range c.drops {
		if err := c.s.disk.remove(c.s.files.path(d)); err != nil {
			c.s.log.Warn("file that a collection replaced stays", "file", d.name, "error", err)
		}
	}
	return nil
}
