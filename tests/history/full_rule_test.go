package history

import (
	"fmt"
	"maps"
)

// mergeBase is what a merge of a fork compares both sides with: the fork as it
// was at the last merge that stands.
type mergeBase struct {
	facts facts
	// same tells the parent's identity of what the fork made and a merge
	// brought over.
	same map[int]int
}

// outcome is what must come of a merge.
type outcome int

const (
	allowed  outcome = iota
	conflict         // it is refused
	either           // the reference doesn't know: both sides changed one area
)

// merging is a three-way merge by the reference's own rule, which goes by
// paths: what only one side changed counts, and of a text that both changed
// each line and the mode count for themselves.
type merging struct {
	result  facts
	outcome outcome
	why     string
	same    map[int]int
	taken   []string // areas and made directories that come from the fork
	s       *space   // the fork
}

// mergeRule merges a fork into its parent.
func (s *space) mergeRule() *merging {
	base := &mergeBase{facts: s.born, same: map[int]int{}}
	if b := s.parent.now.merged[s]; b != nil {
		base = b
	}
	m := &merging{result: s.parent.now.clone(), same: maps.Clone(base.same), s: s}
	b, o, t := base.facts, s.parent.now, s.now
	for _, name := range keys(b.text, o.text, t.text) {
		m.text(name, at(b.text, name, m.same), at(o.text, name, nil), at(t.text, name, m.same))
	}
	for _, name := range keys(b.made, o.made, t.made) {
		m.dir("execs/"+name, name, m.result.made, m.known(b.made[name]), o.made[name], m.known(t.made[name]), conflict)
	}
	for _, name := range keys(b.areas, o.areas, t.areas) {
		m.dir("ops/"+name, name, m.result.areas, m.known(b.areas[name]), o.areas[name], m.known(t.areas[name]), either)
	}
	m.result.merged[s] = &mergeBase{t.clone(), m.same}
	return m
}

// known returns the parent's identity for one of the fork's.
func (m *merging) known(id int) int { return translated(m.same, id) }

func translated(same map[int]int, id int) int {
	if y, ok := same[id]; ok {
		return y
	}
	return id
}

// brought returns the identity that something of the fork's has in the parent
// from now on.
func (m *merging) brought(id int) int {
	if id <= m.s.bornAt {
		return id
	}
	for _, y := range m.same {
		if y == id {
			return id
		}
	}
	n := m.s.next()
	m.same[id] = n
	return n
}

// at returns a file of one side, nil if it has none.
func at(side map[string]text, name string, same map[int]int) *text {
	t, ok := side[name]
	if !ok {
		return nil
	}
	t.id = translated(same, t.id)
	return &t
}

func (m *merging) refuse(o outcome, why string) {
	if m.outcome != conflict {
		m.outcome = o
	}
	m.why += why + "; "
}

// dir merges a directory that is taken as a whole.
func (m *merging) dir(path, name string, result map[string]int, b, o, t int, both outcome) {
	switch {
	case t == b || o == t:
	case o == b && t == 0:
		delete(result, name)
		m.taken = append(m.taken, path)
	case o == b:
		result[name] = m.brought(t)
		m.taken = append(m.taken, path)
	case o != 0 && t != 0:
		m.refuse(either, path+" differs in both")
	default:
		m.refuse(both, path+" is gone on one side and changed on the other")
	}
}

// text merges one file.
func (m *merging) text(name string, b, o, t *text) {
	switch {
	case t == nil && (b == nil || o == nil) || same(b, t):
	case t == nil && same(o, b):
		delete(m.result.text, name)
	case t == nil || o == nil && b != nil:
		m.refuse(conflict, name+" is gone on one side and changed on the other")
	case o == nil || same(o, b):
		n := *t
		n.id = m.brought(t.id)
		m.result.text[name] = n
	case b == nil && o.alike(*t):
		m.same[t.id] = o.id
	case b == nil:
		m.refuse(conflict, name+" was made in both")
	default:
		m.lines(name, *b, *o, *t)
	}
}

func same(a, b *text) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// lines merges a file that both sides changed.
func (m *merging) lines(name string, b, o, t text) {
	n, ok := threeWay(b, o, t)
	if !ok {
		m.refuse(conflict, fmt.Sprint(name, " was changed in both: ", b, o, t))
		return
	}
	m.result.text[name] = n
}

// threeWay merges two changes of a file.
func threeWay(b, o, t text) (text, bool) {
	ok := true
	n := o
	for i := range n.lines {
		n.lines[i] = pick3(b.lines[i], o.lines[i], t.lines[i], &ok)
	}
	n.mode = pick3(b.mode, o.mode, t.mode, &ok)
	return n, ok
}

// pick3 merges a value.
func pick3[V comparable](b, o, t V, ok *bool) V {
	switch {
	case t == b || o == t:
		return o
	case o == b:
		return t
	}
	*ok = false
	return o
}
