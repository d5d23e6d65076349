package journal

import "fmt"

// Limits of a record. They keep every key within what the database takes and
// every frame within what recovery reads at once.
const (
	// MaxInline is the largest data that Append takes inside the record.
	MaxInline = 16 << 10
	// MaxRecord is the largest encoded record.
	MaxRecord = 256 << 20
	// maxName bounds names of entries and checkpoints.
	maxName = 4096
)

// checkRecord reports whether the record keeps to the format, so that nothing
// gets into the log that could not be read back or committed. With inline data
// it returns the extent that they belong to.
func checkRecord(r *Record, inline []byte) (hole *Extent, err error) {
	if r.Op == OpNone || r.Op >= opMax {
		return nil, invalid("operation %d", r.Op)
	}
	if r.Note != nil && len(r.Note.Checkpoint) > maxName {
		return nil, invalid("name of the checkpoint has %d bytes", len(r.Note.Checkpoint))
	}
	if len(inline) > MaxInline {
		return nil, invalid("inline data have %d bytes", len(inline))
	}
	holes := 0
	for i := range r.Changes {
		c := &r.Changes[i]
		if err := checkChange(c); err != nil {
			return nil, err
		}
		if c.Content != nil {
			if e, n := placeless(c.Content.After); n > 0 {
				hole, holes = e, holes+n
			}
		}
	}
	return hole, checkHole(hole, holes, len(inline))
}

// placeless returns the last extent without a place and their number.
func placeless(es []Extent) (hole *Extent, n int) {
	for i := range es {
		if es[i].Kind == ExtentData && es[i].Loc.File == 0 {
			hole, n = &es[i], n+1
		}
	}
	return hole, n
}

func checkHole(hole *Extent, holes, inline int) error {
	switch {
	case inline == 0 && holes > 0:
		return invalid("%d data extents without a place", holes)
	case inline > 0 && holes != 1:
		return invalid("inline data with %d extents to hold them", holes)
	case inline > 0 && hole.Len != uint64(inline):
		return invalid("%d bytes of inline data for an extent of %d", inline, hole.Len)
	}
	return nil
}

func checkChange(c *Change) error {
	switch {
	case c.Node != nil && c.Entry == nil && c.Content == nil:
		return nil
	case c.Entry != nil && c.Node == nil && c.Content == nil:
		return checkEntryChange(c.Entry)
	case c.Content != nil && c.Node == nil && c.Entry == nil:
		return checkContentChange(c.Content)
	}
	return invalid("a change without exactly one value")
}

func checkEntryChange(c *EntryChange) error {
	if c.Name == "" || len(c.Name) > maxName {
		return invalid("name of an entry has %d bytes", len(c.Name))
	}
	if c.Before.Kind > EntryWhiteout || c.After.Kind > EntryWhiteout {
		return invalid("unknown kind of entry")
	}
	return nil
}

func checkContentChange(c *ContentChange) error {
	if c.Off > maxOffset || c.Len > maxOffset-c.Off {
		return invalid("content range %d+%d", c.Off, c.Len)
	}
	if err := checkExtents(c.Before, c.Off, c.Off+c.Len); err != nil {
		return fmt.Errorf("%w: content before: %w", ErrInvalidRecord, err)
	}
	if err := checkExtents(c.After, c.Off, c.Off+c.Len); err != nil {
		return fmt.Errorf("%w: content after: %w", ErrInvalidRecord, err)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalidRecord, fmt.Sprintf(format, args...))
}
