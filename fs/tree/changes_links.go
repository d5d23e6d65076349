package tree

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
)

// links finds the changed files that show under names which neither upper says
// anything about: the other names of a lower hard link that was changed through
// one of them. Only if there is such a file are the lower directories read, and
// of them only the listings.
func (d *differ) links(ia, ib Item) error {
	want := make(map[journal.NodeID]bool)
	d.a.linked(want)
	d.b.linked(want)
	if len(want) == 0 {
		return nil
	}
	return d.linksBelow(ia, ib, want)
}

// linked adds the lower files with state of their own that have more names than
// the upper holds in place.
func (v *View) linked(want map[journal.NodeID]bool) {
	names := make(map[journal.NodeID]uint32)
	for id, up := range v.l.state.Nodes {
		// One with a single name, too: the names that were held in place may
		// have been removed, and one of which nothing is said be left.
		if up.Own && up.Origin.Source != 0 && up.Attr.Nlink > 0 && up.Attr.Mode&unix.S_IFMT != unix.S_IFDIR {
			names[id] = 0
		}
	}
	if len(names) == 0 {
		return
	}
	for _, entries := range v.l.state.Entries {
		for _, e := range entries {
			if n, ok := names[e.Node]; ok && e.Kind == journal.EntryNode {
				names[e.Node] = n + 1
			}
		}
	}
	for id, n := range names {
		if v.l.state.Nodes[id].Attr.Nlink > n {
			want[id] = true
		}
	}
	for file, id := range v.l.alias {
		if want[id] {
			want[file.id] = true
		}
	}
}

// linksBelow compares the wanted files among the lower entries that show in the
// same directory in both views, and goes down.
func (d *differ) linksBelow(ia, ib Item, want map[journal.NodeID]bool) error {
	dir := visible(ib.f.up, ib.f.dir)
	if dir == nil || ia.ID() != ib.ID() {
		return nil
	}
	list, err := readLowerDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		said := d.a.changedNames(ia.ID())[e.Name].Kind != journal.EntryNone || d.b.changedNames(ib.ID())[e.Name].Kind != journal.EntryNone
		isDir := e.Type == unix.S_IFDIR
		if !isDir && (said || !want[d.b.l.lowerID(e.Source, e.Ino)]) {
			continue
		}
		if err := d.link(ia, ib, e.Name, want); err != nil {
			return err
		}
	}
	return nil
}

func (d *differ) link(ia, ib Item, name string, want map[journal.NodeID]bool) error {
	ca, errA := d.a.Lookup(ia, name)
	cb, errB := d.b.Lookup(ib, name)
	if errA != nil || errB != nil {
		return errors.Join(real(errA), real(errB))
	}
	if ca.IsDir() && cb.IsDir() {
		return d.linksBelow(ca, cb, want)
	}
	same, err := equal(ca, cb)
	if err == nil && !same {
		d.changed = append(d.changed, Changed{&ca, &cb})
	}
	return err
}
