package tree

import (
	"cmp"
	"errors"
	"hash/fnv"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
	"github.com/winkfs/winkfs/policy"
)

// Cookies of "." and "..". Those of names are larger.
const (
	cookieDot    = 1
	cookieDotDot = 2
	cookieFirst  = 3
)

// listed is one name of a listing.
type listed struct {
	cookie uint64
	name   string
	id     journal.NodeID
	mode   uint32 // file type
}

// cookieOf returns the position of a name in any listing of any directory: it
// depends on nothing but the name, so it stays right while entries come and go,
// and after the daemon was replaced. Names of equal hash follow each other by
// name, with the next free positions.
func cookieOf(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	x := h.Sum64()
	x ^= x >> 32 // fnv's low bits are its good ones
	return max(x&(1<<62-1), cookieFirst)
}

func compareListed(a, b listed) int {
	if c := cmp.Compare(a.cookie, b.cookie); c != 0 {
		return c
	}
	return cmp.Compare(a.name, b.name)
}

// Readdir emits the entries behind the cookie, "." and ".." first, until emit
// returns false. With plus, entries carry attributes and each that was emitted
// counts as looked up. emit must not keep what it is given.
func (t *Tree) Readdir(r *Request, id journal.NodeID, cookie uint64, plus bool, emit func(*Dirent) bool) error {
	n, err := t.getDir(id)
	if err != nil {
		return err
	}
	if err := t.decideNode(policy.OpList, n, 0); err != nil {
		return err
	}
	if !t.emitDots(n, cookie, emit) {
		return nil
	}
	list, err := t.listing(n, cookie == 0)
	if err != nil {
		return err
	}
	i, _ := slices.BinarySearchFunc(list, cookie+1, func(l listed, c uint64) int { return cmp.Compare(l.cookie, c) })
	e := emitted{Dirent: &Dirent{}, stat: &Stat{}}
	for _, l := range list[i:] {
		more, err := t.emitEntry(n, l, plus, e, emit)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

func (t *Tree) emitDots(n *node, cookie uint64, emit func(*Dirent) bool) bool {
	if cookie < cookieDot && !emit(&Dirent{Name: ".", ID: n.id, Mode: unix.S_IFDIR, Cookie: cookieDot}) {
		return false
	}
	if cookie >= cookieDotDot {
		return true
	}
	t.mu.RLock()
	up := n
	if n.parent != nil {
		up = n.parent
	}
	t.mu.RUnlock()
	return emit(&Dirent{Name: "..", ID: up.id, Mode: unix.S_IFDIR, Cookie: cookieDotDot})
}

// emitted is an entry that is emitted, the same one again and again.
type emitted struct {
	*Dirent
	stat *Stat
}

// emitEntry emits one name if it still exists.
func (t *Tree) emitEntry(p *node, l listed, plus bool, e emitted, emit func(*Dirent) bool) (more bool, err error) {
	*e.Dirent = Dirent{Name: l.name, ID: l.id, Mode: l.mode, Cookie: l.cookie}
	if !plus {
		if !t.stillListed(p, l) {
			return true, nil
		}
		return emit(e.Dirent), nil
	}
	st, err := t.find(p, l.name)
	if errors.Is(err, ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	*e.stat = st
	e.ID, e.Mode, e.Stat = st.ID, st.Attr.Mode&unix.S_IFMT, e.stat
	if emit(e.Dirent) {
		return true, nil
	}
	t.Forget(st.ID, 1)
	return false, nil
}

// stillListed checks a name of a listing that may be older than the latest
// change.
func (t *Tree) stillListed(p *node, l listed) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	switch e := t.state.Entries[p.id][l.name]; e.Kind {
	case journal.EntryNode:
		return true
	case journal.EntryWhiteout:
		return false
	}
	return p.lowerDir() != nil
}

// listing returns the sorted names of a directory, fresh or as cached.
func (t *Tree) listing(n *node, fresh bool) ([]listed, error) {
	if !fresh {
		if l, ok := t.lists.get(n.id); ok {
			return l, nil
		}
	}
	t.mu.RLock()
	dir := n.lowerDir()
	t.mu.RUnlock()
	t.lists.begin(n.id)
	var list []listed
	if dir != nil {
		t.watch(n, dir)
		low, err := readLowerDir(dir)
		if err != nil {
			return nil, err
		}
		list = make([]listed, 0, len(low))
		for _, e := range low {
			list = append(list, listed{name: e.Name, id: t.lowerID(e.Source, e.Ino), mode: e.Type})
		}
	}
	t.mu.RLock()
	list = t.merge(n.id, list)
	t.mu.RUnlock()
	t.lists.put(n.id, list)
	return list, nil
}

// merge puts the upper's entries over the lower's and sorts by cookie.
func (l *layers) merge(id journal.NodeID, list []listed) []listed {
	entries := l.state.Entries[id]
	if len(entries) > 0 {
		list = slices.DeleteFunc(list, func(e listed) bool { return entries[e.name].Kind != journal.EntryNone })
	}
	for name, e := range entries {
		if e.Kind == journal.EntryNode {
			list = append(list, listed{name: name, id: e.Node, mode: l.typeOf(e.Node)})
		}
	}
	for i := range list {
		list[i].cookie = cookieOf(list[i].name)
	}
	slices.SortFunc(list, compareListed)
	for i := 1; i < len(list); i++ {
		if list[i].cookie <= list[i-1].cookie {
			list[i].cookie = list[i-1].cookie + 1
		}
	}
	return list
}

func (l *layers) typeOf(id journal.NodeID) uint32 {
	if up := l.state.Nodes[id]; up != nil {
		return up.Attr.Mode & unix.S_IFMT
	}
	return 0
}
