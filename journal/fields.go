package journal

import (
	"maps"
)

// folded is what a sequence of changes did to a node's fields.
type folded struct {
	touched    uint64 // fields that some change changed
	alternates uint64 // fields that others changed between two changes
	want       Node   // touched fields before their first change
	last       Node   // touched fields after their last change
	links      int64  // sum of the differences of the link count
}

func foldFields(cs []*NodeChange) *folded {
	f := &folded{}
	for _, c := range cs {
		d := nodeDiff(c.Before, c.After)
		f.alternates |= d & f.touched & nodeDiff(&f.last, c.Before)
		copyFields(&f.want, c.Before, d&^f.touched)
		copyFields(&f.last, c.After, d)
		f.touched |= d
		f.links += int64(c.After.Attr.Nlink) - int64(c.Before.Attr.Nlink)
	}
	f.alternates &^= fieldNlink
	return f
}

// gapFields returns the fields that others changed between the changes.
func gapFields(cs []*NodeChange) uint64 {
	var m uint64
	for i := range cs[1:] {
		m |= nodeDiff(cs[i].After, cs[i+1].Before)
	}
	return m
}

// copyFields sets the fields of dst to those of src.
func copyFields(dst, src *Node, mask uint64) {
	a, b := &dst.Attr, &src.Attr
	copyField(mask, fieldMode, &a.Mode, b.Mode)
	copyField(mask, fieldUID, &a.UID, b.UID)
	copyField(mask, fieldGID, &a.GID, b.GID)
	copyField(mask, fieldNlink, &a.Nlink, b.Nlink)
	copyField(mask, fieldRdev, &a.Rdev, b.Rdev)
	copyField(mask, fieldSize, &a.Size, b.Size)
	copyField(mask, fieldAtime, &a.Atime, b.Atime)
	copyField(mask, fieldMtime, &a.Mtime, b.Mtime)
	copyField(mask, fieldCtime, &a.Ctime, b.Ctime)
	copyField(mask, fieldBtime, &a.Btime, b.Btime)
	copyField(mask, fieldFlags, &dst.Own, src.Own)
	copyField(mask, fieldFlags, &dst.OwnContent, src.OwnContent)
	copyField(mask, fieldFlags, &dst.Opaque, src.Opaque)
	copyField(mask, fieldFlags, &dst.Flags, src.Flags)
	o, p := &dst.Origin, &src.Origin
	copyField(mask, fieldSource, &o.Source, p.Source)
	copyField(mask, fieldPath, &o.Path, p.Path)
	copyField(mask, fieldOriginIno, &o.Ino, p.Ino)
	copyField(mask, fieldOriginSize, &o.Size, p.Size)
	copyField(mask, fieldOriginMtime, &o.Mtime, p.Mtime)
	copyField(mask, fieldOriginCtime, &o.Ctime, p.Ctime)
	copyField(mask, fieldOriginMode, &o.Mode, p.Mode)
	copyField(mask, fieldTarget, &dst.Target, src.Target)
	if mask&fieldXattrs != 0 {
		dst.Xattrs = maps.Clone(src.Xattrs)
	}
}

func copyField[T any](mask, field uint64, dst *T, src T) {
	if mask&field != 0 {
		*dst = src
	}
}
