package journal

import (
	"fmt"
	"reflect"
	"testing"
)

// applyAll applies changes to a copy of the state.
func applyAll(st *State, cs []Change) *State {
	st = st.Clone()
	for i := range cs {
		st.ApplyChange(&cs[i])
	}
	return st
}

func TestInvertReturnsToEveryPoint(t *testing.T) {
	for seed := range uint64(20) {
		h := newHistory(seed, nil)
		states := []*State{h.st.Clone()}
		var recs []*Record
		for range 120 {
			recs = append(recs, h.next(t))
			states = append(states, h.st.Clone())
		}
		for s := range states {
			what := fmt.Sprintf("seed %d, back to %d", seed, s)
			cs := Invert(recs[s:])
			checkBefores(t, what, h.st, cs)
			sameFiles(t, what, applyAll(h.st, cs), states[s])
			got, conflicts := UndoSet(h.st, recs[s:])
			if len(conflicts) > 0 {
				t.Fatalf("%s: conflicts %v", what, conflicts)
			}
			sameFiles(t, what+" by UndoSet", applyAll(h.st, got), states[s])
		}
	}
}

// checkBefores checks that the changes begin at the state.
func checkBefores(t *testing.T, what string, st *State, cs []Change) {
	t.Helper()
	for _, c := range cs {
		switch {
		case c.Node != nil && !sameNode(st.Nodes[c.Node.ID], c.Node.Before):
			t.Fatalf("%s: node %x before is not the state's", what, c.Node.ID)
		case c.Entry != nil && st.Entries[c.Entry.Parent][c.Entry.Name] != c.Entry.Before:
			t.Fatalf("%s: entry %s before is not the state's", what, c.Entry.Name)
		case c.Content != nil:
			now := st.Contents[c.Content.ID]
			if now == nil {
				now = &Content{}
			}
			if got := now.Range(c.Content.Off, c.Content.Len); !reflect.DeepEqual(got, c.Content.Before) {
				t.Fatalf("%s: content of %x before is not the state's\n got %v\nwant %v", what, c.Content.ID, c.Content.Before, got)
			}
		}
	}
}

// Undoing a random subset either reports conflicts or gives changes that begin
// at the state and whose own undo returns to it.
func TestUndoSetOfSubsetCanBeRedone(t *testing.T) {
	clean := 0
	for seed := range uint64(300) {
		h := newHistory(seed, nil)
		var recs, subset []*Record
		for range 40 {
			r := h.next(t)
			recs = append(recs, r)
			if h.r.IntN(20) == 0 || len(recs) > 38 {
				subset = append(subset, r)
			}
		}
		what := fmt.Sprintf("seed %d", seed)
		cs, conflicts := UndoSet(h.st, subset)
		checkBefores(t, what, h.st, cs)
		if len(conflicts) > 0 {
			continue
		}
		clean++
		undone := applyAll(h.st, cs)
		redo, conflicts := UndoSet(undone, []*Record{{Op: OpUndo, Changes: cs}})
		if len(conflicts) > 0 {
			t.Fatalf("%s: redo has conflicts %v", what, conflicts)
		}
		sameFiles(t, what+" redone", applyAll(undone, redo), h.st)
	}
	if clean < 50 {
		t.Fatalf("only %d of 300 subsets had no conflict", clean)
	}
}

// scene builds small histories by hand.
type scene struct {
	st   *State
	recs map[ExecID][]*Record
}

func newScene() *scene { return &scene{st: NewState(), recs: map[ExecID][]*Record{}} }

func (s *scene) do(exec ExecID, op Op, cs ...Change) {
	r := &Record{Seq: s.st.Seq + 1, Op: op, Actor: Actor{Exec: exec}, Changes: cs}
	s.recs[exec] = append(s.recs[exec], r)
	s.st.Apply(r)
}

func (s *scene) edit(id NodeID, edit func(*Node)) Change {
	before := s.st.Nodes[id]
	var after *Node
	if before == nil {
		after = &Node{Own: true, Attr: Attr{Nlink: 1, Mode: 0o100644}}
	} else {
		after = before.Clone()
	}
	edit(after)
	return Change{Node: &NodeChange{ID: id, Before: before, After: after}}
}

func (s *scene) enter(parent NodeID, name string, e Entry) Change {
	return Change{Entry: &EntryChange{Parent: parent, Name: name, Before: s.st.Entries[parent][name], After: e}}
}

func (s *scene) put(id NodeID, off, n, pos uint64) Change {
	return Change{Content: &ContentChange{ID: id, Off: off, Len: n, Before: s.st.content(id).Range(off, n),
		After: []Extent{{Off: off, Len: n, Kind: ExtentData, Loc: Loc{1, pos}}}}}
}

func mode(m uint32) func(*Node)    { return func(n *Node) { n.Attr.Mode = m } }
func mtime(t Timespec) func(*Node) { return func(n *Node) { n.Attr.Mtime = t; n.Attr.Ctime = t } }
func links(d uint32) func(*Node)   { return func(n *Node) { n.Attr.Nlink += d } }

func node(id NodeID) Entry { return Entry{Kind: EntryNode, Node: id} }

const (
	fileA = CreatedBit + 1
	dirD  = CreatedBit + 2
	fileB = CreatedBit + 3
	lowL  = NodeID(77)
)

func TestUndoSet(t *testing.T) {
	for _, tc := range []struct {
		name      string
		play      func(s *scene)
		conflicts []string
		check     func(t *testing.T, st *State)
	}{
		{"other fields stay", func(s *scene) {
			s.do(0, OpCreate, s.edit(fileA, mode(0o100644)))
			s.do(1, OpChmod, s.edit(fileA, mode(0o100600)))
			s.do(2, OpChown, s.edit(fileA, func(n *Node) { n.Attr.UID = 5; n.Attr.Ctime = 9 }))
		}, nil, func(t *testing.T, st *State) {
			if a := st.Nodes[fileA].Attr; a.Mode != 0o100644 || a.UID != 5 || a.Ctime != 9 {
				t.Errorf("attributes are %+v", a)
			}
		}},
		{"same field changed since", func(s *scene) {
			s.do(0, OpCreate, s.edit(fileA, mode(0o100644)))
			s.do(1, OpChmod, s.edit(fileA, mode(0o100600)))
			s.do(2, OpChmod, s.edit(fileA, mode(0o100666)))
		}, []string{"mode: changed since"}, nil},
		{"same field changed in between", func(s *scene) {
			s.do(0, OpCreate, s.edit(fileA, mode(0o100644)))
			s.do(1, OpChmod, s.edit(fileA, mode(0o100600)))
			s.do(2, OpChmod, s.edit(fileA, mode(0o100666)))
			s.do(1, OpChmod, s.edit(fileA, mode(0o100600)))
		}, []string{"mode: changed by others in between"}, nil},
		{"directory times and links", func(s *scene) {
			s.do(0, OpMkdir, s.edit(dirD, func(n *Node) { n.Attr.Mode = 0o040755; n.Attr.Nlink = 2; n.Attr.Mtime = 1 }))
			s.do(1, OpMkdir, s.edit(dirD, func(n *Node) { n.Attr.Nlink = 3; n.Attr.Mtime = 2 }), s.edit(fileA, mode(0o040755)), s.enter(dirD, "a", node(fileA)))
			s.do(2, OpMkdir, s.edit(dirD, func(n *Node) { n.Attr.Nlink = 4; n.Attr.Mtime = 3 }), s.edit(fileB, mode(0o040755)), s.enter(dirD, "b", node(fileB)))
		}, nil, func(t *testing.T, st *State) {
			if a := st.Nodes[dirD].Attr; a.Nlink != 3 || a.Mtime != 3 {
				t.Errorf("directory is %+v", a)
			}
			if st.Nodes[fileA] != nil || st.Nodes[fileB] == nil {
				t.Error("wrong directory removed")
			}
		}},
		{"created directory in use", func(s *scene) {
			s.do(1, OpMkdir, s.edit(dirD, mode(0o040755)), s.enter(RootID, "d", node(dirD)))
			s.do(2, OpCreate, s.edit(fileB, mode(0o100644)), s.enter(dirD, "b", node(fileB)))
		}, []string{"b: in use by others"}, nil},
		{"name taken since", func(s *scene) {
			s.do(1, OpUnlink, s.enter(RootID, "x", Entry{Kind: EntryWhiteout}))
			s.do(2, OpCreate, s.edit(fileB, mode(0o100644)), s.enter(RootID, "x", node(fileB)))
		}, []string{"x: changed since"}, nil},
		{"name changed in between", func(s *scene) {
			s.do(1, OpCreate, s.edit(fileA, mode(0o100644)), s.enter(RootID, "x", node(fileA)))
			s.do(2, OpRename, s.enter(RootID, "x", Entry{}))
			s.do(1, OpLink, s.enter(RootID, "x", node(fileA)))
		}, []string{"x: changed by others in between"}, nil},
		{"hard link since", func(s *scene) {
			s.do(0, OpCreate, s.edit(fileA, mode(0o100644)))
			s.do(1, OpLink, s.edit(fileA, links(1)), s.enter(RootID, "x", node(fileA)))
			s.do(2, OpLink, s.edit(fileA, links(1)), s.enter(RootID, "y", node(fileA)))
		}, nil, func(t *testing.T, st *State) {
			if n := st.Nodes[fileA].Attr.Nlink; n != 2 {
				t.Errorf("link count is %d", n)
			}
		}},
		{"bytes beside", func(s *scene) {
			s.do(0, OpCreate, s.edit(fileA, mode(0o100644)))
			s.do(1, OpWrite, s.put(fileA, 0, 100, 1000))
			s.do(2, OpWrite, s.put(fileA, 100, 100, 2000))
		}, nil, func(t *testing.T, st *State) {
			if es := st.Contents[fileA].Range(0, 1000); len(es) != 1 || es[0].Off != 100 {
				t.Errorf("content is %v", es)
			}
		}},
		{"bytes written over", func(s *scene) {
			s.do(1, OpWrite, s.put(fileA, 0, 100, 1000))
			s.do(2, OpWrite, s.put(fileA, 50, 10, 2000))
		}, []string{"bytes 0+100: changed since"}, nil},
		{"bytes in turns", func(s *scene) {
			s.do(1, OpWrite, s.put(fileA, 0, 100, 1000))
			s.do(2, OpWrite, s.put(fileA, 0, 100, 2000))
			s.do(1, OpWrite, s.put(fileA, 0, 100, 1000))
		}, []string{"bytes 0+100: changed by others in between"}, nil},
		{"made and removed leaves others alone", func(s *scene) {
			s.do(1, OpCreate, s.edit(fileA, mode(0o100644)), s.enter(RootID, "x", node(fileA)))
			s.do(1, OpUnlink, s.enter(RootID, "x", Entry{}), Change{Node: &NodeChange{ID: fileA, Before: s.st.Nodes[fileA]}})
			s.do(2, OpCreate, s.edit(fileB, mode(0o100644)), s.enter(RootID, "x", node(fileB)))
		}, nil, func(t *testing.T, st *State) {
			if st.Entries[RootID]["x"].Node != fileB {
				t.Error("the other file is gone")
			}
		}},
		{"removed comes back with what others did", func(s *scene) {
			s.do(0, OpCreate, s.edit(fileA, mode(0o100644)), s.enter(RootID, "x", node(fileA)))
			s.do(2, OpChmod, s.edit(fileA, mode(0o100600)))
			s.do(1, OpUnlink, s.enter(RootID, "x", Entry{}), Change{Node: &NodeChange{ID: fileA, Before: s.st.Nodes[fileA]}})
		}, nil, func(t *testing.T, st *State) {
			if n := st.Nodes[fileA]; n == nil || n.Attr.Mode != 0o100600 || st.Entries[RootID]["x"].Node != fileA {
				t.Errorf("file is %+v", n)
			}
		}},
		{"back into a directory that is gone", func(s *scene) {
			s.do(0, OpMkdir, s.edit(dirD, mode(0o040755)), s.edit(fileA, mode(0o100644)), s.enter(dirD, "x", node(fileA)))
			s.do(1, OpUnlink, s.enter(dirD, "x", Entry{}))
			s.do(2, OpRmdir, Change{Node: &NodeChange{ID: dirD, Before: s.st.Nodes[dirD]}})
		}, []string{"x: its directory is gone"}, nil},
		{"copied-up directory that others use", func(s *scene) {
			up := func(n *Node) {
				n.Attr.Mode, n.Attr.Mtime, n.Origin = 0o040755, 5, Origin{Source: 1, Path: "l", Mode: 0o040755, Mtime: 1}
			}
			s.do(1, OpCreate, s.edit(lowL, up), s.enter(RootID, "l", node(lowL)), s.edit(fileA, mode(0o100644)), s.enter(lowL, "a", node(fileA)))
			s.do(2, OpCreate, s.edit(lowL, mtime(7)), s.edit(fileB, mode(0o100644)), s.enter(lowL, "b", node(fileB)))
		}, nil, func(t *testing.T, st *State) {
			n := st.Nodes[lowL]
			if n == nil || n.Attr.Mtime != 7 || st.Entries[RootID]["l"].Kind != EntryNode || st.Nodes[fileB] == nil || st.Nodes[fileA] != nil {
				t.Errorf("directory is %+v", n)
			}
		}},
		{"copied-up file of one's own", func(s *scene) {
			s.do(1, OpChmod, s.edit(lowL, func(n *Node) { n.Attr.Mode, n.Origin = 0o100600, Origin{Source: 1, Mode: 0o100644} }), s.enter(RootID, "l", node(lowL)))
		}, nil, func(t *testing.T, st *State) {
			if st.Nodes[lowL] != nil || len(st.Entries) != 0 {
				t.Error("the file still has upper state")
			}
		}},
		{"copied-up file that others changed too", func(s *scene) {
			s.do(1, OpChmod, s.edit(lowL, func(n *Node) { n.Attr.Mode, n.Origin = 0o100600, Origin{Source: 1, Mode: 0o100644} }))
			s.do(2, OpChown, s.edit(lowL, func(n *Node) { n.Attr.UID = 8 }))
		}, nil, func(t *testing.T, st *State) {
			if n := st.Nodes[lowL]; n == nil || n.Attr.Mode != 0o100644 || n.Attr.UID != 8 {
				t.Errorf("file is %+v", n)
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScene()
			tc.play(s)
			cs, conflicts := UndoSet(s.st, s.recs[1])
			var got []string
			for _, c := range conflicts {
				key := c.Field + c.Name
				if key == "" && c.Len > 0 {
					key = fmt.Sprintf("bytes %d+%d", c.Off, c.Len)
				}
				got = append(got, key+": "+c.Reason)
				if c.String() == "" {
					t.Error("conflict has no text")
				}
			}
			if !reflect.DeepEqual(got, tc.conflicts) {
				t.Fatalf("conflicts %q, want %q", got, tc.conflicts)
			}
			checkBefores(t, tc.name, s.st, cs)
			if tc.check != nil {
				tc.check(t, applyAll(s.st, cs))
			}
		})
	}
}
