package diffview

import (
	"sort"
)

// edit says that the lines [A0, A1) of the old side become the lines [B0, B1)
// of the new one. Lines between edits are equal.
type edit struct{ A0, A1, B0, B1 int }

// Bounds of matching, in steps of comparing one line with another.
const (
	matchBudget = 1 << 30 // for one file: about two seconds at worst
	smallBlock  = 2048    // lines of both sides together that go-diff may get at once
	maxEdits    = 512     // edits that the greedy search may find in a large block
)

// matcher finds the edits between two sequences of line numbers.
type matcher struct {
	a, b   []int32
	budget int64
	out    []edit
}

// diffLines returns the edits that turn a into b, ascending and not touching.
func diffLines(a, b lines) []edit {
	if a.len() > maxLines || b.len() > maxLines {
		return wholeEdit(a, b)
	}
	na, nb := number(a, b)
	m := &matcher{a: na, b: nb, budget: matchBudget}
	m.block(0, len(na), 0, len(nb))
	return joinEdits(m.out)
}

// wholeEdit replaces everything between the first and the last difference.
func wholeEdit(a, b lines) []edit {
	n, k := min(a.len(), b.len()), 0
	for k < n && string(a.at(k)) == string(b.at(k)) {
		k++
	}
	e := edit{k, a.len(), k, b.len()}
	for e.A1 > k && e.B1 > k && string(a.at(e.A1-1)) == string(b.at(e.B1-1)) {
		e.A1--
		e.B1--
	}
	if e.A0 == e.A1 && e.B0 == e.B1 {
		return nil
	}
	return []edit{e}
}

// block matches one block, by the cheapest way that its size allows.
func (m *matcher) block(a0, a1, b0, b1 int) {
	for a0 < a1 && b0 < b1 && m.a[a0] == m.b[b0] {
		a0, b0 = a0+1, b0+1
	}
	for a0 < a1 && b0 < b1 && m.a[a1-1] == m.b[b1-1] {
		a1, b1 = a1-1, b1-1
	}
	e := edit{a0, a1, b0, b1}
	n := int64(a1 - a0 + b1 - b0)
	switch {
	case a0 == a1 || b0 == b1:
		m.emit(e)
	case n <= smallBlock && m.spend(n*n):
		m.small(e)
	case m.spend(16*n) && m.split(e):
	case m.greedy(e):
	default:
		m.emit(e)
	}
}

// spend takes n steps from the budget and reports whether it had them.
func (m *matcher) spend(n int64) bool {
	if m.budget < n {
		return false
	}
	m.budget -= n
	return true
}

func (m *matcher) emit(e edit) {
	if e.A0 < e.A1 || e.B0 < e.B1 {
		m.out = append(m.out, e)
	}
}

// split cuts the block at lines that occur once on each side, in the longest
// order that both sides share (patience diff), and matches what lies between.
func (m *matcher) split(e edit) bool {
	anchors := increasing(m.unique(e))
	if len(anchors) == 0 {
		return false
	}
	a, b := e.A0, e.B0
	for _, p := range anchors {
		m.block(a, p.a, b, p.b)
		a, b = p.a+1, p.b+1
	}
	m.block(a, e.A1, b, e.B1)
	return true
}

type pair struct{ a, b int }

// unique returns the positions of lines that occur once on each side, ordered
// by a.
func (m *matcher) unique(e edit) []pair {
	type count struct{ na, nb, b int }
	seen := make(map[int32]*count)
	for i := e.A0; i < e.A1; i++ {
		c := seen[m.a[i]]
		if c == nil {
			c = &count{}
			seen[m.a[i]] = c
		}
		c.na++
	}
	for i := e.B0; i < e.B1; i++ {
		if c := seen[m.b[i]]; c != nil {
			c.nb++
			c.b = i
		}
	}
	var out []pair
	for i := e.A0; i < e.A1; i++ {
		if c := seen[m.a[i]]; c.na == 1 && c.nb == 1 {
			out = append(out, pair{i, c.b})
		}
	}
	return out
}

// increasing returns the longest run of pairs, which are ordered by a, that is
// ordered by b too.
func increasing(ps []pair) []pair {
	var tails []int // tails[k] is the last pair of the best run of length k+1
	prev := make([]int, len(ps))
	for i, p := range ps {
		k := sort.Search(len(tails), func(k int) bool { return ps[tails[k]].b >= p.b })
		prev[i] = -1
		if k > 0 {
			prev[i] = tails[k-1]
		}
		if k == len(tails) {
			tails = append(tails, i)
		} else {
			tails[k] = i
		}
	}
	out := make([]pair, len(tails))
	if len(tails) == 0 {
		return nil
	}
	for k, i := len(tails)-1, tails[len(tails)-1]; k >= 0; k, i = k-1, prev[i] {
		out[k] = ps[i]
	}
	return out
}

// joinEdits joins edits that touch on both sides.
func joinEdits(es []edit) []edit {
	var out []edit
	for _, e := range es {
		if n := len(out) - 1; n >= 0 && out[n].A1 == e.A0 && out[n].B1 == e.B0 {
			out[n].A1, out[n].B1 = e.A1, e.B1
			continue
		}
		out = append(out, e)
	}
	return out
}
