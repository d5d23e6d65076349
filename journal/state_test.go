package journal

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// A clone stays as it is whatever is done to the state that it was made of, to
// other clones of that, and to clones of its own.
func TestClonesAreIndependent(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) { checkClones(t, seed) })
	}
}

func checkClones(t *testing.T, seed uint64) {
	h, r := newHistory(seed, nil), rand.New(rand.NewPCG(seed, 2))
	var recs []*Record
	clones := []*State{h.st.Clone()}
	for range 600 {
		recs = append(recs, h.next(t))
		switch r.IntN(10) {
		case 0:
			clones = append(clones, h.st.Clone())
		case 1: // one goes on, and so does a clone of it
			c := clones[r.IntN(len(clones))]
			clones = append(clones, c.Clone())
			forth(c, recs, 1+r.IntN(20))
		case 2: // one goes back
			c := clones[r.IntN(len(clones))]
			back(c, recs, c.Seq-min(c.Seq, Seq(r.IntN(20))))
		}
	}
	for i, c := range append(clones, h.st) {
		want := NewState()
		forth(want, recs, int(c.Seq))
		sameFiles(t, fmt.Sprintf("clone %d at record %d", i, c.Seq), c, want)
	}
}

// forth applies the next n records.
func forth(s *State, recs []*Record, n int) {
	for range n {
		if int(s.Seq) == len(recs) {
			return
		}
		s.Apply(recs[s.Seq])
	}
}

// back returns the state to a record.
func back(s *State, recs []*Record, to Seq) {
	for _, c := range Invert(recs[to:s.Seq]) {
		s.ApplyChange(&c)
	}
	s.Seq = to
}
