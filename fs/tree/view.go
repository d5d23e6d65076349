package tree

import (
	"fmt"
	"io"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/lower"
	"github.com/winkfs/winkfs/journal"
)

// View is the merged tree at some point, for reading without a mount: diffs,
// applies and commands on a workspace that is not mounted. The upper part never
// changes; the lower is as the host has it. Safe for concurrent use.
type View struct {
	mu    sync.Mutex // attach may number a reused lower inode
	l     layers
	store dataReader
}

// Item is one file of a View.
type Item struct {
	v    *View
	f    found
	Path string // workspace-relative, "" for the root
	Stat Stat
}

// NewView returns the view of a state. The state is the view's from then on.
func NewView(s *journal.State, low *lower.FS, sources []Source, store dataReader) *View {
	v := &View{l: newLayers(s, low, sources), store: store}
	v.l.last = &lastDir{}
	return v
}

// Snapshot returns the view of the tree as it is.
func (t *Tree) Snapshot() *View { return NewView(t.clone(), t.lower, t.sources, t.store) }

// clone returns a copy of the state. It waits for an operation that is being
// journaled, so that the copy is never behind the store.
func (t *Tree) clone() *journal.State {
	t.order.Lock()
	defer t.order.Unlock()
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.state.Clone()
}

// Base returns the view of the sources without any change.
func (t *Tree) Base() (*View, error) {
	s := journal.NewState()
	r, err := t.store.Record1()
	if err != nil {
		return nil, fmt.Errorf("read the first record: %w", err)
	}
	if r != nil && r.Note != nil && r.Note.Text == Genesis {
		s.Apply(r)
	}
	return NewView(s, t.lower, t.sources, t.store), nil
}

// At returns the view of the tree at a point.
func (t *Tree) At(point journal.Seq) (*View, error) {
	s, err := t.StateAt(point)
	if err != nil {
		return nil, err
	}
	return NewView(s, t.lower, t.sources, t.store), nil
}

// StateAt returns the upper state at a point, which is the caller's. It costs
// a clone of the state and the reading of what was recorded since, of which what
// differs is kept in memory.
func (t *Tree) StateAt(point journal.Seq) (*journal.State, error) {
	s := t.clone()
	if point > s.Seq {
		return nil, fmt.Errorf("point %d lies behind the last record %d", point, s.Seq)
	}
	var v journal.Inverter
	if err := t.store.AddTo(&v, point+1, s.Seq); err != nil {
		return nil, err
	}
	return s, t.change(s, v.Nodes(), v.Changes(), point)
}

// Changed returns the view that changes make of another of the tree's, at the
// point that it is of then. ids are the nodes that the changes are about.
func (t *Tree) Changed(v *View, ids []journal.NodeID, changes []journal.Change, point journal.Seq) (*View, error) {
	s := v.l.state.Clone()
	if err := t.change(s, ids, changes, point); err != nil {
		return nil, err
	}
	return NewView(s, t.lower, t.sources, t.store), nil
}

// change applies changes to a state.
func (t *Tree) change(s *journal.State, ids []journal.NodeID, changes []journal.Change, point journal.Seq) error {
	if err := Revive(s, t.store, ids); err != nil {
		return err
	}
	for i := range changes {
		s.ApplyChange(&changes[i])
	}
	s.Seq = point
	return nil
}

// Seq returns the point that the view shows.
func (v *View) Seq() journal.Seq { return v.l.state.Seq }

// Node returns the upper state of a node, nil if it has none.
func (v *View) Node(id journal.NodeID) *journal.Node { return v.l.state.Nodes[id] }

// Content returns a copy of what the upper says of a file's bytes, nil if it
// says nothing.
func (v *View) Content(id journal.NodeID) *journal.Content {
	if c := v.l.state.Contents[id]; c != nil {
		return c.Clone()
	}
	return nil
}

// EachNode calls fn with every node that has upper state, those without a name
// included, in no order. The state must not be changed.
func (v *View) EachNode(fn func(journal.NodeID, *journal.Node)) {
	for id, up := range v.l.state.Nodes {
		fn(id, up)
	}
}

// Root returns the root directory.
func (v *View) Root() (Item, error) { return v.item("", v.l.rootFound()) }

func (v *View) item(path string, f found) (Item, error) {
	if needsLower(f.up, f.mode) && f.st == nil {
		st, err := f.lowerStat()
		if err != nil && !f.upOwn() {
			return Item{}, fmt.Errorf("%s: %w", path, err)
		}
		if err == nil {
			f.st = &st
		}
	}
	return Item{v: v, f: f, Path: path, Stat: v.l.makeStat(&f)}, nil
}

// Lookup returns the file of that name in a directory, ErrNotExist if there is
// none.
func (v *View) Lookup(dir Item, name string) (Item, error) {
	f, err := v.child(&dir.f, name)
	if err != nil {
		return Item{}, err
	}
	path := name
	if dir.Path != "" {
		path = dir.Path + "/" + name
	}
	return v.item(path, f)
}

func (v *View) child(dir *found, name string) (found, error) {
	e := v.l.state.Entries[dir.id][name]
	switch e.Kind {
	case journal.EntryWhiteout:
		return found{}, ErrNotExist
	case journal.EntryNode:
		if f, ok := v.l.byID(e.Node); ok {
			return f, nil
		}
		return found{}, ErrNotExist
	}
	low := visible(dir.up, dir.dir)
	if low == nil {
		return found{}, ErrNotExist
	}
	f, err := v.l.lowerChild(low, name)
	if err != nil {
		return f, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.l.attach(&f)
	return f, nil
}

// List returns the names in a directory, sorted.
func (v *View) List(dir Item) ([]string, error) {
	var names []string
	entries := v.l.state.Entries[dir.f.id]
	if low := visible(dir.f.up, dir.f.dir); low != nil {
		list, err := readLowerDir(low)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			if entries[e.Name].Kind == journal.EntryNone {
				names = append(names, e.Name)
			}
		}
	}
	for name, e := range entries {
		if e.Kind == journal.EntryNode {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// LowerState returns the state that a lower node has right after its copy-up, as
// the host has the file now; nil if the host has it no more. up is any state
// of the node.
func (v *View) LowerState(up *journal.Node) *journal.Node {
	f := found{up: &journal.Node{Attr: up.Attr, Origin: up.Origin}, mode: up.Attr.Mode & unix.S_IFMT}
	v.l.locate(&f)
	st, err := f.lowerStat()
	if err != nil || st.Ino != up.Origin.Ino {
		return nil
	}
	n := &journal.Node{Own: true, Attr: lowerAttr(&st), Origin: up.Origin}
	if f.mode == unix.S_IFLNK {
		n.Target, err = f.low.Readlink()
	} else {
		n.Xattrs, err = lowerXattrs(f.low)
	}
	if err != nil {
		return nil
	}
	return n
}

// ByID returns the file of that number, which must have upper state, under the
// path that the caller knows; ErrNotExist if it has none.
func (v *View) ByID(id journal.NodeID, path string) (Item, error) {
	f, ok := v.l.byID(id)
	if !ok {
		return Item{}, ErrNotExist
	}
	return v.item(path, f)
}

// changedNames returns the names that the upper says something about.
func (v *View) changedNames(id journal.NodeID) map[string]journal.Entry {
	return v.l.state.Entries[id]
}

// Find returns the file at a workspace-relative path.
func (v *View) Find(path string) (Item, error) {
	it, err := v.Root()
	for err == nil && path != "" {
		var name string
		name, path = cutPath(path)
		it, err = v.Lookup(it, name)
	}
	return it, err
}

func cutPath(path string) (head, tail string) {
	for i := range len(path) {
		if path[i] == '/' {
			return path[:i], path[i+1:]
		}
	}
	return path, ""
}

// ID returns the node's number.
func (it Item) ID() journal.NodeID { return it.f.id }

// Up returns the node's upper state, nil if it has none.
func (it Item) Up() *journal.Node { return it.f.up }

// Lower returns where the node's lower part is; Dir is nil if it has none.
func (it Item) Lower() lower.File { return it.f.low }

// IsDir reports whether the item is a directory.
func (it Item) IsDir() bool { return it.f.mode == unix.S_IFDIR }

// Readlink returns the target of a symbolic link.
func (it Item) Readlink() (string, error) { return it.f.readlink() }

// Xattrs returns the extended attributes, nil if there are none.
func (it Item) Xattrs() (map[string]string, error) {
	if it.f.upOwn() {
		return it.f.up.Xattrs, nil
	}
	if it.f.mode == unix.S_IFLNK {
		return nil, nil
	}
	return lowerXattrs(it.f.low)
}

// ReadAt reads a regular file's bytes (io.ReaderAt).
func (it Item) ReadAt(p []byte, off int64) (int, error) {
	q, extents := it.v.l.plan(&it.f, p, off)
	n, err := readExtents(it.v.store, &it.f, q, off, extents)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// Open returns a reader of a regular file's bytes.
func (it Item) Open() io.ReadCloser {
	return io.NopCloser(io.NewSectionReader(it, 0, int64(it.Stat.Attr.Size)))
}
