package tree

import (
	"fmt"

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
	if st.Size == 0 || st.Size > smallFile || keep == 0 {
		return c, nil
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
	return c, nil
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
	base := journal.Extent{Len: c.size, Kind: journal.ExtentLower}
	if c.data != nil {
		base = journal.Extent{Len: c.data.Len, Kind: journal.ExtentData, Loc: c.data.Loc}
		x.rec.Data = append(x.rec.Data, *c.data)
	}
	if c.size > 0 {
		x.splice(n, 0, c.size, []journal.Extent{base})
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
