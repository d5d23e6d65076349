package tree

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
	"github.com/winkfs/winkfs/policy"
)

// Read reads at off like pread(2): fewer bytes than asked for only at the end
// of the file.
func (t *Tree) Read(r *Request, id journal.NodeID, p []byte, off int64) (int, error) {
	n, err := t.get(id)
	if err != nil {
		return 0, err
	}
	if n.isDir() {
		return 0, ErrIsDir
	}
	if err := t.decideNode(policy.OpRead, n, 0); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, ErrInvalid
	}
	t.mu.RLock()
	f := n.found()
	p, extents := t.plan(&f, p, off)
	t.mu.RUnlock()
	return readExtents(t.store, &f, p, off, extents)
}

// plan cuts p to the file's end and returns the extents that fill it. A node
// without content of its own is read from the lower alone.
func (l *layers) plan(f *found, p []byte, off int64) ([]byte, []journal.Extent) {
	if f.up == nil || !f.up.OwnContent {
		return p, []journal.Extent{{Off: uint64(off), Len: uint64(len(p)), Kind: journal.ExtentLower}}
	}
	size := f.up.Attr.Size
	if uint64(off) >= size {
		return nil, nil
	}
	p = p[:min(uint64(len(p)), size-uint64(off))]
	c := l.state.Contents[f.id]
	if c == nil {
		return p, nil
	}
	return p, c.Range(uint64(off), uint64(len(p)))
}

// readExtents fills p, which begins at off, with what the extents say.
func readExtents(store dataReader, f *found, p []byte, off int64, extents []journal.Extent) (int, error) {
	if f.up == nil || !f.up.OwnContent {
		if len(extents) == 0 {
			return 0, nil
		}
		return f.low.ReadAt(p, off)
	}
	pos := uint64(off)
	for _, e := range extents {
		clear(p[pos-uint64(off) : e.Off-uint64(off)])
		if err := readExtent(store, f, p[e.Off-uint64(off):][:e.Len], e); err != nil {
			return 0, err
		}
		pos = e.End()
	}
	clear(p[pos-uint64(off):])
	return len(p), nil
}

// dataReader reads what the journal stored.
type dataReader interface {
	ReadAt(l journal.Loc, p []byte) error
}

func readExtent(store dataReader, f *found, p []byte, e journal.Extent) error {
	switch e.Kind {
	case journal.ExtentData:
		return store.ReadAt(e.Loc, p)
	case journal.ExtentLower:
		got, err := f.low.ReadAt(p, int64(e.Off))
		clear(p[got:]) // the host has cut the file since
		return err
	}
	clear(p)
	return nil
}

// Lseek finds the next data or hole (SEEK_DATA, SEEK_HOLE). Beyond the last
// data, and at or beyond the end, it returns ErrNoData.
func (t *Tree) Lseek(r *Request, id journal.NodeID, off int64, whence int) (int64, error) {
	n, err := t.get(id)
	if err != nil {
		return 0, err
	}
	if !n.isReg() {
		return 0, ErrInvalid
	}
	if off < 0 {
		return 0, ErrNoData
	}
	if whence != unix.SEEK_DATA && whence != unix.SEEK_HOLE {
		return 0, ErrInvalid
	}
	t.mu.RLock()
	f := n.found()
	if f.up == nil || !f.up.OwnContent {
		t.mu.RUnlock()
		return lowerSeek(&f, off, whence)
	}
	size := f.up.Attr.Size
	var extents []journal.Extent
	if c := t.state.Contents[f.id]; c != nil && uint64(off) < size {
		extents = c.Range(uint64(off), size-uint64(off))
	}
	t.mu.RUnlock()
	if uint64(off) >= size {
		return 0, ErrNoData
	}
	return seekExtents(&f, extents, uint64(off), size, whence)
}

func lowerSeek(f *found, off int64, whence int) (int64, error) {
	pos, err := f.low.Seek(off, whence)
	if errors.Is(err, io.EOF) {
		return 0, ErrNoData
	}
	return pos, err
}

// seekExtents walks the extents from off, which lies before the file's end.
func seekExtents(f *found, extents []journal.Extent, off, size uint64, whence int) (int64, error) {
	pos := off
	for _, e := range extents {
		if whence == unix.SEEK_HOLE && e.Off > pos {
			return int64(pos), nil
		}
		at, ok, err := seekExtent(f, e, whence)
		if err != nil {
			return 0, fmt.Errorf("lseek: %w", err)
		}
		if ok {
			return int64(at), nil
		}
		pos = e.End()
	}
	if whence == unix.SEEK_HOLE {
		return int64(pos), nil
	}
	return 0, ErrNoData
}

// seekExtent finds data or a hole within one extent: only a lower one can have
// both.
func seekExtent(f *found, e journal.Extent, whence int) (uint64, bool, error) {
	if e.Kind != journal.ExtentLower {
		return e.Off, whence == unix.SEEK_DATA, nil
	}
	at, err := f.low.Seek(int64(e.Off), whence)
	if errors.Is(err, io.EOF) {
		return e.Off, whence == unix.SEEK_HOLE, nil
	}
	return uint64(at), err == nil && uint64(at) < e.End(), err
}
