package lower

import (
	"slices"
	"testing"
)

func TestFDList(t *testing.T) {
	var l fdList
	fds := make([]*fd, 4)
	for i := range fds {
		fds[i] = &fd{n: i}
	}
	want := func(order ...int) {
		t.Helper()
		var got, back []int
		for f := l.first; f != nil; f = f.after {
			got = append(got, f.n)
		}
		for f := l.last; f != nil; f = f.before {
			back = append(back, f.n)
		}
		slices.Reverse(back)
		if !slices.Equal(got, order) || !slices.Equal(back, order) {
			t.Errorf("got %v, backwards %v, want %v", got, back, order)
		}
	}
	want()
	for _, f := range fds {
		l.push(f)
	}
	want(0, 1, 2, 3)
	for _, i := range []int{1, 0, 3} { // from within, the first, the last
		if !l.remove(fds[i]) || l.remove(fds[i]) {
			t.Errorf("descriptor %d is not removed exactly once", i)
		}
	}
	want(2)
	l.push(fds[1])
	want(2, 1)
	l.remove(fds[2])
	l.remove(fds[1])
	want()
}
