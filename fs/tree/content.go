package tree

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/lower"
	"github.com/winkfs/winkfs/journal"
)

// smallFile is the size up to which a lower file's bytes are copied when the
// content becomes the node's own, so that the host changing the file in place
// no longer shows. Larger files refer to the lower.
const smallFile = 128 << 10

// content is what it takes to make a node's content its own. It is gathered
// without the lock.
type content struct {
	own  bool // it is already
	size uint64
	data *journal.DataRef // the lower's bytes in the store, if they were copied
	// extents are the lower's bytes, copied or referred to, without its holes.
	extents []journal.Extent
}

// prepareContent gathers what making the content own takes, when the first keep
// bytes of it will stay.
func (t *Tree) prepareContent(n *node, keep uint64) (content, error) {
	t.mu.RLock()
	own, f := n.ownContent(), n.found()
	t.mu.RUnlock()
	if own {
		return content{own: true}, nil
	}
	st, err := f.lowerStat()
	if err != nil {
		return content{}, err
	}
	c := content{size: st.Size}
	if st.Size == 0 || keep == 0 {
		return c, nil
	}
	if c.extents, err = lowerExtents(&f, &st); err != nil || st.Size > smallFile {
		return c, err
	}
	buf := make([]byte, st.Size)
	got, err := f.low.ReadAt(buf, 0)
	if err != nil {
		return content{}, err
	}
	ref, err := t.store.Put(buf[:got])
	if err != nil {
		return content{}, fmt.Errorf("copy up: %w", err)
	}
	c.data = &ref
	for i := range c.extents {
		e := &c.extents[i]
		e.Kind, e.Loc = journal.ExtentData, journal.Loc{File: ref.Loc.File, Pos: ref.Loc.Pos + e.Off}
	}
	c.extents = journal.NewContent(c.extents).Range(0, uint64(got)) // the host may have cut it meanwhile
	return c, nil
}

// maxHoles bounds how many holes of a lower file stay holes.
const maxHoles = 4096

// lowerExtents returns where a lower file has data. One that has as many blocks
// as its size needs, and one with very many holes, is told to be all data.
func lowerExtents(f *found, st *lower.Stat) ([]journal.Extent, error) {
	whole := []journal.Extent{{Len: st.Size, Kind: journal.ExtentLower}}
	if st.Blocks >= (st.Size+511)/512 {
		return whole, nil
	}
	var list []journal.Extent
	for off := uint64(0); off < st.Size; {
		begin, err := f.low.Seek(int64(off), unix.SEEK_DATA)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		end, err := f.low.Seek(begin, unix.SEEK_HOLE)
		if err != nil {
			return nil, err
		}
		if uint64(begin) >= st.Size || end <= begin {
			break
		}
		if len(list) == maxHoles {
			return whole, nil
		}
		off = min(uint64(end), st.Size)
		list = append(list, journal.Extent{Off: uint64(begin), Len: off - uint64(begin), Kind: journal.ExtentLower})
	}
	return list, nil
}

// ownContent makes the node's content its own: the lower's bytes, copied or
// referred to.
func (x *tx) ownContent(n *node, up *journal.Node, c *content) error {
	if up.OwnContent {
		return nil
	}
	if c.own {
		return errRetry
	}
	up.OwnContent = true
	up.Attr.Size = c.size
	if c.data != nil {
		x.rec.Data = append(x.rec.Data, *c.data)
	}
	if len(c.extents) > 0 {
		x.splice(n, 0, c.size, c.extents)
	}
	return nil
}

// truncate sets a regular file's size. What lies beyond a smaller size is gone;
// a larger size adds a hole.
func (x *tx) truncate(n *node, up *journal.Node, size uint64, c *content) error {
	if size == 0 && !up.OwnContent {
		// Nothing of the lower stays: no content to take over.
		up.OwnContent = true
		up.Attr.Size = 0
	}
	if err := x.ownContent(n, up, c); err != nil {
		return err
	}
	if size < up.Attr.Size {
		x.splice(n, size, up.Attr.Size-size, nil)
	}
	up.Attr.Size = size
	up.Attr.Mtime = x.now
	return nil
}
