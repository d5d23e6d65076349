package diffview

// greedy matches a block of any size that differs by at most maxEdits inserted
// and deleted lines (Myers 1986, the greedy form with its trace kept). It
// reports false, having emitted nothing, when there are more or the budget ends.
func (m *matcher) greedy(e edit) bool {
	trace, ok := m.search(e)
	if !ok {
		return false
	}
	var rev []edit
	x, y := e.A1, e.B1
	for d := len(trace) - 1; d > 0; d-- {
		k := (x - e.A0) - (y - e.B0)
		v := trace[d-1]
		down := k == -d || (k != d && at(v, d-1, k-1) < at(v, d-1, k+1))
		if down {
			px := e.A0 + at(v, d-1, k+1)
			py := px - e.A0 - (k + 1) + e.B0
			rev = append(rev, edit{px, px, py, py + 1})
			x, y = px, py
			continue
		}
		px := e.A0 + at(v, d-1, k-1)
		py := px - e.A0 - (k - 1) + e.B0
		rev = append(rev, edit{px, px + 1, py, py})
		x, y = px, py
	}
	for i := len(rev) - 1; i >= 0; i-- {
		m.emit(rev[i])
	}
	return true
}

// search returns for each number of edits d the furthest position reached on
// the diagonals -d, -d+2, ..., d, the last of which reaches the end.
func (m *matcher) search(e edit) ([][]int32, bool) {
	n, w := e.A1-e.A0, e.B1-e.B0
	var trace [][]int32
	for d := 0; d <= maxEdits; d++ {
		v := make([]int32, d+1)
		for i := range v {
			k := 2*i - d
			x := 0
			if d > 0 {
				x = m.step(trace[d-1], d-1, k)
			}
			from := x
			for x < n && x-k < w && x-k >= 0 && m.a[e.A0+x] == m.b[e.B0+x-k] {
				x++
			}
			if !m.spend(int64(x-from) + 1) {
				return nil, false
			}
			v[i] = int32(x)
			if x >= n && x-k >= w {
				return append(trace, v), x == n && x-k == w
			}
		}
		trace = append(trace, v)
	}
	return nil, false
}

// step returns how far diagonal k is reached by one more edit.
func (m *matcher) step(v []int32, d, k int) int {
	if k == -d-1 || (k != d+1 && at(v, d, k-1) < at(v, d, k+1)) {
		return at(v, d, k+1)
	}
	return at(v, d, k-1) + 1
}

// at returns the entry of diagonal k in the row of d edits.
func at(v []int32, d, k int) int { return int(v[(k+d)/2]) }
