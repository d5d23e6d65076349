package journal

import (
	"maps"
)

// markEvery is the distance of the records whose position the database keeps.
const markEvery = 64

// batch is what records did to the state and the indexes since some commit:
// for each key only the newest value.
type batch struct {
	seq   Seq      // of the last record
	hash  [32]byte // of the last record
	end   Loc      // behind the last record
	bytes int64    // of log

	nodes   map[NodeID]*Node // nil = no upper state
	entries map[entryKey]Entry
	splices []splice
	extents []Extent // of the splices
	execs   []execNote
	points  map[string]point

	runs    []execRun
	touched []touch
	ops     []touch // records of noted operations, by the operation's number
	marks   []mark
	logs    []mark // first records of log segments

	nextNode NodeID
	nextExec ExecID
}

type entryKey struct {
	parent NodeID
	name   string
}

// splice is one content change; its extents are batch.extents[lo:hi].
type splice struct {
	id     NodeID
	off, n uint64
	lo, hi int
}

type execNote struct {
	op   Op
	seq  Seq
	exec Exec
}

// point is a checkpoint's place, or that it is gone.
type point struct {
	seq Seq
	set bool
}

// execRun is a longest sequence of records of one exec.
type execRun struct {
	exec        ExecID
	first, last Seq
}

// touch says that a record concerns a node, or is of an operation.
type touch struct {
	node NodeID // or the operation's number
	seq  Seq
}

// mark is the position of a record.
type mark struct {
	seq Seq
	loc Loc
}

func newBatch() *batch {
	return &batch{
		nodes:   map[NodeID]*Node{},
		entries: map[entryKey]Entry{},
		points:  map[string]point{},
	}
}

func (b *batch) empty() bool { return b.seq == 0 }

// add takes in the record that lies at loc and ends at end. It keeps no
// reference to the record's own slices.
func (b *batch) add(r *Record, hash [32]byte, loc Loc, end int64) {
	b.seq, b.hash = r.Seq, hash
	b.end = Loc{File: loc.File, Pos: uint64(end)}
	b.bytes += end - int64(loc.Pos)
	if loc.Pos == headerSize {
		b.logs = append(b.logs, mark{r.Seq, loc})
	}
	if (r.Seq-1)%markEvery == 0 {
		b.marks = append(b.marks, mark{r.Seq, loc})
	}
	if i := len(b.runs) - 1; i >= 0 && b.runs[i].exec == r.Actor.Exec && b.runs[i].last+1 == r.Seq {
		b.runs[i].last = r.Seq
	} else {
		b.runs = append(b.runs, execRun{r.Actor.Exec, r.Seq, r.Seq})
	}
	if r.Op.noted() {
		b.ops = append(b.ops, touch{NodeID(r.Op), r.Seq})
	}
	first := len(b.touched)
	for i := range r.Changes {
		b.addChange(&r.Changes[i], r.Seq, first)
	}
	if r.Note != nil {
		b.addNote(r)
	}
}

func (b *batch) addChange(c *Change, seq Seq, first int) {
	switch {
	case c.Node != nil:
		id := c.Node.ID
		b.nodes[id] = c.Node.After
		if id >= CreatedBit && id >= b.nextNode {
			b.nextNode = id + 1
		}
		b.touch(id, seq, first)
	case c.Entry != nil:
		e := c.Entry
		b.entries[entryKey{e.Parent, e.Name}] = e.After
		b.touch(e.Parent, seq, first)
		if e.Before.Kind == EntryNode {
			b.touch(e.Before.Node, seq, first)
		}
		if e.After.Kind == EntryNode {
			b.touch(e.After.Node, seq, first)
		}
	case c.Content != nil:
		lo := len(b.extents)
		b.extents = append(b.extents, c.Content.After...)
		b.splices = append(b.splices, splice{c.Content.ID, c.Content.Off, c.Content.Len, lo, len(b.extents)})
		b.touch(c.Content.ID, seq, first)
	}
}

// touch notes that the record concerns the node, once: the record's own
// touches begin at first. Records with very many changes give up looking.
func (b *batch) touch(id NodeID, seq Seq, first int) {
	for i := max(first, len(b.touched)-16); i < len(b.touched); i++ {
		if b.touched[i].node == id {
			return
		}
	}
	b.touched = append(b.touched, touch{id, seq})
}

func (b *batch) addNote(r *Record) {
	switch r.Op {
	case OpExecBegin, OpExecEnd:
		if r.Note.Exec != nil {
			b.execs = append(b.execs, execNote{r.Op, r.Seq, *r.Note.Exec})
			b.nextExec = max(b.nextExec, r.Note.Exec.ID+1)
		}
	case OpCheckpoint:
		b.points[r.Note.Checkpoint] = point{r.Note.Point, true}
	case OpUncheckpoint:
		b.points[r.Note.Checkpoint] = point{}
	}
}

// join appends a later batch to b.
func (b *batch) join(n *batch) {
	if n.seq != 0 {
		b.seq, b.hash, b.end = n.seq, n.hash, n.end
	}
	b.bytes += n.bytes
	maps.Copy(b.nodes, n.nodes)
	maps.Copy(b.entries, n.entries)
	maps.Copy(b.points, n.points)
	shift := len(b.extents)
	b.extents = append(b.extents, n.extents...)
	for _, s := range n.splices {
		s.lo, s.hi = s.lo+shift, s.hi+shift
		b.splices = append(b.splices, s)
	}
	b.execs = append(b.execs, n.execs...)
	b.joinRuns(n.runs)
	b.touched = append(b.touched, n.touched...)
	b.ops = append(b.ops, n.ops...)
	b.marks = append(b.marks, n.marks...)
	b.logs = append(b.logs, n.logs...)
	b.nextNode = max(b.nextNode, n.nextNode)
	b.nextExec = max(b.nextExec, n.nextExec)
}

func (b *batch) joinRuns(runs []execRun) {
	if i := len(b.runs) - 1; i >= 0 && len(runs) > 0 && b.runs[i].exec == runs[0].exec && b.runs[i].last+1 == runs[0].first {
		b.runs[i].last = runs[0].last
		runs = runs[1:]
	}
	b.runs = append(b.runs, runs...)
}

// applyExec returns the exec's state after the note, given the one before.
func (n *execNote) apply(before *Exec) *Exec {
	e := n.exec
	if n.op == OpExecBegin {
		e.First = n.seq
		return &e
	}
	if before != nil {
		e.First = before.First
	}
	e.Last = n.seq
	return &e
}
