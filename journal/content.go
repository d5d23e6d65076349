package journal

import "slices"

// chunkBits is the size of the ranges that a Content is split into, so that a
// change copies few extents however large the file is.
const chunkBits = 18

// longRun is the length from which the chunks of one extent are kept together,
// so that a lower file or an allocation of any size costs one extent.
const longRun = 64 << chunkBits

// chunkOf returns the number of the chunk that off lies in.
func chunkOf(off uint64) uint64 { return off >> chunkBits }

// Content describes a file's bytes by extents. The zero value is all hole.
//
// It is a map from chunk to the extents within that chunk, sorted and
// disjoint, over a list of long runs: extents of whole chunks that show where
// the map has no chunk. A chunk that hides a run is in the map even if it is
// all hole. What a chunk's slice or the list holds is never changed in place,
// so Clone is cheap and a clone is independent; only the owner of a slice's
// spare capacity, which is never a clone, appends to it. Not safe for
// concurrent use, but a clone may be used beside the original.
type Content struct {
	runs   []Extent
	chunks chunkMap
}

// NewContent returns the content made of the extents, which must be sorted and
// disjoint.
func NewContent(extents []Extent) *Content {
	c := &Content{}
	if len(extents) > 0 {
		last := extents[len(extents)-1]
		c.Splice(extents[0].Off, last.End()-extents[0].Off, extents)
	}
	return c
}

// Clone returns an independent copy.
func (c *Content) Clone() *Content {
	n := &Content{runs: c.runs}
	c.chunks.each(func(k uint64, es []Extent) { n.chunks.set(k, slices.Clip(es)) })
	return n
}

// Empty reports whether the content is all hole.
func (c *Content) Empty() bool {
	return c.chunks.len() == 0 && len(c.runs) == 0 || c.Bytes() == 0
}

// Equal reports whether both contents describe the same bytes.
func (c *Content) Equal(d *Content) bool {
	return slices.Equal(c.Range(0, maxOffset), d.Range(0, maxOffset))
}

// Splice replaces the range [off, off+n) by the extents, which must be sorted,
// disjoint and inside it. What they leave open becomes a hole.
func (c *Content) Splice(off, n uint64, extents []Extent) {
	if n == 0 {
		return
	}
	end := off + n
	lo, hi := alignUp(off), alignDown(end)
	if lo < hi && hi-lo >= longRun {
		c.spliceLong(off, end, lo, hi, extents)
		return
	}
	c.spliceChunks(off, end, extents)
}

func alignUp(off uint64) uint64   { return alignDown(off + 1<<chunkBits - 1) }
func alignDown(off uint64) uint64 { return off &^ (1<<chunkBits - 1) }

// spliceLong splices a range whose whole chunks are [lo, hi), which are many.
func (c *Content) spliceLong(off, end, lo, hi uint64, extents []Extent) {
	c.chunks.each(func(k uint64, _ []Extent) {
		if k >= chunkOf(lo) && k < chunkOf(hi) {
			c.chunks.delete(k)
		}
	})
	var runs, rest []Extent
	for _, e := range extents {
		a, b := alignUp(max(e.Off, lo)), alignDown(min(e.End(), hi))
		if a >= b || b-a < longRun {
			rest = append(rest, e)
			continue
		}
		runs = append(runs, e.cut(a, b))
		rest = append(rest, e.cut(e.Off, a), e.cut(b, e.End()))
	}
	c.setRuns(lo, hi, runs)
	if off < lo {
		c.spliceChunks(off, lo, extents)
	}
	if hi < end {
		c.spliceChunks(hi, end, extents)
	}
	for _, e := range rest {
		if e.Len == 0 || e.End() <= lo || e.Off >= hi {
			continue
		}
		e = e.cut(lo, hi)
		c.spliceChunks(e.Off, e.End(), []Extent{e})
	}
}

// setRuns replaces the runs within [lo, hi).
func (c *Content) setRuns(lo, hi uint64, runs []Extent) {
	if len(c.runs) == 0 {
		c.runs = runs
		return
	}
	var before, after []Extent
	for _, r := range c.runs {
		if r.Off < lo {
			before = append(before, r.cut(r.Off, lo))
		}
		if r.End() > hi {
			after = append(after, r.cut(hi, r.End()))
		}
	}
	c.runs = slices.Concat(before, runs, after)
}

// spliceChunks splices a range chunk by chunk.
func (c *Content) spliceChunks(off, end uint64, extents []Extent) {
	for k := chunkOf(off); k <= chunkOf(end-1); k++ {
		c.spliceChunk(k, off, end, extents)
	}
}

func (c *Content) spliceChunk(k, off, end uint64, extents []Extent) {
	lo, hi := max(off, k<<chunkBits), min(end, (k+1)<<chunkBits)
	old, fromRun := c.chunk(k)
	j := firstBehind(extents, lo)
	if !fromRun && (c.appendChunk(k, old, lo, hi, extents[j:]) || c.replaceOne(k, old, lo, hi, extents[j:])) {
		return
	}
	out := make([]Extent, 0, len(old)+2)
	i := 0
	for ; i < len(old) && old[i].Off < lo; i++ {
		out = appendJoined(out, old[i].cut(old[i].Off, lo))
	}
	for ; j < len(extents) && extents[j].Off < hi; j++ {
		out = appendJoined(out, extents[j].cut(lo, hi))
	}
	if i > 0 {
		i-- // the extent that straddles lo may reach beyond hi
	}
	for ; i < len(old); i++ {
		if old[i].End() > hi {
			out = appendJoined(out, old[i].cut(hi, old[i].End()))
		}
	}
	c.setChunk(k, out)
}

// appendChunk puts the extents within [lo, hi) behind those of a chunk, without
// copying them, if they all belong there. So a file that grows by small
// writes costs no more the longer it gets.
func (c *Content) appendChunk(k uint64, old []Extent, lo, hi uint64, extents []Extent) bool {
	if n := len(old); n > 0 {
		last := old[n-1]
		if last.End() > lo || len(extents) > 0 && extents[0].Off < hi && joins(last, extents[0].cut(lo, hi)) {
			return false
		}
	}
	out := old
	for _, e := range extents {
		if e.Off >= hi {
			break
		}
		out = appendJoined(out, e.cut(lo, hi))
	}
	c.setChunk(k, out)
	return true
}

// replaceOne puts one extent in the place of another of the same range, as
// writing a block anew does, if it continues neither neighbour.
func (c *Content) replaceOne(k uint64, old []Extent, lo, hi uint64, extents []Extent) bool {
	i := firstBehind(old, lo)
	if i == len(old) || old[i].Off != lo || old[i].End() != hi || len(extents) == 0 || extents[0].Off > lo || extents[0].End() < hi {
		return false
	}
	e := extents[0].cut(lo, hi)
	if i > 0 && joins(old[i-1], e) || i+1 < len(old) && joins(e, old[i+1]) {
		return false
	}
	out := slices.Clone(old)
	out[i] = e
	c.chunks.set(k, out)
	return true
}

// firstBehind returns the index of the first extent that ends behind off.
func firstBehind(extents []Extent, off uint64) int {
	i, _ := slices.BinarySearchFunc(extents, off, func(e Extent, off uint64) int {
		if e.End() <= off {
			return -1
		}
		return 1
	})
	return i
}

// appendJoined appends e, as part of the last extent if it continues it.
func appendJoined(out []Extent, e Extent) []Extent {
	if e.Len == 0 {
		return out
	}
	if i := len(out) - 1; i >= 0 && joins(out[i], e) {
		out[i].Len += e.Len
		return out
	}
	return append(out, e)
}

// chunk returns the extents within a chunk, and whether they come from a run.
func (c *Content) chunk(k uint64) (es []Extent, fromRun bool) {
	if es, ok := c.chunks.get(k); ok {
		return es, false
	}
	lo := k << chunkBits
	if i := c.runAt(lo); i < len(c.runs) && c.runs[i].Off <= lo {
		return []Extent{c.runs[i].cut(lo, lo+1<<chunkBits)}, true
	}
	return nil, false
}

// runAt returns the index of the first run that ends behind off.
func (c *Content) runAt(off uint64) int { return firstBehind(c.runs, off) }

// setChunk sets the extents of a chunk.
func (c *Content) setChunk(k uint64, es []Extent) {
	if len(es) == 0 {
		c.chunks.delete(k)
		if _, hides := c.chunk(k); !hides {
			return
		}
	}
	c.chunks.set(k, es)
}

// Range returns the extents within [off, off+n), sorted, cut to the range and
// joined where they continue each other.
func (c *Content) Range(off, n uint64) []Extent {
	if n == 0 || off > maxOffset {
		return nil
	}
	end := off + min(n, maxOffset-off+1)
	var out []Extent
	pos := off
	for _, k := range c.chunkKeys(chunkOf(off), chunkOf(end-1)) {
		out = c.appendRuns(out, pos, k<<chunkBits)
		es, _ := c.chunks.get(k)
		for _, e := range es {
			if e.End() > off && e.Off < end {
				out = appendJoined(out, e.cut(off, end))
			}
		}
		pos = (k + 1) << chunkBits
	}
	return c.appendRuns(out, pos, end)
}

// chunkKeys returns the chunks of the map from first to last in order.
func (c *Content) chunkKeys(first, last uint64) []uint64 {
	var ks []uint64
	if last-first <= uint64(c.chunks.len()) {
		for k := first; k <= last; k++ {
			if _, ok := c.chunks.get(k); ok {
				ks = append(ks, k)
			}
		}
		return ks
	}
	c.chunks.each(func(k uint64, _ []Extent) {
		if k >= first && k <= last {
			ks = append(ks, k)
		}
	})
	slices.Sort(ks)
	return ks
}

// appendRuns appends what the runs have in [lo, hi).
func (c *Content) appendRuns(out []Extent, lo, hi uint64) []Extent {
	if lo >= hi {
		return out
	}
	for i := c.runAt(lo); i < len(c.runs) && c.runs[i].Off < hi; i++ {
		out = appendJoined(out, c.runs[i].cut(lo, hi))
	}
	return out
}

// Bytes returns how many bytes of the content are not holes.
func (c *Content) Bytes() uint64 {
	var n uint64
	c.chunks.each(func(k uint64, es []Extent) {
		if len(c.runs) > 0 {
			if i := c.runAt(k << chunkBits); i < len(c.runs) && c.runs[i].Off <= k<<chunkBits {
				n -= 1 << chunkBits
			}
		}
		for _, e := range es {
			n += e.Len
		}
	})
	for _, r := range c.runs {
		n += r.Len
	}
	return n
}
