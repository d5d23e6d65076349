package journaltest

import (
	"fmt"

	"github.com/winkfs/winkfs/journal"
)

// Shape says what a history looks like. Zero fields take the default.
type Shape struct {
	Records int // to append, about
	// Live is the number of files that are there at the end; all others are
	// removed again by the command that made them or by the next one.
	Live    int
	PerExec int // records of one command, 1000
	PerDir  int // files of one directory, 100
	Bytes   int // of each file, 100; above journal.MaxInline it goes into a pack
}

func (s Shape) withDefaults() Shape {
	if s.PerExec == 0 {
		s.PerExec = 1000
	}
	if s.PerDir == 0 {
		s.PerDir = 100
	}
	if s.Bytes == 0 {
		s.Bytes = 100
	}
	return s
}

// Fill appends a history to a journal just opened. The files that stay come last, so
// that the last command is one that made files.
func Fill(s *journal.Store, shape Shape) error {
	f := &filler{s: s, st: s.State(), shape: shape.withDefaults(), now: 1_700_000_000_000_000_000}
	return f.run()
}

// filler appends records like those that the tree makes.
type filler struct {
	s     *journal.Store
	st    *journal.State
	shape Shape
	now   journal.Timespec
	exec  journal.ExecID
	count int // records appended
	open  int // of them since the command began
}

// perFile is the number of records of a file that stays: it is made, written
// and dated.
const perFile = 3

func (f *filler) run() error {
	stay := f.shape.Live*perFile + f.shape.Live/f.shape.PerDir
	var dir journal.NodeID
	for i := 0; f.count < f.shape.Records-stay; i++ {
		if i%f.shape.PerDir == 0 {
			var err error
			if dir, err = f.turnover(dir, i); err != nil {
				return err
			}
		}
		if err := f.passing(dir, i); err != nil {
			return err
		}
	}
	if err := f.drop(dir); err != nil {
		return err
	}
	for i := range f.shape.Live {
		if i%f.shape.PerDir == 0 {
			var err error
			if dir, err = f.mkdir(fmt.Sprintf("live%d", i)); err != nil {
				return err
			}
		}
		if _, err := f.file(dir, fmt.Sprintf("live%d", i-i%f.shape.PerDir), i); err != nil {
			return err
		}
	}
	return f.endExec()
}

// turnover removes the directory of passing files and makes the next one.
func (f *filler) turnover(old journal.NodeID, i int) (journal.NodeID, error) {
	if err := f.drop(old); err != nil {
		return 0, err
	}
	return f.mkdir(fmt.Sprintf("tmp%d", i))
}

func (f *filler) drop(dir journal.NodeID) error {
	if dir == 0 {
		return nil
	}
	return f.unlink(journal.OpRmdir, journal.RootID, f.nameIn(journal.RootID, dir), dir)
}

func (f *filler) nameIn(parent, id journal.NodeID) string {
	for name, e := range f.st.Entries[parent] {
		if e.Node == id {
			return name
		}
	}
	return ""
}

// passing makes a file and removes it.
func (f *filler) passing(dir journal.NodeID, i int) error {
	id, err := f.file(dir, "tmp", i)
	if err != nil {
		return err
	}
	return f.unlink(journal.OpUnlink, dir, fmt.Sprintf("f%d", i), id)
}

func (f *filler) mkdir(name string) (journal.NodeID, error) {
	id := f.st.NextNode
	return id, f.append(&journal.Record{Op: journal.OpMkdir, Path: name, Changes: []journal.Change{
		{Node: &journal.NodeChange{ID: id, After: f.node(0o40755, 2)}},
		f.entry(journal.RootID, name, journal.Entry{Kind: journal.EntryNode, Node: id}),
	}}, nil)
}

// file makes a file, writes it and sets its times.
func (f *filler) file(dir journal.NodeID, where string, i int) (journal.NodeID, error) {
	id, name := f.st.NextNode, fmt.Sprintf("f%d", i)
	path := where + "/" + name
	err := f.append(&journal.Record{Op: journal.OpCreate, Path: path, Changes: []journal.Change{
		{Node: &journal.NodeChange{ID: id, After: f.node(0o100644, 1)}},
		f.entry(dir, name, journal.Entry{Kind: journal.EntryNode, Node: id}),
	}}, nil)
	if err != nil {
		return 0, err
	}
	if err := f.write(id, path, i); err != nil {
		return 0, err
	}
	return id, f.append(&journal.Record{Op: journal.OpUtimens, Path: path, Changes: []journal.Change{
		f.edit(id, func(n *journal.Node) { n.Attr.Mtime = 1_000_000_000_000_000_000 }),
	}}, nil)
}

func (f *filler) write(id journal.NodeID, path string, i int) error {
	data := Content(i, f.shape.Bytes)
	n := uint64(len(data))
	rec := &journal.Record{Op: journal.OpWrite, Path: path}
	e := journal.Extent{Len: n, Kind: journal.ExtentData}
	if n > journal.MaxInline {
		ref, err := f.s.Put(data)
		if err != nil {
			return fmt.Errorf("store data: %w", err)
		}
		e.Loc, rec.Data, data = ref.Loc, []journal.DataRef{ref}, nil
	}
	rec.Changes = []journal.Change{
		f.edit(id, func(d *journal.Node) { d.Attr.Size = n }),
		{Content: &journal.ContentChange{ID: id, Len: n, After: []journal.Extent{e}}},
	}
	return f.append(rec, data)
}

// Content returns the bytes of the file of that number.
func Content(i, n int) []byte {
	b := make([]byte, n)
	copy(b, fmt.Sprintf("content of file %d\n", i))
	for j := range b {
		if b[j] == 0 {
			b[j] = byte('a' + (i+j)%26)
		}
	}
	return b
}

func (f *filler) unlink(op journal.Op, dir journal.NodeID, name string, id journal.NodeID) error {
	return f.append(&journal.Record{Op: op, Path: name, Changes: []journal.Change{
		f.edit(id, func(n *journal.Node) { n.Attr.Nlink = 0 }),
		f.entry(dir, name, journal.Entry{}),
	}}, nil)
}

func (f *filler) node(mode, nlink uint32) *journal.Node {
	return &journal.Node{Own: true, OwnContent: mode&0o170000 == 0o100000, Attr: journal.Attr{
		Mode: mode, UID: 1000, GID: 1000, Nlink: nlink, Atime: f.now, Mtime: f.now, Ctime: f.now, Btime: f.now,
	}}
}

func (f *filler) entry(parent journal.NodeID, name string, after journal.Entry) journal.Change {
	return journal.Change{Entry: &journal.EntryChange{Parent: parent, Name: name, Before: f.st.Entries[parent][name], After: after}}
}

func (f *filler) edit(id journal.NodeID, fn func(*journal.Node)) journal.Change {
	before := f.st.Nodes[id]
	after := before.Clone()
	after.Attr.Ctime = f.now
	fn(after)
	return journal.Change{Node: &journal.NodeChange{ID: id, Before: before, After: after}}
}

func (f *filler) append(r *journal.Record, inline []byte) error {
	if f.exec == 0 || f.open >= f.shape.PerExec {
		if err := f.nextExec(); err != nil {
			return err
		}
	}
	return f.put(r, inline)
}

func (f *filler) put(r *journal.Record, inline []byte) error {
	f.now += 1000
	r.Actor = journal.Actor{PID: 100, TID: 100, UID: 1000, Comm: "make", Exec: f.exec}
	if _, err := f.s.Append(r, inline); err != nil {
		return fmt.Errorf("append: %w", err)
	}
	f.st.Apply(r)
	f.bury(r)
	f.count++
	f.open++
	return nil
}

// bury forgets what the record removed, so that a long history is made in
// little memory.
func (f *filler) bury(r *journal.Record) {
	for _, c := range r.Changes {
		if c.Node != nil && c.Node.After.Attr.Nlink == 0 {
			delete(f.st.Nodes, c.Node.ID)
			delete(f.st.Contents, c.Node.ID)
		}
	}
}

func (f *filler) nextExec() error {
	if err := f.endExec(); err != nil {
		return err
	}
	f.exec, f.open = f.st.NextExec, 0
	return f.put(&journal.Record{Op: journal.OpExecBegin, Note: &journal.Note{Exec: f.note()}}, nil)
}

func (f *filler) endExec() error {
	if f.exec == 0 {
		return nil
	}
	x := f.note()
	x.End = f.now
	return f.put(&journal.Record{Op: journal.OpExecEnd, Note: &journal.Note{Exec: x}}, nil)
}

func (f *filler) note() *journal.Exec {
	return &journal.Exec{ID: f.exec, Command: []string{"make", "all"}, Cwd: "/workspace", Runner: "ns", Begin: f.now}
}
