package journal

import (
	"encoding/binary"
	"maps"
	"slices"
)

// runsChunk is the chunk number under which a content's runs are stored.
const runsChunk = ^uint64(0)

// content applies the batch's splices to the stored contents, chunk by chunk,
// so that a change in a large file writes what it changed and no more.
func (w *batchWriter) content() error {
	t, err := w.nodeTables(bucketContent, bucketGoneContent)
	if err != nil {
		return err
	}
	if err := w.moveContents(t); err != nil {
		return err
	}
	byNode := map[NodeID][]splice{}
	for _, s := range w.b.splices {
		byNode[s.id] = append(byNode[s.id], s)
	}
	for _, id := range slices.Sorted(maps.Keys(byNode)) {
		where, err := w.contentTable(t, id)
		if err != nil {
			return err
		}
		p := newPartial(where, id)
		if err := p.splice(byNode[id], w.b.extents); err != nil {
			return err
		}
		if err := p.store(); err != nil {
			return err
		}
	}
	return nil
}

// partial is a stored content of which only some chunks are loaded: those that
// were asked for.
type partial struct {
	t      *table
	id     NodeID
	c      Content
	loaded map[uint64]bool
}

func newPartial(t *table, id NodeID) *partial {
	return &partial{t: t, id: id, loaded: map[uint64]bool{}}
}

func (p *partial) splice(ss []splice, extents []Extent) error {
	if err := p.load(runsChunk); err != nil {
		return err
	}
	for _, s := range ss {
		if s.n == 0 {
			continue
		}
		if err := p.loadRange(chunkOf(s.off), chunkOf(s.off+s.n-1)); err != nil {
			return err
		}
		p.c.Splice(s.off, s.n, extents[s.lo:s.hi])
		p.noteChunks(s.off, s.n)
	}
	return nil
}

// loadRange loads the stored chunks from first to last.
func (p *partial) loadRange(first, last uint64) error {
	if last-first < 128 {
		for k := first; k <= last; k++ {
			if err := p.load(k); err != nil {
				return err
			}
		}
		return nil
	}
	c := p.t.b.Cursor()
	for k, _ := c.Seek(beKey(uint64(p.id), first)); len(k) == 16 && NodeID(binary.BigEndian.Uint64(k)) == p.id; k, _ = c.Next() {
		n := binary.BigEndian.Uint64(k[8:])
		if n > last {
			break
		}
		if err := p.load(n); err != nil {
			return err
		}
	}
	return nil
}

func (p *partial) load(chunk uint64) error {
	if p.loaded[chunk] {
		return nil
	}
	p.loaded[chunk] = true
	key := beKey(uint64(p.id), chunk)
	v, err := p.t.get(key)
	if err != nil || v == nil {
		return err
	}
	return setStoredChunk(&p.c, chunk, v)
}

// setStoredChunk sets one chunk, or the runs, of c from their encoding.
func setStoredChunk(c *Content, chunk uint64, v []byte) error {
	w := &wire{b: v}
	if chunk == runsChunk {
		c.runs = w.extents(0, maxOffset+1)
	} else {
		off := chunk << chunkBits
		es := w.extents(off, off+1<<chunkBits)
		c.chunks.set(chunk, es)
	}
	if err := w.end(); err != nil {
		return corruptDB("content, chunk %d: %v", chunk, err)
	}
	return nil
}

// noteChunks counts chunks that a splice has made as loaded, so that they are
// stored. A range too long to have been loaded one by one has them in c.
func (p *partial) noteChunks(off, n uint64) {
	for _, k := range p.c.chunkKeys(chunkOf(off), chunkOf(off+n-1)) {
		p.loaded[k] = true
	}
}

// store writes the loaded chunks back. What didn't change is not written.
func (p *partial) store() error {
	for _, k := range slices.Sorted(maps.Keys(p.loaded)) {
		key := beKey(uint64(p.id), k)
		es, off, keep := p.chunk(k)
		var err error
		if keep {
			err = p.t.put(key, appendExtents(nil, off, es))
		} else {
			err = p.t.del(key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *partial) chunk(k uint64) (es []Extent, off uint64, keep bool) {
	if k == runsChunk {
		return p.c.runs, 0, len(p.c.runs) > 0
	}
	es, keep = p.c.chunks.get(k)
	return es, k << chunkBits, keep
}
