package journal

import (
	"encoding/binary"
	"maps"
	"slices"
)

// Bits of a node's field mask, in the order in which the fields follow. A set
// bit means that the field differs from the base that the node is written
// against.
const (
	fieldMode = 1 << iota
	fieldUID
	fieldGID
	fieldNlink
	fieldRdev
	fieldSize
	fieldAtime
	fieldMtime
	fieldCtime
	fieldBtime
	fieldFlags
	fieldSource
	fieldPath
	fieldOriginIno
	fieldOriginSize
	fieldOriginMtime
	fieldOriginCtime
	fieldOriginMode
	fieldTarget
	fieldXattrs
	fieldEnd
)

// Bits of fieldFlags.
const (
	flagOwn = 1 << iota
	flagOwnContent
	flagOpaque
	flagEnd
)

// From this bit on fieldFlags has the node's own Flags, 32 bits.
const flagsShift = 3

// zeroNode is the base of a node that is written whole.
var zeroNode Node

func nodeFlags(n *Node) uint64 {
	var f uint64
	if n.Own {
		f |= flagOwn
	}
	if n.OwnContent {
		f |= flagOwnContent
	}
	if n.Opaque {
		f |= flagOpaque
	}
	return f | uint64(n.Flags)<<flagsShift
}

// nodeDiff returns the mask of the fields in which a and b differ.
func nodeDiff(a, b *Node) uint64 {
	m := attrDiff(&a.Attr, &b.Attr) | originDiff(&a.Origin, &b.Origin)
	m |= bit(nodeFlags(a) != nodeFlags(b), fieldFlags)
	m |= bit(a.Target != b.Target, fieldTarget)
	return m | bit(!maps.Equal(a.Xattrs, b.Xattrs), fieldXattrs)
}

func attrDiff(a, b *Attr) uint64 {
	if *a == *b {
		return 0
	}
	m := bit(a.Mode != b.Mode, fieldMode)
	m |= bit(a.UID != b.UID, fieldUID)
	m |= bit(a.GID != b.GID, fieldGID)
	m |= bit(a.Nlink != b.Nlink, fieldNlink)
	m |= bit(a.Rdev != b.Rdev, fieldRdev)
	m |= bit(a.Size != b.Size, fieldSize)
	m |= bit(a.Atime != b.Atime, fieldAtime)
	m |= bit(a.Mtime != b.Mtime, fieldMtime)
	m |= bit(a.Ctime != b.Ctime, fieldCtime)
	return m | bit(a.Btime != b.Btime, fieldBtime)
}

func originDiff(a, b *Origin) uint64 {
	if *a == *b {
		return 0
	}
	m := bit(a.Source != b.Source, fieldSource)
	m |= bit(a.Path != b.Path, fieldPath)
	m |= bit(a.Ino != b.Ino, fieldOriginIno)
	m |= bit(a.Size != b.Size, fieldOriginSize)
	m |= bit(a.Mtime != b.Mtime, fieldOriginMtime)
	m |= bit(a.Ctime != b.Ctime, fieldOriginCtime)
	return m | bit(a.Mode != b.Mode, fieldOriginMode)
}

func bit(set bool, b uint64) uint64 {
	if set {
		return b
	}
	return 0
}

// appendNode writes the fields in which n differs from base. Times are written
// relative to now, which makes the usual ones short.
func appendNode(b []byte, base, n *Node, now Timespec) []byte {
	m := nodeDiff(base, n)
	b = binary.AppendUvarint(b, m)
	if m == 0 {
		return b
	}
	a, o := &n.Attr, &n.Origin
	b = appendField(b, m, fieldMode, uint64(a.Mode))
	b = appendField(b, m, fieldUID, uint64(a.UID))
	b = appendField(b, m, fieldGID, uint64(a.GID))
	b = appendField(b, m, fieldNlink, uint64(a.Nlink))
	b = appendField(b, m, fieldRdev, uint64(a.Rdev))
	b = appendField(b, m, fieldSize, a.Size)
	b = appendTime(b, m, fieldAtime, a.Atime, now)
	b = appendTime(b, m, fieldMtime, a.Mtime, now)
	b = appendTime(b, m, fieldCtime, a.Ctime, now)
	b = appendTime(b, m, fieldBtime, a.Btime, now)
	b = appendField(b, m, fieldFlags, nodeFlags(n))
	b = appendField(b, m, fieldSource, uint64(o.Source))
	if m&fieldPath != 0 {
		b = appendString(b, o.Path)
	}
	b = appendField(b, m, fieldOriginIno, o.Ino)
	b = appendField(b, m, fieldOriginSize, o.Size)
	b = appendTime(b, m, fieldOriginMtime, o.Mtime, now)
	b = appendTime(b, m, fieldOriginCtime, o.Ctime, now)
	b = appendField(b, m, fieldOriginMode, uint64(o.Mode))
	if m&fieldTarget != 0 {
		b = appendString(b, n.Target)
	}
	if m&fieldXattrs != 0 {
		b = appendXattrs(b, n.Xattrs)
	}
	return b
}

func appendField(b []byte, mask, field, v uint64) []byte {
	if mask&field == 0 {
		return b
	}
	return binary.AppendUvarint(b, v)
}

func appendTime(b []byte, mask, field uint64, t, now Timespec) []byte {
	if mask&field == 0 {
		return b
	}
	return binary.AppendVarint(b, int64(t-now))
}

func appendXattrs(b []byte, xattrs map[string]string) []byte {
	b = binary.AppendUvarint(b, uint64(len(xattrs)))
	for _, k := range slices.Sorted(maps.Keys(xattrs)) {
		b = appendString(b, k)
		b = appendString(b, xattrs[k])
	}
	return b
}

// node reads what appendNode wrote against the same base and now.
func (w *wire) node(base *Node, now Timespec) *Node {
	n := base.Clone()
	m := w.uvarint()
	if m >= fieldEnd {
		w.fail(errUnknownBits)
		return n
	}
	w.attr(m, &n.Attr, now)
	if m&fieldFlags != 0 {
		f := w.uvarint()
		if f >= flagEnd<<32 {
			w.fail(errUnknownBits)
		}
		n.Own, n.OwnContent, n.Opaque = f&flagOwn != 0, f&flagOwnContent != 0, f&flagOpaque != 0
		n.Flags = uint32(f >> flagsShift)
	}
	w.origin(m, &n.Origin, now)
	if m&fieldTarget != 0 {
		n.Target = w.str()
	}
	if m&fieldXattrs != 0 {
		n.Xattrs = w.xattrs()
	}
	return n
}

func (w *wire) attr(m uint64, a *Attr, now Timespec) {
	w.field32(m, fieldMode, &a.Mode)
	w.field32(m, fieldUID, &a.UID)
	w.field32(m, fieldGID, &a.GID)
	w.field32(m, fieldNlink, &a.Nlink)
	w.field32(m, fieldRdev, &a.Rdev)
	if m&fieldSize != 0 {
		a.Size = w.uvarint()
	}
	w.time(m, fieldAtime, &a.Atime, now)
	w.time(m, fieldMtime, &a.Mtime, now)
	w.time(m, fieldCtime, &a.Ctime, now)
	w.time(m, fieldBtime, &a.Btime, now)
}

func (w *wire) origin(m uint64, o *Origin, now Timespec) {
	w.field32(m, fieldSource, &o.Source)
	if m&fieldPath != 0 {
		o.Path = w.str()
	}
	if m&fieldOriginIno != 0 {
		o.Ino = w.uvarint()
	}
	if m&fieldOriginSize != 0 {
		o.Size = w.uvarint()
	}
	w.time(m, fieldOriginMtime, &o.Mtime, now)
	w.time(m, fieldOriginCtime, &o.Ctime, now)
	w.field32(m, fieldOriginMode, &o.Mode)
}

func (w *wire) field32(m, field uint64, v *uint32) {
	if m&field != 0 {
		*v = w.uvarint32()
	}
}

func (w *wire) time(m, field uint64, t *Timespec, now Timespec) {
	if m&field != 0 {
		*t = now + Timespec(w.varint())
	}
}

func (w *wire) xattrs() map[string]string {
	n := w.count(2)
	if n == 0 {
		return nil
	}
	xs := make(map[string]string, n)
	for range n {
		k := w.str()
		xs[k] = w.str()
	}
	return xs
}
