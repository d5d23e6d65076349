package tree

import (
	"errors"
	"fmt"
	"math"

	"github.com/winkfs/winkfs/journal"
	"github.com/winkfs/winkfs/policy"
)

// maxCopy bounds one CopyFileRange, so that none takes long; the caller of
// copy_file_range(2) goes on where it ended.
const maxCopy = 64 << 20

// CopyFileRange copies bytes from one file to another or within one. Bytes that
// the store has are shared, not copied.
func (t *Tree) CopyFileRange(r *Request, src journal.NodeID, srcOff int64, dst journal.NodeID, dstOff, length int64) (int64, error) {
	from, err := t.get(src)
	if err != nil {
		return 0, err
	}
	to, err := t.get(dst)
	if err != nil {
		return 0, err
	}
	if srcOff < 0 || dstOff < 0 || length < 0 || !from.isReg() || !to.isReg() {
		return 0, ErrInvalid
	}
	length = min(length, maxCopy, math.MaxInt64-dstOff)
	if err := errors.Join(t.decideNode(policy.OpRead, from, 0), t.decideNode(policy.OpWrite, to, uint64(dstOff+length))); err != nil {
		return 0, err
	}
	s := share{t: t, from: from, to: to, srcOff: uint64(srcOff), dstOff: uint64(dstOff), length: uint64(length)}
	err = t.mutate(r, journal.OpCopyRange, nil, s.prepare, s.run)
	if err != nil {
		return 0, fmt.Errorf("copy range: %w", err)
	}
	return int64(s.copied), nil
}

// share is a CopyFileRange on its way.
type share struct {
	t              *Tree
	from, to       *node
	srcOff, dstOff uint64
	length         uint64
	copied         uint64
	dst            content
	extents        []journal.Extent // of the source, moved to the destination's offsets
	data           []journal.DataRef
}

// prepare reads what the source has. Lower bytes are copied into the store.
func (s *share) prepare() ([]*node, error) {
	st, err := s.t.stat(s.from)
	if err != nil {
		return nil, err
	}
	s.extents, s.data, s.copied = nil, nil, 0
	if s.srcOff >= st.Attr.Size || s.length == 0 {
		return nil, nil
	}
	s.copied = min(s.length, st.Attr.Size-s.srcOff)
	s.t.mu.RLock()
	f := s.from.found()
	plan := s.t.planRange(&f, s.srcOff, s.copied)
	s.t.mu.RUnlock()
	for _, e := range plan {
		if e, err = s.stored(&f, e); err != nil {
			return nil, err
		}
		e.Off = e.Off - s.srcOff + s.dstOff
		s.extents = append(s.extents, e)
	}
	s.dst, err = s.t.prepareContent(s.to, math.MaxInt64)
	return []*node{s.to}, err
}

// planRange returns the extents of a range that lies within the file.
func (l *layers) planRange(f *found, off, n uint64) []journal.Extent {
	if f.up == nil || !f.up.OwnContent {
		return []journal.Extent{{Off: off, Len: n, Kind: journal.ExtentLower}}
	}
	if c := l.state.Contents[f.id]; c != nil {
		return c.Range(off, n)
	}
	return nil
}

// stored returns the extent with its bytes in the store: a lower range means
// something else in another file.
func (s *share) stored(f *found, e journal.Extent) (journal.Extent, error) {
	if e.Kind != journal.ExtentLower {
		return e, nil
	}
	b := make([]byte, e.Len)
	got, err := f.low.ReadAt(b, int64(e.Off))
	if err != nil {
		return e, err
	}
	clear(b[got:])
	ref, err := s.t.store.Put(b)
	if err != nil {
		return e, err
	}
	s.data = append(s.data, ref)
	e.Kind, e.Loc = journal.ExtentData, ref.Loc
	return e, nil
}

func (s *share) run(x *tx) error {
	if s.copied == 0 {
		return nil
	}
	up := x.own(s.to)
	if up == nil {
		return errRetry
	}
	if err := x.ownContent(s.to, up, &s.dst); err != nil {
		return err
	}
	if err := mayWrite(up, s.dstOff); err != nil {
		return err
	}
	x.rec.Path, x.rec.Path2 = path(s.from), path(s.to)
	x.rec.Data = append(x.rec.Data, s.data...)
	x.splice(s.to, s.dstOff, s.copied, s.extents)
	up.Attr.Size = max(up.Attr.Size, s.dstOff+s.copied)
	up.Attr.Mtime, up.Attr.Ctime = x.now, x.now
	x.killPrivUnlessCapable(up) // COPY_FILE_RANGE never carries the kernel's own request for it
	x.attribute(s.to)
	return nil
}
