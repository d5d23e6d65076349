package tree

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
	"github.com/winkfs/winkfs/policy"
)

// Fallocate implements the modes of fallocate(2) that a file system without
// blocks can: allocate, keep size, punch hole and zero range.
func (t *Tree) Fallocate(r *Request, id journal.NodeID, mode uint32, off, length int64) error {
	const known = unix.FALLOC_FL_KEEP_SIZE | unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_ZERO_RANGE
	n, err := t.get(id)
	if err != nil {
		return err
	}
	punch := mode&unix.FALLOC_FL_PUNCH_HOLE != 0
	switch {
	case mode&^known != 0 || (punch && mode&unix.FALLOC_FL_KEEP_SIZE == 0):
		return ErrNotSupported
	case n.isDir():
		return ErrIsDir
	case !n.isReg():
		return ErrInvalid
	case off < 0 || length <= 0:
		return ErrInvalid
	case uint64(off)+uint64(length) > math.MaxInt64:
		return ErrTooLarge
	}
	end := uint64(off) + uint64(length)
	if err := t.decideNode(policy.OpWrite, n, end); err != nil {
		return err
	}
	if mode&^uint32(unix.FALLOC_FL_KEEP_SIZE) == 0 {
		if err := t.checkSpace(uint64(length)); err != nil {
			return err
		}
	}
	var c content
	err = t.mutate(r, journal.OpFallocate, nil, func() ([]*node, error) {
		c, err = t.prepareContent(n, math.MaxInt64)
		return []*node{n}, err
	}, func(x *tx) error { return x.fallocate(n, &c, mode, uint64(off), end) })
	if err != nil {
		return fmt.Errorf("fallocate: %w", err)
	}
	return nil
}

// checkSpace refuses to promise more than the state directory's file system
// has.
func (t *Tree) checkSpace(n uint64) error {
	s, err := t.Statfs(nil, journal.RootID)
	if err == nil && n/uint64(max(s.Bsize, 1)) > s.Bavail {
		return ErrNoSpace
	}
	return nil
}

func (x *tx) fallocate(n *node, c *content, mode uint32, off, end uint64) error {
	up := x.own(n)
	if up == nil {
		return errRetry
	}
	if err := x.ownContent(n, up, c); err != nil {
		return err
	}
	may := mayWrite(up, up.Attr.Size)
	if mode&^uint32(unix.FALLOC_FL_KEEP_SIZE) != 0 {
		may = mayChange(up)
	}
	if may != nil {
		return may
	}
	x.rec.Path = path(n)
	size := up.Attr.Size
	if mode&unix.FALLOC_FL_KEEP_SIZE == 0 {
		up.Attr.Size = max(size, end)
	}
	switch {
	case mode&unix.FALLOC_FL_PUNCH_HOLE != 0:
		x.splice(n, off, end-off, nil)
	case mode&unix.FALLOC_FL_ZERO_RANGE != 0:
		x.splice(n, off, end-off, zeros(off, min(end, up.Attr.Size)))
	default:
		x.fillHoles(n, c, off, min(end, up.Attr.Size))
	}
	up.Attr.Mtime, up.Attr.Ctime = x.now, x.now
	x.killPrivUnlessCapable(up) // FALLOCATE never carries the kernel's own request for it
	return nil
}

func zeros(off, end uint64) []journal.Extent {
	if end <= off {
		return nil
	}
	return []journal.Extent{{Off: off, Len: end - off, Kind: journal.ExtentZero}}
}

// fillHoles makes the holes in [off, end) allocated zeros, those of the content
// that this very operation has made own, too.
func (x *tx) fillHoles(n *node, c *content, off, end uint64) {
	if end <= off {
		return
	}
	held := x.t.state.Contents[n.id]
	if !c.own {
		held = journal.NewContent(c.extents)
	}
	pos := off
	if held != nil {
		for _, e := range held.Range(off, end-off) {
			x.spliceZeros(n, pos, e.Off)
			pos = e.End()
		}
	}
	x.spliceZeros(n, pos, end)
}

func (x *tx) spliceZeros(n *node, off, end uint64) {
	if end > off {
		x.splice(n, off, end-off, zeros(off, end))
	}
}
