package journal

import "encoding/binary"

// Kinds of change in the encoding of a record.
const (
	changeNode    = 1
	changeEntry   = 2
	changeContent = 3
	changeKind    = 3 // mask
	changeBefore  = 4 // flag of a node change: there is a node before
	changeAfter   = 8 // flag of a node change: there is a node after
)

// Bits of a record's part mask.
const (
	partUnique = 1 << iota
	partPath
	partPath2
	partData
	partNote
	partEnd
)

// appendRecord writes the record. The layout is in FORMAT.md.
func appendRecord(b []byte, r *Record) []byte {
	b = append(b, byte(r.Op))
	b = binary.AppendUvarint(b, uint64(r.Seq))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Time))
	b = append(b, r.Prev[:]...)
	parts := recordParts(r)
	b = append(b, parts)
	b = appendActor(b, &r.Actor)
	if parts&partUnique != 0 {
		b = binary.AppendUvarint(b, r.Unique)
	}
	if parts&partPath != 0 {
		b = appendString(b, r.Path)
	}
	if parts&partPath2 != 0 {
		b = appendString(b, r.Path2)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Changes)))
	for i := range r.Changes {
		b = appendChange(b, &r.Changes[i], r.Time)
	}
	if parts&partData != 0 {
		b = appendData(b, r.Data)
	}
	if parts&partNote != 0 {
		b = appendNote(b, r.Note)
	}
	return b
}

func recordParts(r *Record) byte {
	p := bit(r.Unique != 0, partUnique)
	p |= bit(r.Path != "", partPath)
	p |= bit(r.Path2 != "", partPath2)
	p |= bit(len(r.Data) > 0, partData)
	return byte(p | bit(r.Note != nil, partNote))
}

func appendActor(b []byte, a *Actor) []byte {
	b = binary.AppendUvarint(b, uint64(a.PID))
	b = binary.AppendVarint(b, int64(a.TID)-int64(a.PID))
	b = binary.AppendUvarint(b, uint64(a.UID))
	b = binary.AppendUvarint(b, uint64(a.Exec))
	return appendString(b, a.Comm)
}

func appendChange(b []byte, c *Change, now Timespec) []byte {
	switch {
	case c.Node != nil:
		return appendNodeChange(b, c.Node, now)
	case c.Entry != nil:
		b = append(b, changeEntry)
		b = binary.AppendUvarint(b, uint64(c.Entry.Parent))
		b = appendString(b, c.Entry.Name)
		b = appendEntry(b, c.Entry.Before)
		return appendEntry(b, c.Entry.After)
	default:
		b = append(b, changeContent)
		b = binary.AppendUvarint(b, uint64(c.Content.ID))
		b = binary.AppendUvarint(b, c.Content.Off)
		b = binary.AppendUvarint(b, c.Content.Len)
		b = appendExtents(b, c.Content.Off, c.Content.Before)
		return appendExtents(b, c.Content.Off, c.Content.After)
	}
}

// appendNodeChange writes the node before whole and the node after as what
// differs from it.
func appendNodeChange(b []byte, c *NodeChange, now Timespec) []byte {
	kind := uint64(changeNode)
	kind |= bit(c.Before != nil, changeBefore)
	kind |= bit(c.After != nil, changeAfter)
	b = append(b, byte(kind))
	b = binary.AppendUvarint(b, uint64(c.ID))
	base := &zeroNode
	if c.Before != nil {
		b = appendNode(b, base, c.Before, now)
		base = c.Before
	}
	if c.After != nil {
		b = appendNode(b, base, c.After, now)
	}
	return b
}

func appendEntry(b []byte, e Entry) []byte {
	b = append(b, byte(e.Kind))
	if e.Kind != EntryNone {
		b = binary.AppendUvarint(b, uint64(e.Node))
	}
	return b
}

func appendData(b []byte, refs []DataRef) []byte {
	b = binary.AppendUvarint(b, uint64(len(refs)))
	for _, d := range refs {
		b = appendLoc(b, d.Loc)
		b = binary.AppendUvarint(b, d.Len)
		b = binary.LittleEndian.AppendUint32(b, d.CRC)
	}
	return b
}

func appendNote(b []byte, n *Note) []byte {
	b = appendBool(b, n.Exec != nil)
	if n.Exec != nil {
		b = appendExec(b, n.Exec)
	}
	b = appendString(b, n.Checkpoint)
	b = binary.AppendUvarint(b, uint64(n.Point))
	b = binary.AppendUvarint(b, uint64(len(n.Undone)))
	var last Seq
	for _, s := range n.Undone {
		b = binary.AppendVarint(b, int64(s-last))
		last = s
	}
	b = appendString(b, n.Rule)
	b = appendString(b, n.Message)
	b = appendString(b, n.Refused)
	return appendString(b, n.Text)
}

func appendExec(b []byte, e *Exec) []byte {
	b = binary.AppendUvarint(b, uint64(e.ID))
	b = binary.AppendUvarint(b, uint64(len(e.Command)))
	for _, a := range e.Command {
		b = appendString(b, a)
	}
	b = appendString(b, e.Cwd)
	b = appendString(b, e.Runner)
	b = binary.AppendVarint(b, int64(e.Begin))
	b = binary.AppendVarint(b, int64(e.End))
	b = binary.AppendVarint(b, int64(e.ExitCode))
	b = appendBool(b, e.TimedOut)
	b = binary.AppendUvarint(b, uint64(e.First))
	return binary.AppendUvarint(b, uint64(e.Last))
}
