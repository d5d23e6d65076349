package journal

// Loc is a place in the store: a file of the store and a position in it.
type Loc struct {
	File uint32 // number of a log segment or pack; 0 is no file
	Pos  uint64
}

// ExtentKind tells where an extent's bytes are.
type ExtentKind uint8

const (
	// ExtentData is bytes in the store at Loc.
	ExtentData ExtentKind = iota + 1
	// ExtentLower is the same range of the node's lower file (by Origin).
	ExtentLower
	// ExtentZero is allocated zeros (fallocate): data to SEEK_DATA, no bytes.
	ExtentZero
)

// Extent is a run of a file's bytes. What no extent covers is a hole.
type Extent struct {
	Off  uint64 // logical offset in the file
	Len  uint64
	Kind ExtentKind
	Loc  Loc // for ExtentData: of the first byte
}

// End returns the offset behind the extent's last byte.
func (e Extent) End() uint64 { return e.Off + e.Len }

// cut returns the part of e within [lo, hi).
func (e Extent) cut(lo, hi uint64) Extent {
	if lo > e.Off {
		if e.Kind == ExtentData {
			e.Loc.Pos += lo - e.Off
		}
		e.Len -= lo - e.Off
		e.Off = lo
	}
	if e.End() > hi {
		e.Len = hi - e.Off
	}
	return e
}

// joins reports whether b continues a, so that both can be one extent.
func joins(a, b Extent) bool {
	if a.End() != b.Off || a.Kind != b.Kind {
		return false
	}
	return a.Kind != ExtentData || (a.Loc.File == b.Loc.File && a.Loc.Pos+a.Len == b.Loc.Pos)
}
