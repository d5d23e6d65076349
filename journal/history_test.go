package journal

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

// history makes random valid records. It keeps the state that they lead to.
type history struct {
	r     *rand.Rand
	st    *State
	store *Store // nil: inline data get made-up places
	exec  ExecID
	now   Timespec
	pos   uint64
	data  map[Loc][]byte // what was written inline and to packs
}

func newHistory(seed uint64, s *Store) *history {
	return &history{r: rand.New(rand.NewPCG(seed, 1)), st: NewState(), store: s, now: 1e18, data: map[Loc][]byte{}}
}

// next makes one record, appends it to the store if there is one, and applies
// it.
func (h *history) next(t testing.TB) *Record {
	t.Helper()
	rec, inline := h.make(t)
	if h.store == nil {
		rec.Seq = h.st.Seq + 1
		rec.Time = h.now
		h.place(rec)
	} else if _, err := h.store.Append(rec, inline); err != nil {
		t.Fatal(err)
	}
	if inline != nil && h.store != nil {
		h.data[rec.Data[len(rec.Data)-1].Loc] = inline
	}
	h.st.Apply(rec)
	return rec
}

// place gives inline data made-up places.
func (h *history) place(rec *Record) {
	for i := range rec.Changes {
		if c := rec.Changes[i].Content; c != nil {
			if e, n := placeless(c.After); n > 0 {
				e.Loc = Loc{File: 1, Pos: h.pos}
				h.pos += e.Len + 100
			}
		}
	}
}

func (h *history) make(t testing.TB) (*Record, []byte) {
	h.now += Timespec(h.r.IntN(1e9))
	rec := &Record{Actor: Actor{PID: 100, TID: uint32(100 + h.r.IntN(3)), UID: 1000, Comm: "test", Exec: h.exec}}
	files, dirs := h.pick()
	switch k := h.r.IntN(20); {
	case k == 0:
		return h.note(rec), nil
	case k < 4 || files == 0:
		return h.create(rec, dirs, h.r.IntN(4) == 0), nil
	case k < 6:
		return h.unlink(rec, files), nil
	case k < 8:
		return h.rename(rec, files, dirs), nil
	case k < 11:
		return h.chmod(rec, files), nil
	case k < 12:
		return h.truncate(rec, files), nil
	}
	return h.write(t, rec, files)
}

// pick returns a file that has a name and a directory, from 0 and RootID on.
func (h *history) pick() (file, dir NodeID) {
	dir = RootID
	for _, id := range slices.Sorted(maps.Keys(h.st.Entries)) {
		m := h.st.Entries[id]
		for _, name := range slices.Sorted(maps.Keys(m)) {
			n := h.st.Nodes[m[name].Node]
			switch {
			case m[name].Kind != EntryNode || n == nil:
			case isDir(n):
				if dir == RootID || h.r.IntN(3) == 0 {
					dir = m[name].Node
				}
			case file == 0 || h.r.IntN(3) == 0:
				file = m[name].Node
			}
		}
	}
	return file, dir
}

func (h *history) nameOf(id NodeID) (NodeID, string) {
	for p, m := range h.st.Entries {
		for name, e := range m {
			if e.Kind == EntryNode && e.Node == id {
				return p, name
			}
		}
	}
	return 0, ""
}

func (h *history) change(id NodeID, edit func(*Node)) Change {
	before := h.st.Nodes[id]
	after := &Node{}
	if before != nil {
		after = before.Clone()
	}
	edit(after)
	after.Attr.Ctime = h.now
	return Change{Node: &NodeChange{ID: id, Before: before, After: after}}
}

func (h *history) create(rec *Record, dir NodeID, mkdir bool) *Record {
	rec.Op = OpCreate
	id := h.st.NextNode
	name := fmt.Sprintf("n%d", h.r.IntN(12))
	old := h.st.Entries[dir][name]
	n := &Node{Own: true, OwnContent: true, Attr: Attr{Mode: 0o100644, UID: 1000, GID: 1000, Nlink: 1, Atime: h.now, Mtime: h.now, Ctime: h.now, Btime: h.now}}
	if mkdir {
		rec.Op, n.OwnContent, n.Attr.Mode, n.Attr.Nlink = OpMkdir, false, 0o040755, 2
	}
	if h.r.IntN(5) == 0 {
		n.Origin = Origin{Source: 1, Path: "a/b", Ino: 7, Size: 100, Mtime: -5, Ctime: 6, Mode: 0o100600}
	}
	if n := h.st.Nodes[old.Node]; n != nil && isDir(n) {
		name = fmt.Sprintf("m%d", id-CreatedBit)
		old = Entry{}
	}
	if old.Kind == EntryNode {
		rec.Changes = append(rec.Changes, h.drop(old.Node)...)
	}
	rec.Path = name
	rec.Changes = append(rec.Changes,
		Change{Node: &NodeChange{ID: id, After: n}},
		Change{Entry: &EntryChange{Parent: dir, Name: name, Before: old, After: Entry{Kind: EntryNode, Node: id}}},
		h.change(dir, func(d *Node) { d.Attr.Mtime = h.now; d.Attr.Mode = 0o040755 }))
	return rec
}

// drop removes a node with its content.
func (h *history) drop(id NodeID) []Change {
	var cs []Change
	if c := h.st.Contents[id]; c != nil && !c.Empty() {
		cs = append(cs, Change{Content: &ContentChange{ID: id, Len: 1 << 40, Before: c.Range(0, 1<<40)}})
	}
	return append(cs, Change{Node: &NodeChange{ID: id, Before: h.st.Nodes[id]}})
}

func (h *history) unlink(rec *Record, file NodeID) *Record {
	rec.Op = OpUnlink
	p, name := h.nameOf(file)
	after := Entry{}
	if h.r.IntN(2) == 0 {
		after.Kind = EntryWhiteout
	}
	rec.Path = name
	rec.Changes = []Change{
		{Entry: &EntryChange{Parent: p, Name: name, Before: Entry{Kind: EntryNode, Node: file}, After: after}},
		h.change(p, func(d *Node) { d.Attr.Mtime = h.now }),
	}
	if h.r.IntN(3) == 0 {
		rec.Changes = append(rec.Changes, h.drop(file)...)
	} else {
		rec.Changes = append(rec.Changes, h.change(file, func(n *Node) { n.Attr.Nlink = 0 }))
	}
	return rec
}

func (h *history) rename(rec *Record, file, dir NodeID) *Record {
	rec.Op = OpRename
	p, name := h.nameOf(file)
	to := fmt.Sprintf("r%d", h.r.IntN(100000))
	rec.Path, rec.Path2 = name, to
	rec.Changes = []Change{
		{Entry: &EntryChange{Parent: p, Name: name, Before: Entry{Kind: EntryNode, Node: file}, After: Entry{Kind: EntryWhiteout}}},
		{Entry: &EntryChange{Parent: dir, Name: to, Before: h.st.Entries[dir][to], After: Entry{Kind: EntryNode, Node: file}}},
		h.change(file, func(*Node) {}),
	}
	return rec
}

func (h *history) chmod(rec *Record, file NodeID) *Record {
	rec.Op = OpChmod
	rec.Changes = []Change{h.change(file, func(n *Node) {
		switch h.r.IntN(4) {
		case 0:
			n.Attr.Mode ^= uint32(h.r.IntN(0o777))
		case 1:
			n.Xattrs = map[string]string{"user.a": fmt.Sprint(h.r.IntN(9)), "user.b": "x"}
		case 2:
			n.Attr.UID, n.Target, n.Opaque = uint32(h.r.IntN(9)), "t", !n.Opaque
		case 3:
			n.Attr.Mtime, n.Attr.Atime, n.Xattrs = -Timespec(h.r.Uint32()), 5, nil
		}
	})}
	return rec
}

func (h *history) truncate(rec *Record, file NodeID) *Record {
	rec.Op = OpTruncate
	c := h.st.content(file)
	size := h.st.Nodes[file].Attr.Size
	to := uint64(h.r.IntN(int(size/2) + 1))
	rec.Changes = []Change{h.change(file, func(n *Node) { n.Attr.Size = to })}
	if size > to {
		rec.Changes = append(rec.Changes, Change{Content: &ContentChange{ID: file, Off: to, Len: size - to, Before: c.Range(to, size-to)}})
	}
	return rec
}

func (h *history) write(t testing.TB, rec *Record, file NodeID) (*Record, []byte) {
	rec.Op = OpWrite
	rec.Unique = h.r.Uint64()
	c := h.st.content(file)
	off := uint64(h.r.IntN(4 << 20))
	if h.r.IntN(10) == 0 {
		off = h.r.Uint64N(1 << 36)
	}
	n := uint64(1 + h.r.IntN(3000))
	e := Extent{Off: off, Len: n, Kind: ExtentData}
	var inline []byte
	switch h.r.IntN(8) {
	case 0:
		e.Kind = ExtentZero
		if h.r.IntN(2) == 0 {
			n = uint64(h.r.IntN(400 << 20))
			e.Len = n + 1
		}
	case 1:
		e.Kind = ExtentLower
	default:
		inline = make([]byte, n)
		for i := range inline {
			inline[i] = byte(h.r.Uint32())
		}
		if h.store != nil && h.r.IntN(3) == 0 {
			d, err := h.store.Put(inline)
			if err != nil {
				t.Fatal(err)
			}
			h.data[d.Loc] = inline
			e.Loc, rec.Data, inline = d.Loc, []DataRef{d}, nil
		}
	}
	rec.Changes = []Change{
		{Content: &ContentChange{ID: file, Off: off, Len: e.Len, Before: c.Range(off, e.Len), After: []Extent{e}}},
		h.change(file, func(nd *Node) {
			nd.Attr.Mtime, nd.OwnContent, nd.Own = h.now, true, true
			nd.Attr.Size = max(nd.Attr.Size, off+e.Len)
		}),
	}
	return rec, inline
}

func (h *history) note(rec *Record) *Record {
	switch h.r.IntN(4) {
	case 0:
		h.exec = h.st.NextExec
		rec.Op, rec.Actor.Exec = OpExecBegin, h.exec
		rec.Note = &Note{Exec: &Exec{ID: h.exec, Command: []string{"make", "all"}, Cwd: "/w", Runner: "ns", Begin: h.now}}
	case 1:
		if h.exec == 0 {
			return h.create(rec, RootID, false)
		}
		rec.Op = OpExecEnd
		rec.Note = &Note{Exec: &Exec{ID: h.exec, Command: []string{"make", "all"}, Begin: h.now, End: h.now + 5, ExitCode: -1, TimedOut: true}}
		h.exec = 0
	case 2:
		rec.Op = OpCheckpoint
		rec.Note = &Note{Checkpoint: fmt.Sprintf("c%d", h.r.IntN(4)), Point: h.st.Seq}
	default:
		rec.Op = OpDenied
		rec.Note = &Note{Rule: "r", Message: "m", Refused: "write", Text: `{"a":1}`, Undone: []Seq{3, 2, 9}}
	}
	return rec
}

// normal returns a state in a form that can be compared: contents as plain
// extents, nothing that is empty, and no nodes that are gone.
func normal(st *State) map[string]any {
	contents := map[NodeID][]Extent{}
	for id, c := range st.Contents {
		if n := st.Nodes[id]; n != nil && isGone(id, n) {
			continue
		}
		if es := c.Range(0, maxOffset); len(es) > 0 {
			contents[id] = es
		}
	}
	nodes := map[NodeID]Node{}
	for id, n := range st.Nodes {
		if isGone(id, n) {
			continue
		}
		v := *n
		if len(v.Xattrs) == 0 {
			v.Xattrs = nil
		}
		nodes[id] = v
	}
	entries := map[NodeID]map[string]Entry{}
	for id, m := range st.Entries {
		if len(m) > 0 {
			entries[id] = m
		}
	}
	return map[string]any{"nodes": nodes, "entries": entries, "contents": contents}
}

// sameState fails the test unless both states are equal.
func sameState(t testing.TB, what string, got, want *State) {
	t.Helper()
	sameFiles(t, what, got, want)
	g := []any{got.Seq, got.NextNode, got.NextExec, got.Execs, got.Checkpoints}
	w := []any{want.Seq, want.NextNode, want.NextExec, want.Execs, want.Checkpoints}
	if !reflect.DeepEqual(g, w) {
		t.Fatalf("%s: state differs\n got %+v\nwant %+v", what, g, w)
	}
}

// sameFiles is sameState without execs, checkpoints and counters.
func sameFiles(t testing.TB, what string, got, want *State) {
	t.Helper()
	g, w := normal(got), normal(want)
	for k := range w {
		if !reflect.DeepEqual(g[k], w[k]) {
			t.Fatalf("%s: %s differ\n got %+v\nwant %+v", what, k, g[k], w[k])
		}
	}
}

// tick is a clock that moves by a millisecond at each look.
func tick() func() time.Time {
	t := time.Unix(1700000000, 0)
	return func() time.Time {
		t = t.Add(time.Millisecond)
		return t
	}
}
