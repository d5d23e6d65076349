package diffview

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
)

// TestEachMatcher runs every way of matching a block on the same small random
// sequences, whatever size they are meant for. Few distinct numbers make ties
// and repeats common.
func TestEachMatcher(t *testing.T) {
	ways := map[string]func(*matcher, edit) bool{
		"small":  func(m *matcher, e edit) bool { m.small(e); return true },
		"greedy": (*matcher).greedy,
		"split":  (*matcher).split,
		"block":  func(m *matcher, e edit) bool { m.block(e.A0, e.A1, e.B0, e.B1); return true },
	}
	r := rand.New(rand.NewSource(1))
	used := make(map[string]int)
	for range 4000 {
		a, b := numbers(r), numbers(r)
		least := -1
		for name, way := range ways {
			m := &matcher{a: a, b: b, budget: matchBudget}
			if !way(m, edit{0, len(a), 0, len(b)}) {
				continue
			}
			used[name]++
			got, n, err := rebuild(a, b, joinEdits(m.out))
			if err != nil || !slices.Equal(got, b) {
				t.Fatalf("%s: %v to %v by %v gives %v, %v", name, a, b, m.out, got, err)
			}
			if name == "greedy" {
				least = n
			}
		}
		if want := len(a) + len(b) - 2*longestCommon(a, b); least != want {
			t.Fatalf("greedy: %v to %v takes %d edits, want %d", a, b, least, want)
		}
	}
	for name := range ways {
		if used[name] < 1000 {
			t.Errorf("%s matched only %d times", name, used[name])
		}
	}
}

func numbers(r *rand.Rand) []int32 {
	out := make([]int32, r.Intn(14))
	for i := range out {
		out[i] = int32(r.Intn(2 + r.Intn(9)))
	}
	return out
}

// rebuild applies the edits and counts the lines that they touch. Lines between
// edits have to be equal.
func rebuild(a, b []int32, es []edit) (out []int32, n int, err error) {
	x, y := 0, 0
	for _, e := range append(slices.Clone(es), edit{len(a), len(a), len(b), len(b)}) {
		if e.A0 < x || e.B0 < y || !slices.Equal(a[x:e.A0], b[y:e.B0]) {
			return nil, 0, fmt.Errorf("what lies before %v is not equal", e)
		}
		out = append(append(out, a[x:e.A0]...), b[e.B0:e.B1]...)
		n += e.A1 - e.A0 + e.B1 - e.B0
		x, y = e.A1, e.B1
	}
	return out, n, nil
}

// longestCommon is the length of the longest common subsequence, by the table.
func longestCommon(a, b []int32) int {
	row := make([]int, len(b)+1)
	for i := range a {
		diag := 0
		for j := range b {
			up := row[j+1]
			if a[i] == b[j] {
				row[j+1] = diag + 1
			} else {
				row[j+1] = max(up, row[j])
			}
			diag = up
		}
	}
	return row[len(b)]
}
