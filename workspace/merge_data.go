package workspace

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// moveBytes is how many bytes are stored at once.
const moveBytes = 1 << 20

// dataMover brings stored bytes from a fork's store into its parent's. What the
// file has in the parent, too, stays where it is; nothing else is referred to
// in its old place, although both may have it, since a collection under way in
// the parent may be about to drop it. The mover
// remembers what it has brought over, so that a merge that has to be worked
// out again doesn't store it twice.
type dataMover struct {
	from, to *journal.Store
	shared   uint32 // files below it are the same in both
	moved    map[storedRange]journal.Loc

	refs    []journal.DataRef // what was stored
	buf     []byte            // not stored yet
	waiting []piece           // whose bytes are in buf
}

// storedRange is a range of bytes in the fork's store.
type storedRange struct {
	loc journal.Loc
	len uint64
}

// piece is an extent, by its place in a list, whose bytes are in the buffer.
type piece struct {
	list *extentList
	i    int
	off  uint64      // in the buffer
	from storedRange // zero for bytes that are in no store
}

// extentList is a list whose places are known once all is stored.
type extentList struct{ extents []journal.Extent }

// contents adds the changes of contents to a merge's changes, with their bytes
// in the workspace's store, and returns the references to these, too.
func (d *dataMover) contents(changes []journal.Change, contents []tree.MergedContent) ([]journal.Change, []journal.DataRef, error) {
	lists := make([]*extentList, len(contents))
	for i := range contents {
		lists[i] = &extentList{}
		if err := d.list(lists[i], &contents[i]); err != nil {
			return nil, nil, fmt.Errorf("bring over contents: %w", err)
		}
	}
	if err := d.flush(); err != nil {
		return nil, nil, fmt.Errorf("bring over contents: %w", err)
	}
	for i := range contents {
		c := contents[i].Change
		c.After = lists[i].extents
		if text := contents[i].Text; text != nil {
			end := max(c.Off+c.Len, uint64(len(text)))
			if len(text) > 0 {
				c.Off = 0
			}
			c.Len = end - c.Off
		}
		if c.Len > 0 {
			changes = append(changes, journal.Change{Content: &c})
		}
	}
	return changes, d.refs, nil
}

// list makes the extents of one content.
func (d *dataMover) list(l *extentList, c *tree.MergedContent) error {
	if c.Text != nil {
		return d.store(l, 0, c.Text)
	}
	own := placesOf(c.Change.Before)
	for _, e := range c.Change.After {
		if e.Kind != journal.ExtentData || e.Loc.File < d.shared && own.have(e) {
			l.extents = append(l.extents, e)
			continue
		}
		if err := d.move(l, e); err != nil {
			return err
		}
	}
	return nil
}

// places are extents sorted by where they are stored.
type places []journal.Extent

func placesOf(es []journal.Extent) places {
	p := slices.DeleteFunc(slices.Clone(es), func(e journal.Extent) bool { return e.Kind != journal.ExtentData })
	slices.SortFunc(p, func(a, b journal.Extent) int { return compareLocs(a.Loc, b.Loc) })
	return p
}

// have reports whether an extent lies within one of the places.
func (p places) have(e journal.Extent) bool {
	i, exact := slices.BinarySearchFunc(p, e.Loc, func(q journal.Extent, l journal.Loc) int { return compareLocs(q.Loc, l) })
	if !exact {
		i--
	}
	return i >= 0 && p[i].Loc.File == e.Loc.File && e.Loc.Pos+e.Len <= p[i].Loc.Pos+p[i].Len
}

func compareLocs(a, b journal.Loc) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Pos, b.Pos))
}

// move brings over an extent's bytes.
func (d *dataMover) move(l *extentList, e journal.Extent) error {
	for off := uint64(0); off < e.Len; {
		n := min(e.Len-off, moveBytes)
		from := storedRange{journal.Loc{File: e.Loc.File, Pos: e.Loc.Pos + off}, n}
		if err := d.moveRange(l, e.Off+off, from); err != nil {
			return err
		}
		off += n
	}
	return nil
}

func (d *dataMover) moveRange(l *extentList, off uint64, from storedRange) error {
	if loc, ok := d.moved[from]; ok {
		l.extents = append(l.extents, journal.Extent{Off: off, Len: from.len, Kind: journal.ExtentData, Loc: loc})
		return nil
	}
	bytes := make([]byte, from.len)
	if err := d.from.ReadAt(from.loc, bytes); err != nil {
		return err
	}
	return d.put(l, off, bytes, from)
}

// store puts bytes that are in no store yet at an offset of a list.
func (d *dataMover) store(l *extentList, off uint64, bytes []byte) error {
	return d.put(l, off, bytes, storedRange{})
}

func (d *dataMover) put(l *extentList, off uint64, bytes []byte, from storedRange) error {
	if len(bytes) == 0 {
		return nil
	}
	if len(d.buf)+len(bytes) > moveBytes {
		if err := d.flush(); err != nil {
			return err
		}
	}
	d.waiting = append(d.waiting, piece{l, len(l.extents), uint64(len(d.buf)), from})
	l.extents = append(l.extents, journal.Extent{Off: off, Len: uint64(len(bytes)), Kind: journal.ExtentData})
	d.buf = append(d.buf, bytes...)
	return nil
}

// flush stores what is in the buffer and tells the waiting extents their place.
func (d *dataMover) flush() error {
	if len(d.buf) == 0 {
		return nil
	}
	ref, err := d.to.Put(d.buf)
	if err != nil {
		return err
	}
	for _, p := range d.waiting {
		loc := journal.Loc{File: ref.Loc.File, Pos: ref.Loc.Pos + p.off}
		p.list.extents[p.i].Loc = loc
		if p.from.len > 0 {
			d.moved[p.from] = loc
		}
	}
	d.refs = append(d.refs, ref)
	d.buf, d.waiting = d.buf[:0], d.waiting[:0]
	return nil
}

// forkFile is added to the numbers of a fork's files where both stores are read
// at once. File numbers of a store stay far below it.
const forkFile = 1 << 31

// bothStores reads from a workspace's store and from a fork's.
type bothStores struct{ own, fork *journal.Store }

// ReadAt reads the bytes at a place of either store.
func (b *bothStores) ReadAt(l journal.Loc, p []byte) error {
	if l.File >= forkFile {
		return b.fork.ReadAt(journal.Loc{File: l.File - forkFile, Pos: l.Pos}, p)
	}
	return b.own.ReadAt(l, p)
}

// planned adds the contents of a merge that is not made, for a view that reads
// from both stores. A merged text is left out: its size says that it differs.
func planned(changes []journal.Change, contents []tree.MergedContent) []journal.Change {
	for i := range contents {
		c := contents[i].Change
		c.After = nil
		for _, e := range contents[i].Change.After {
			if e.Kind == journal.ExtentData {
				e.Loc.File += forkFile
			}
			c.After = append(c.After, e)
		}
		changes = append(changes, journal.Change{Content: &c})
	}
	return changes
}
