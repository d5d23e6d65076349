package tree

import (
	"errors"
	"fmt"
	"hash/maphash"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/lower"
	"github.com/winkfs/winkfs/journal"
)

// layers is the upper state and the lower, and how the two make one tree. It
// has no lock: the live Tree guards it by its own, a View owns it.
type layers struct {
	state   *journal.State
	low     *lower.FS
	sources []Source
	alias   map[reused]journal.NodeID
	last    *lastDir // of a View, else nil
}

// lastDir is the lower directory that was located last. A comparison asks once
// for each file in it, and gets the same one, whose descriptor is open by then.
// The live tree does without, since its directories follow the host's moves.
// Safe for concurrent use.
type lastDir struct{ at atomic.Pointer[locatedDir] }

type locatedDir struct {
	source uint32
	path   string
	dir    *lower.Dir
}

// place returns the directory that holds a path of a source and the path's last
// name, as lower.FS.Locate does.
func (l *layers) place(source uint32, path string) (dir *lower.Dir, name string) {
	if l.last == nil {
		return l.low.Locate(source, path)
	}
	above, name := splitPath(path)
	if d := l.last.at.Load(); d != nil && d.source == source && d.path == above {
		return d.dir, name
	}
	dir, name = l.low.Locate(source, path)
	if dir != nil {
		l.last.at.Store(&locatedDir{source, above, dir})
	}
	return dir, name
}

// reused names a lower file whose number is held by the state of another: one
// that had it before, or the directory of that name before the host moved it.
type reused struct {
	id    journal.NodeID
	btime int64
}

func newLayers(s *journal.State, low *lower.FS, sources []Source) layers {
	l := layers{state: s, low: low, sources: sources}
	for id, up := range s.Nodes {
		l.recognise(id, up)
	}
	return l
}

// recognise notes that a lower file is a node with a number of its own, so that
// each of its names leads there, also those that the upper says nothing of.
func (l *layers) recognise(id journal.NodeID, up *journal.Node) {
	if up == nil || id < journal.CreatedBit || up.Origin.Source == 0 {
		return
	}
	key := reused{LowerID(up.Origin.Source, up.Origin.Ino), int64(up.Attr.Btime)}
	for {
		next, ok := l.alias[key]
		switch {
		case !ok:
			l.setAlias(key, id)
			return
		case next == id:
			return
		}
		key.id = next
	}
}

func (l *layers) setAlias(key reused, id journal.NodeID) {
	if l.alias == nil {
		l.alias = make(map[reused]journal.NodeID)
	}
	l.alias[key] = id
}

// found is what a name leads to.
type found struct {
	id    journal.NodeID
	up    *journal.Node // nil: no upper state
	low   lower.File    // Dir is nil without a lower part
	dir   *lower.Dir    // of a directory with a lower part, opaque or not
	mode  uint32        // file type
	st    *lower.Stat   // the lower's attributes, when they were read
	btime journal.Timespec
	entry journal.Entry // what the upper said of the name, of a look-up
}

// LowerID returns the number of a lower file: the lower's inode number with
// the source above it, so that a workspace of one source shows the host's
// numbers. What does not fit is folded.
func LowerID(source uint32, ino uint64) journal.NodeID {
	const inoBits = 56
	if ino>>inoBits != 0 {
		ino = (ino>>inoBits ^ ino) & (1<<inoBits - 1)
	}
	id := journal.NodeID(source-1)&0x3f<<inoBits | journal.NodeID(ino)
	if id <= journal.RootID {
		id |= 1 << 62
	}
	return id
}

// rootSource returns the number of the source shown at the workspace's root, 0
// if there is none.
func (l *layers) rootSource() uint32 {
	for i, s := range l.sources {
		if s.At == "" {
			return uint32(i + 1)
		}
	}
	return 0
}

func (l *layers) rootFound() found {
	f := found{id: journal.RootID, up: l.state.Nodes[journal.RootID], mode: unix.S_IFDIR}
	if root := l.low.Root(l.rootSource()); root != nil {
		f.dir, f.low = root, lower.File{Dir: root, Ino: root.Ino()}
	}
	return f
}

// byID returns a node that has upper state.
func (l *layers) byID(id journal.NodeID) (found, bool) {
	if id == journal.RootID {
		return l.rootFound(), true
	}
	up := l.state.Nodes[id]
	if up == nil {
		return found{}, false
	}
	f := found{id: id, up: up, mode: up.Attr.Mode & unix.S_IFMT, btime: up.Attr.Btime}
	l.locate(&f)
	return f, true
}

// locate fills in where the lower part of a node with upper state is.
func (l *layers) locate(f *found) {
	o := f.up.Origin
	if o.Source == 0 {
		return
	}
	dir, name := l.place(o.Source, o.Path)
	if dir == nil {
		return
	}
	f.low = lower.File{Dir: dir, Name: name, Ino: o.Ino, Btime: int64(f.up.Attr.Btime)}
	if f.mode == unix.S_IFDIR {
		// A directory follows its place, whatever directory the host puts there.
		f.low.Ino, f.low.Btime, f.dir = 0, 0, dir
		if name != "" {
			f.dir = dir.Child(name, 0)
		}
	}
}

// lowerChild looks a name up in a lower directory. It makes system calls and
// reads no state.
func (l *layers) lowerChild(dir *lower.Dir, name string) (found, error) {
	at, st, err := dir.Lookup(name)
	if isGone(err) {
		return found{}, ErrNotExist
	}
	if err != nil {
		return found{}, err
	}
	return l.lowerFound(at, name, st), nil
}

// isGone reports whether an error only says that the host has taken the lower
// file away or put another in its place.
func isGone(err error) bool {
	for _, e := range []error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, lower.ErrStale, ErrNotExist} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// readLowerDir lists a lower directory. One that the host has taken away is
// empty.
func readLowerDir(dir *lower.Dir) ([]lower.Dirent, error) {
	list, err := dir.ReadDir()
	if isGone(err) {
		return nil, nil
	}
	return list, err
}

// lowerXattrs reads a lower file's extended attributes; none of one that is
// gone.
func lowerXattrs(f lower.File) (map[string]string, error) {
	m, err := f.Xattrs()
	if isGone(err) {
		return nil, nil
	}
	return m, err
}

func (l *layers) lowerFound(dir *lower.Dir, name string, st lower.Stat) found {
	f := found{
		id:    l.lowerID(dir.Source(), st.Ino),
		low:   lower.File{Dir: dir, Name: name, Ino: st.Ino, Btime: st.Btime},
		mode:  st.Mode & unix.S_IFMT,
		st:    &st,
		btime: journal.Timespec(st.Btime),
	}
	if st.Mounted {
		// Its inode number is another file system's, and nothing below shows.
		f.id = mountedID(dir, name)
		return f
	}
	if f.mode == unix.S_IFDIR {
		f.dir = dir.Child(name, st.Ino)
		f.countLinks(&st)
	}
	return f
}

// countLinks makes a merged directory's link count 1, which says that its
// subdirectories are not counted.
func (f *found) countLinks(st *lower.Stat) {
	if f.dir != nil && f.dir.Merged() {
		st.Nlink = 1
	}
}

func (l *layers) lowerID(source uint32, ino uint64) journal.NodeID {
	if r := l.low.Root(l.rootSource()); r != nil && r.Source() == source && r.Ino() == ino {
		return journal.RootID
	}
	return LowerID(source, ino)
}

// mountedSeed makes the numbers of covered directories. They need not last
// longer than the process, since such a directory can't be changed.
var mountedSeed = maphash.MakeSeed()

func mountedID(dir *lower.Dir, name string) journal.NodeID {
	h := maphash.String(mountedSeed, fmt.Sprintf("%d/%s", dir.Source(), dir.PathOf(name)))
	return journal.NodeID(h>>3 | 1<<62)
}

// attach adds the upper state that belongs to a lower file. A file that only
// has got the inode number of one that has state is another node, and so is a
// directory that the host has moved away from where its changes were made: they
// stay there. Such a node has a number of its own, also when the number that it
// should have had is free by then.
func (l *layers) attach(f *found) {
	for {
		up := l.state.Nodes[f.id]
		key := reused{f.id, int64(f.btime)}
		next, aliased := l.alias[key]
		switch {
		case up != nil && f.has(up):
			f.up = up
			return
		case aliased:
		case up == nil:
			return
		default:
			next = l.state.NextNode
			l.state.NextNode++
			l.setAlias(key, next)
		}
		f.id = next
	}
}

// has reports whether the state of the lower file's number is the file's.
func (f *found) has(up *journal.Node) bool {
	return !f.moved(up) && (up.Attr.Btime == 0 || f.btime == 0 || up.Attr.Btime == f.btime)
}

// moved reports whether a lower directory lies elsewhere than the one that has
// the state.
func (f *found) moved(up *journal.Node) bool {
	if f.mode != unix.S_IFDIR || f.low.Dir == nil || up.Origin.Source == 0 {
		return false
	}
	return up.Origin.Source != f.low.Dir.Source() || up.Origin.Path != originPath(f.low)
}

// visible returns the lower directory whose entries show in a directory, nil
// if none do.
func visible(up *journal.Node, dir *lower.Dir) *lower.Dir {
	if up != nil && up.Opaque {
		return nil
	}
	return dir
}
