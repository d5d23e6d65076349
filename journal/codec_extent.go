package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var (
	errUnknownBits = errors.New("unknown bits are set")
	errExtents     = errors.New("extents are not sorted and disjoint within their range")
)

// maxOffset is the end of the largest possible file.
const maxOffset = 1<<63 - 1

// appendExtents writes sorted, disjoint extents. Offsets are relative to the
// end of the extent before, the first one's to off.
func appendExtents(b []byte, off uint64, extents []Extent) []byte {
	b = binary.AppendUvarint(b, uint64(len(extents)))
	for _, e := range extents {
		b = append(b, byte(e.Kind))
		b = binary.AppendUvarint(b, e.Off-off)
		b = binary.AppendUvarint(b, e.Len)
		if e.Kind == ExtentData {
			b = appendLoc(b, e.Loc)
		}
		off = e.End()
	}
	return b
}

func appendLoc(b []byte, l Loc) []byte {
	b = binary.AppendUvarint(b, uint64(l.File))
	return binary.AppendUvarint(b, l.Pos)
}

// extents reads what appendExtents wrote and checks that it lies within
// [off, end).
func (w *wire) extents(off, end uint64) []Extent {
	n := w.count(3)
	if n == 0 {
		return nil
	}
	es := make([]Extent, n)
	for i := range es {
		e := &es[i]
		e.Kind = ExtentKind(w.u8())
		e.Off = off + w.uvarint()
		e.Len = w.uvarint()
		if e.Kind == ExtentData {
			e.Loc = w.loc()
		}
		off = e.End()
	}
	if w.err == nil {
		if err := checkExtents(es, 0, end); err != nil {
			w.fail(err)
		}
	}
	return es
}

func (w *wire) loc() Loc { return Loc{File: w.uvarint32(), Pos: w.uvarint()} }

// checkExtents checks that the extents are sorted, disjoint and within
// [lo, hi).
func checkExtents(es []Extent, lo, hi uint64) error {
	for _, e := range es {
		if e.Kind < ExtentData || e.Kind > ExtentZero {
			return fmt.Errorf("unknown kind of extent %d", e.Kind)
		}
		if e.Off < lo || e.Off > hi || e.Len == 0 || e.Len > hi-e.Off {
			return errExtents
		}
		if e.Kind == ExtentData && (e.Loc.Pos > maxOffset || e.Len > maxOffset-e.Loc.Pos) {
			return errExtents
		}
		lo = e.End()
	}
	return nil
}
