package journal

import (
	"errors"
	"fmt"
)

// errDecode means that a record is not one, although its checksum is right.
var errDecode = errors.New("record can't be decoded")

// decodeRecord reads a record that appendRecord wrote. It accepts any bytes
// and never keeps a reference to b.
func decodeRecord(b []byte) (*Record, error) {
	w := &wire{b: b}
	r := &Record{Op: Op(w.u8()), Seq: Seq(w.uvarint()), Time: Timespec(w.u64())}
	copy(r.Prev[:], w.bytes(32))
	parts := w.u8()
	if r.Op == OpNone || r.Op >= opMax || parts >= partEnd {
		w.fail(errUnknownBits)
	}
	w.actor(&r.Actor)
	if parts&partUnique != 0 {
		r.Unique = w.uvarint()
	}
	if parts&partPath != 0 {
		r.Path = w.str()
	}
	if parts&partPath2 != 0 {
		r.Path2 = w.str()
	}
	w.changes(r)
	if parts&partData != 0 {
		w.data(r)
	}
	if parts&partNote != 0 {
		r.Note = w.note()
	}
	if err := w.end(); err != nil {
		return nil, fmt.Errorf("%w: %w", errDecode, err)
	}
	return r, nil
}

func (w *wire) actor(a *Actor) {
	a.PID = w.uvarint32()
	tid := int64(a.PID) + w.varint()
	if tid < 0 || tid > 1<<32-1 {
		w.fail(errors.New("thread id does not fit 32 bits"))
	}
	a.TID = uint32(tid)
	a.UID = w.uvarint32()
	a.Exec = ExecID(w.uvarint())
	a.Comm = w.str()
}

func (w *wire) changes(r *Record) {
	n := w.count(3)
	if n == 0 {
		return
	}
	r.Changes = make([]Change, 0, min(n, 64))
	for range n {
		r.Changes = append(r.Changes, w.change(r.Time))
		if w.err != nil {
			return
		}
	}
}

func (w *wire) change(now Timespec) Change {
	kind := w.u8()
	switch {
	case kind&changeKind == changeNode && kind <= changeNode|changeBefore|changeAfter:
		return Change{Node: w.nodeChange(kind, now)}
	case kind == changeEntry:
		c := &EntryChange{Parent: NodeID(w.uvarint()), Name: w.str(), Before: w.entry(), After: w.entry()}
		if err := checkEntryChange(c); w.err == nil && err != nil {
			w.fail(err)
		}
		return Change{Entry: c}
	case kind == changeContent:
		return Change{Content: w.contentChange()}
	}
	w.fail(fmt.Errorf("unknown kind of change %d", kind))
	return Change{}
}

func (w *wire) nodeChange(kind uint8, now Timespec) *NodeChange {
	c := &NodeChange{ID: NodeID(w.uvarint())}
	base := &zeroNode
	if kind&changeBefore != 0 {
		c.Before = w.node(base, now)
		base = c.Before
	}
	if kind&changeAfter != 0 {
		c.After = w.node(base, now)
	}
	return c
}

func (w *wire) entry() Entry {
	e := Entry{Kind: EntryKind(w.u8())}
	switch e.Kind {
	case EntryNone:
	case EntryNode, EntryWhiteout:
		e.Node = NodeID(w.uvarint())
	default:
		w.fail(fmt.Errorf("unknown kind of entry %d", e.Kind))
	}
	return e
}

func (w *wire) contentChange() *ContentChange {
	c := &ContentChange{ID: NodeID(w.uvarint()), Off: w.uvarint(), Len: w.uvarint()}
	if c.Off > maxOffset || c.Len > maxOffset-c.Off {
		w.fail(errExtents)
		return c
	}
	c.Before = w.extents(c.Off, c.Off+c.Len)
	c.After = w.extents(c.Off, c.Off+c.Len)
	return c
}

func (w *wire) data(r *Record) {
	n := w.count(7)
	r.Data = make([]DataRef, n)
	for i := range r.Data {
		d := DataRef{Loc: w.loc(), Len: w.uvarint()}
		for s := 0; s < 32; s += 8 {
			d.CRC |= uint32(w.u8()) << s
		}
		r.Data[i] = d
	}
}

func (w *wire) note() *Note {
	n := &Note{}
	if w.bool() {
		n.Exec = w.exec()
	}
	if n.Checkpoint = w.str(); len(n.Checkpoint) > maxName {
		w.fail(invalid("name of the checkpoint has %d bytes", len(n.Checkpoint)))
	}
	n.Point = Seq(w.uvarint())
	if k := w.count(1); k > 0 {
		n.Undone = make([]Seq, k)
		var last Seq
		for i := range n.Undone {
			last += Seq(w.varint())
			n.Undone[i] = last
		}
	}
	n.Rule = w.str()
	n.Message = w.str()
	n.Refused = w.str()
	n.Text = w.str()
	return n
}

func (w *wire) exec() *Exec {
	e := &Exec{ID: ExecID(w.uvarint())}
	if n := w.count(1); n > 0 {
		e.Command = make([]string, n)
		for i := range e.Command {
			e.Command[i] = w.str()
		}
	}
	e.Cwd = w.str()
	e.Runner = w.str()
	e.Begin = Timespec(w.varint())
	e.End = Timespec(w.varint())
	e.ExitCode = int(w.varint())
	e.TimedOut = w.bool()
	e.First = Seq(w.uvarint())
	e.Last = Seq(w.uvarint())
	return e
}

func (w *wire) bool() bool {
	v := w.u8()
	if v > 1 {
		w.fail(errUnknownBits)
	}
	return v == 1
}
