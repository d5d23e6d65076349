package tree

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/lower"
	"github.com/winkfs/winkfs/journal"
)

// Changed is one file that differs between two views. Old is nil for a file
// that is new, New for one that is gone; different paths mean that it was
// renamed, which is known by the node's number, not guessed.
type Changed struct {
	Old, New *Item
}

// Path returns the path that the change is listed under: the new one, or the
// old one of a file that is gone.
func (c Changed) Path() string {
	if c.New != nil {
		return c.New.Path
	}
	return c.Old.Path
}

// Changes returns what differs from a to b, sorted by path. Directories count
// when they came, went or changed their mode, owner or extended attributes; not
// for their times, which follow their entries. Only directories that one of the
// views says something about are read, so the cost follows the number of
// changes.
func Changes(a, b *View) ([]Changed, error) { return changes(&differ{a: a, b: b}) }

// ChangesByPath is Changes for views whose nodes have nothing to do with each
// other: all directories are read, and nothing counts as renamed.
func ChangesByPath(a, b *View) ([]Changed, error) { return changes(&differ{a: a, b: b, foreign: true}) }

// ChangesOfNodes is Changes for Revert: a path that leads to another node counts,
// however alike the two are, and so does what lies in a directory that is
// another one.
func ChangesOfNodes(a, b *View) ([]Changed, error) { return changes(&differ{a: a, b: b, nodes: true}) }

func changes(d *differ) ([]Changed, error) {
	a, b := d.a, d.b
	ra, err := a.Root()
	if err != nil {
		return nil, err
	}
	rb, err := b.Root()
	if err != nil {
		return nil, err
	}
	if err := d.both(ra, rb, false); err != nil {
		return nil, err
	}
	if !d.foreign {
		if err := d.links(ra, rb); err != nil {
			return nil, err
		}
	}
	out := append(d.changed, d.pair()...)
	slices.SortFunc(out, func(x, y Changed) int { return cmp.Compare(x.Path(), y.Path()) })
	return out, nil
}

type differ struct {
	a, b       *View
	foreign    bool // equal node numbers mean nothing
	nodes      bool // other node numbers are a difference
	changed    []Changed
	gone, came []*Item
}

// both compares what the same path leads to in both views. apart says that its
// directory is another one.
func (d *differ) both(ia, ib Item, apart bool) error {
	if ia.f.mode != ib.f.mode || (ia.ID() != ib.ID() && !ia.IsDir()) {
		return d.replaced(ia, ib)
	}
	same, err := equal(ia, ib)
	if err != nil {
		return err
	}
	if !same || d.nodes && (apart || ia.ID() != ib.ID()) {
		d.changed = append(d.changed, Changed{&ia, &ib})
	}
	if !ia.IsDir() {
		return nil
	}
	return d.entries(ia, ib)
}

// replaced handles a path that leads to another node than before. If neither
// node shows elsewhere, pair joins the two again as a change of one path.
func (d *differ) replaced(ia, ib Item) error {
	if err := d.all(ia, d.a, &d.gone); err != nil {
		return err
	}
	return d.all(ib, d.b, &d.came)
}

// entries compares two directories' entries.
func (d *differ) entries(ia, ib Item) error {
	names, err := d.candidates(ia, ib)
	if err != nil {
		return err
	}
	for _, name := range names {
		ca, errA := d.a.Lookup(ia, name)
		cb, errB := d.b.Lookup(ib, name)
		if err := errors.Join(real(errA), real(errB)); err != nil {
			return err
		}
		switch {
		case errA == nil && errB == nil:
			err = d.both(ca, cb, ia.ID() != ib.ID())
		case errA == nil:
			err = d.all(ca, d.a, &d.gone)
		case errB == nil:
			err = d.all(cb, d.b, &d.came)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// real drops the error that only says that a name does not exist.
func real(err error) error {
	if errors.Is(err, ErrNotExist) {
		return nil
	}
	return err
}

// untouched reports whether a name leads to the same file, not a directory, in
// the same state in both views, which need not be looked at then.
func (d *differ) untouched(ea, eb journal.Entry) bool {
	if ea != eb {
		return false
	}
	if ea.Kind != journal.EntryNode {
		return true
	}
	up := d.a.l.state.Nodes[ea.Node]
	return up != nil && up == d.b.l.state.Nodes[ea.Node] && up.Attr.Mode&unix.S_IFMT != unix.S_IFDIR
}

// candidates returns the names that can differ. In a directory that shows the
// same lower entries in both views these are the names that either upper has.
func (d *differ) candidates(ia, ib Item) ([]string, error) {
	names := make(map[string]bool)
	ea, eb := d.a.changedNames(ia.ID()), d.b.changedNames(ib.ID())
	for name, e := range ea {
		if !d.untouched(e, eb[name]) {
			names[name] = true
		}
	}
	for name := range eb {
		if ea[name].Kind == journal.EntryNone {
			names[name] = true
		}
	}
	sameLower := !d.foreign && ia.ID() == ib.ID() && (visible(ia.f.up, ia.f.dir) == nil) == (visible(ib.f.up, ib.f.dir) == nil)
	if !sameLower {
		la, err := d.a.List(ia)
		if err != nil {
			return nil, err
		}
		lb, err := d.b.List(ib)
		if err != nil {
			return nil, err
		}
		for _, name := range append(la, lb...) {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// all adds an item and everything below it.
func (d *differ) all(it Item, v *View, list *[]*Item) error {
	*list = append(*list, &it)
	if !it.IsDir() {
		return nil
	}
	names, err := v.List(it)
	if err != nil {
		return err
	}
	for _, name := range names {
		c, err := v.Lookup(it, name)
		if errors.Is(err, ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := d.all(c, v, list); err != nil {
			return err
		}
	}
	return nil
}

// pair joins what is gone with what came: by path if the same path leads to
// another file of the same type, else by node, which is a rename.
func (d *differ) pair() []Changed {
	out := make([]Changed, 0, len(d.gone)+len(d.came))
	used := make(map[*Item]bool, min(len(d.gone), len(d.came)))
	rest := d.pairByPath(&out, used)
	byNode := make(map[journal.NodeID]*Item)
	if len(rest) > 0 && !d.foreign {
		for _, it := range d.came {
			byNode[it.ID()] = it
		}
	}
	for _, old := range rest {
		if it := byNode[old.ID()]; it != nil && !used[it] {
			used[it] = true
			out = append(out, Changed{old, it})
			continue
		}
		out = append(out, Changed{Old: old})
	}
	for _, it := range d.came {
		if !used[it] {
			out = append(out, Changed{New: it})
		}
	}
	return out
}

// pairByPath returns what is gone from paths at which nothing came, or something
// of another type.
func (d *differ) pairByPath(out *[]Changed, used map[*Item]bool) (rest []*Item) {
	if len(d.gone) == 0 {
		return nil
	}
	byPath := make(map[string]*Item, len(d.came))
	for _, it := range d.came {
		byPath[it.Path] = it
	}
	for _, old := range d.gone {
		it := byPath[old.Path]
		if it == nil || it.f.mode != old.f.mode {
			rest = append(rest, old)
			continue
		}
		used[it] = true
		if same, err := equal(*old, *it); err != nil || !same || d.nodes {
			*out = append(*out, Changed{old, it})
		}
	}
	return rest
}

// equal reports whether two items of the same type are alike in all that a
// change can be about.
func equal(a, b Item) (bool, error) {
	if a.ID() == b.ID() && a.f.up == b.f.up && a.v.l.low == b.v.l.low {
		return true, nil
	}
	x, y := a.Stat.Attr, b.Stat.Attr
	if x.Mode != y.Mode || !sameID(x.UID, y.UID) || !sameID(x.GID, y.GID) {
		return false, nil
	}
	if a.f.mode == unix.S_IFREG && x.Size != y.Size {
		return false, nil
	}
	xa, err := a.Xattrs()
	if err != nil {
		return false, err
	}
	xb, err := b.Xattrs()
	if err != nil || !maps.Equal(xa, xb) {
		return false, err
	}
	switch a.f.mode {
	case unix.S_IFLNK:
		return sameTarget(a, b)
	case unix.S_IFREG:
		return sameBytes(a, b)
	}
	return true, nil
}

// sameID compares owners; one that is not known is no difference.
func sameID(a, b uint32) bool { return a == b || a == NoID || b == NoID }

// samePlaces reports whether both files have all their bytes from the same
// places of the lower and of the journal, which are equal then.
func samePlaces(a, b Item) bool {
	if a.v.store != b.v.store {
		return false
	}
	x := a.v.l.planRange(&a.f, 0, a.Stat.Attr.Size)
	y := b.v.l.planRange(&b.f, 0, b.Stat.Attr.Size)
	return slices.Equal(x, y) && (!slices.ContainsFunc(x, isLower) || sameLower(a.f.low, b.f.low))
}

func isLower(e journal.Extent) bool { return e.Kind == journal.ExtentLower }

// sameLower reports whether both are the same file of the lower.
func sameLower(a, b lower.File) bool {
	return a.Dir != nil && b.Dir != nil && a.Ino == b.Ino && a.Btime == b.Btime && a.Kept == b.Kept && a.Same(b)
}

func sameTarget(a, b Item) (bool, error) {
	ta, err := a.Readlink()
	if err != nil {
		return false, err
	}
	tb, err := b.Readlink()
	return ta == tb, err
}

// sameBytes compares two files of the same size. Bytes that both have from the
// same place are not read.
func sameBytes(a, b Item) (bool, error) {
	if samePlaces(a, b) {
		return true, nil
	}
	ra, rb := a.Open(), b.Open()
	n := min(a.Stat.Attr.Size+1, 64<<10)
	bufA, bufB := make([]byte, n), make([]byte, n)
	for {
		n, errA := io.ReadFull(ra, bufA)
		m, errB := io.ReadFull(rb, bufB)
		if !bytes.Equal(bufA[:n], bufB[:m]) {
			return false, nil
		}
		if errA == io.EOF || errA == io.ErrUnexpectedEOF {
			return true, nil
		}
		if err := errors.Join(errA, errB); err != nil {
			return false, err
		}
	}
}
