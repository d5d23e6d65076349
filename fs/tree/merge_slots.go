package tree

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
)

// findSlots finds the names that a side says something else about than base.
func (g *merger) findSlots() error {
	for _, s := range []*side{&g.theirs, &g.ours} {
		for parent, entries := range s.state.Entries {
			for name, e := range entries {
				if e != g.b.Entries[parent][name] {
					if err := g.addSlot(s, entryKey{parent, name}); err != nil {
						return err
					}
				}
			}
		}
		for parent, entries := range g.b.Entries {
			for name := range entries {
				if s.state.Entries[parent][name].Kind == journal.EntryNone {
					if err := g.addSlot(s, entryKey{parent, name}); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

func (g *merger) addSlot(s *side, k entryKey) error {
	base, err := g.leads(g.b, k)
	if err != nil {
		return err
	}
	now, err := g.leads(s.state, k)
	if err != nil {
		return err
	}
	s.slots[k] = slotChange{base, now}
	if base == now {
		return nil
	}
	if base != 0 {
		s.removed[base] = append(s.removed[base], k)
	}
	if now != 0 {
		s.added[now] = append(s.added[now], k)
	}
	return nil
}

// leads returns what a name leads to in a state.
func (g *merger) leads(s *journal.State, k entryKey) (journal.NodeID, error) {
	e := s.Entries[k.parent][k.name]
	switch {
	case e.Kind == journal.EntryNode:
		return e.Node, nil
	case e.Kind == journal.EntryWhiteout:
		return 0, nil
	}
	if up := s.Nodes[k.parent]; up != nil && up.Opaque {
		return 0, nil
	}
	return g.lowerOf(k)
}

// lowerOf returns what the lower has under a name. Where an upper says it, the
// lower isn't asked.
func (g *merger) lowerOf(k entryKey) (journal.NodeID, error) {
	if id, ok := g.lowers[k]; ok {
		return id, nil
	}
	f, ok := g.anyFound(k.parent)
	if !ok || f.dir == nil {
		return 0, nil
	}
	id, said := g.saidOfLower(f, k)
	if !said {
		low, err := g.Base.l.lowerChild(f.dir, k.name)
		if errors.Is(err, ErrNotExist) {
			g.lowers[k] = 0
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		g.Base.l.attach(&low)
		id = low.id
		low.up = nil
		g.lowFound[id] = low
		g.types[id] = low.mode
	}
	g.lowers[k] = id
	return id, nil
}

// saidOfLower returns what an upper remembers of the lower file of that name.
func (g *merger) saidOfLower(dir found, k entryKey) (journal.NodeID, bool) {
	for _, s := range []*journal.State{g.b, g.t, g.o} {
		e := s.Entries[k.parent][k.name]
		switch e.Kind {
		case journal.EntryWhiteout:
			if e.Node != 0 {
				return e.Node, true
			}
		case journal.EntryNode:
			n := s.Nodes[e.Node]
			if n != nil && n.Origin.Source == dir.dir.Source() && n.Origin.Path == dir.dir.PathOf(k.name) {
				return e.Node, true
			}
		}
	}
	return 0, false
}

// anyFound returns a node with its lower part, from whichever state knows it.
func (g *merger) anyFound(id journal.NodeID) (found, bool) {
	for _, v := range []*View{g.Base, g.Theirs, g.Ours} {
		if f, ok := v.l.byID(id); ok && (f.low.Dir != nil || id == journal.RootID) {
			return f, true
		}
	}
	f, ok := g.lowFound[id]
	return f, ok
}

// item returns a node as a view shows it.
func (g *merger) item(v *View, id journal.NodeID) (Item, error) {
	f, ok := v.l.byID(id)
	if !ok {
		if f, ok = g.anyFound(id); !ok {
			return Item{}, ErrNotExist
		}
		f.up = nil
	}
	k := g.nameOf(id)
	return v.item(g.path(k), f)
}

// unifyAll finds what both sides made alike.
func (g *merger) unifyAll() error {
	for _, k := range sortedSlots(g.theirs.slots) {
		t, both := g.theirs.slots[k], false
		if o, ok := g.ours.slots[k]; ok {
			both = t.now != o.now
			if both {
				if err := g.unify(k, t.now, o.now); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// unify makes theirs' new node the same as ours' if they are alike:
// directories, whose entries are then compared, and equal files.
func (g *merger) unify(k entryKey, z, y journal.NodeID) error {
	if z == 0 || y == 0 || g.known(z) || g.known(y) || g.typ(z) != g.typ(y) {
		return nil
	}
	if g.isDir(z) {
		g.same[z] = y
		for name, e := range g.t.Entries[z] {
			other := g.o.Entries[y][name]
			if e.Kind == journal.EntryNode && other.Kind == journal.EntryNode {
				if err := g.unify(entryKey{z, name}, e.Node, other.Node); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if g.t.Nodes[z].Attr.Nlink != 1 || g.o.Nodes[y].Attr.Nlink != 1 {
		return nil
	}
	a, err := g.item(g.Theirs, z)
	if err != nil {
		return err
	}
	b, err := g.item(g.Ours, y)
	if err != nil {
		return err
	}
	alike, err := equal(a, b)
	if alike {
		g.same[z] = y
	}
	return err
}

// mapped returns ours' number of a node of theirs.
func (g *merger) mapped(id journal.NodeID) journal.NodeID {
	if y, ok := g.same[id]; ok {
		return y
	}
	return id
}

func sortedSlots(m map[entryKey]slotChange) []entryKey {
	return slices.SortedFunc(maps.Keys(m), compareKeys)
}

func compareKeys(a, b entryKey) int {
	return cmp.Or(cmp.Compare(a.parent, b.parent), strings.Compare(a.name, b.name))
}

// slots decides what becomes of each name that theirs changed.
func (g *merger) slots() error {
	for _, k := range sortedSlots(g.theirs.slots) {
		if err := g.slot(k, g.theirs.slots[k]); err != nil {
			return err
		}
	}
	return nil
}

func (g *merger) slot(k entryKey, c slotChange) error {
	at := entryKey{g.mapped(k.parent), k.name}
	raw := g.o.Entries[at.parent][at.name]
	theirs := g.t.Entries[k.parent][k.name]
	ours, err := g.leads(g.o, at)
	if err != nil {
		return err
	}
	z := g.mapped(c.now)
	switch {
	case z == 0 && ours == 0 && g.gone(&g.theirs, c.base) && len(g.ours.added[c.base]) > 0:
		g.conflict(k, "deleted in the fork, moved in the workspace", []journal.NodeID{c.base}, []journal.NodeID{c.base})
		return nil
	case c.now == c.base || z == ours:
		if raw.Kind == journal.EntryNone && theirs.Kind == journal.EntryNode && z == c.now && !g.gone(&g.ours, at.parent) {
			g.pins = append(g.pins, k)
		}
		return nil
	case ours != c.base:
		return g.contested(k, c.base, ours, c.now)
	case c.base != 0 && g.gone(&g.theirs, c.base):
		changed, err := g.really(&g.ours, c.base)
		if err != nil {
			return err
		}
		if changed {
			return g.contested(k, c.base, ours, c.now)
		}
	}
	if why := g.cannotLead(at, c.now); why != "" {
		g.conflict(k, why, []journal.NodeID{c.now}, []journal.NodeID{at.parent, c.now})
		return nil
	}
	g.take(at, ours, z, theirs)
	return nil
}

// cannotLead says why a name can't be made to lead to a node in ours.
func (g *merger) cannotLead(k entryKey, id journal.NodeID) string {
	if id == 0 {
		return ""
	}
	if g.gone(&g.ours, k.parent) {
		return "its directory was deleted in the workspace"
	}
	if !g.known(id) {
		return ""
	}
	if g.gone(&g.ours, id) {
		return "moved or linked in the fork, deleted in the workspace"
	}
	for _, name := range g.theirs.removed[id] {
		if slices.Contains(g.ours.removed[id], name) && !sameKeys(g.theirs.added[id], g.ours.added[id]) {
			return "moved to different places in the fork and in the workspace"
		}
	}
	return ""
}

func sameKeys(a, b []entryKey) bool {
	for _, k := range a {
		if !slices.Contains(b, k) {
			return false
		}
	}
	return len(a) == len(b)
}

// take makes a name in ours lead where theirs has it lead.
func (g *merger) take(k entryKey, from, to journal.NodeID, e journal.Entry) {
	if e.Kind == journal.EntryNode {
		e.Node = to
	}
	g.taken[k] = e
	g.order = append(g.order, k)
	for id, n := range map[journal.NodeID]int{from: -1, to: 1} {
		switch {
		case id == 0:
		case g.isDir(id):
			g.links[k.parent] += n
		default:
			g.links[id] += n
		}
	}
	if n := g.o.Nodes[to]; to >= journal.CreatedBit && (n == nil || dead(n)) {
		g.takeNew(to)
	}
}

// takeNew takes over a node that ours has no name for: theirs made it, or gave
// a name to one that had none.
func (g *merger) takeNew(id journal.NodeID) {
	if _, done := g.after[id]; done {
		return
	}
	g.after[id] = g.t.Nodes[id]
	g.replaceContent(id)
}

// contested handles a name that both sides did something about.
func (g *merger) contested(k entryKey, x, y, z journal.NodeID) error {
	theirs, ours := []journal.NodeID{z, x}, []journal.NodeID{y, x}
	why := ""
	switch {
	case z == 0:
		why = "deleted in the fork, changed in the workspace"
	case y == 0:
		why = "changed in the fork, deleted in the workspace"
	case x == 0:
		why = "made in both, and not alike"
	default:
		done, reason, err := g.mergeReplaced(k, x, y, z)
		if done || err != nil {
			return err
		}
		why = reason
	}
	g.conflict(k, why, theirs, ours)
	return nil
}

// mergeReplaced merges a file that is x in base, y in ours and z in theirs.
func (g *merger) mergeReplaced(k entryKey, x, y, z journal.NodeID) (done bool, why string, err error) {
	const other = "replaced in both"
	for _, id := range []journal.NodeID{x, y, z} {
		if g.typ(id) != unix.S_IFREG {
			return false, other, nil
		}
	}
	for _, r := range []struct {
		s  *side
		by journal.NodeID
	}{{&g.theirs, z}, {&g.ours, y}} {
		if r.by == x {
			continue
		}
		linked, err := g.linked(r.s.view, r.by)
		if err != nil {
			return false, "", err
		}
		if linked || !g.gone(r.s, x) {
			return false, other, nil
		}
	}
	t, why, err := g.mergeText(x, y, z)
	if t == nil || err != nil {
		return false, why, err
	}
	g.handled[x], g.handled[z] = true, true
	g.setText(k, y, t)
	return true, "", nil
}

// linked reports whether a file has more names than one. One of the lower that
// a side shows as it is has no state.
func (g *merger) linked(v *View, id journal.NodeID) (bool, error) {
	it, err := g.item(v, id)
	return it.Stat.Attr.Nlink != 1, err
}

func (g *merger) setText(k entryKey, id journal.NodeID, t *mergedText) {
	g.texts[id] = t
	g.merged = append(g.merged, g.path(k))
}

// mergeText merges the bytes and the mode of three versions of a file.
func (g *merger) mergeText(x, y, z journal.NodeID) (*mergedText, string, error) {
	base, err := g.item(g.Base, x)
	if err != nil {
		return nil, "", err
	}
	ours, err := g.item(g.Ours, y)
	if err != nil {
		return nil, "", err
	}
	theirs, err := g.item(g.Theirs, z)
	if err != nil {
		return nil, "", err
	}
	was, is, want := base.Stat.Attr.Mode, ours.Stat.Attr.Mode, theirs.Stat.Attr.Mode
	if want != was && is != was && want != is {
		return nil, "mode changed in both", nil
	}
	text, why, err := g.Text(base, ours, theirs)
	if text == nil || err != nil {
		return nil, why, err
	}
	t := &mergedText{text: text}
	if want != was {
		t.mode = want
	}
	return t, "", nil
}

// lost finds files that theirs changed in place and ours removed or replaced.
func (g *merger) lost() error {
	for _, id := range g.changedNodes() {
		if g.handled[id] || !g.gone(&g.ours, id) || g.gone(&g.theirs, id) {
			continue
		}
		changed, err := g.really(&g.theirs, id)
		if err != nil {
			return err
		}
		if !changed {
			continue
		}
		k := g.ours.removed[id][0]
		if err := g.contested(k, id, g.ours.slots[k].now, id); err != nil {
			return err
		}
	}
	return nil
}

// changedNodes returns the nodes of base that theirs has another state of.
func (g *merger) changedNodes() []journal.NodeID {
	var ids []journal.NodeID
	for id, n := range g.t.Nodes {
		if g.known(id) && !journal.SameNode(n, g.b.Nodes[id]) {
			ids = append(ids, id)
		}
	}
	for id := range g.b.Nodes {
		if g.t.Nodes[id] == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
