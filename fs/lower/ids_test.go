package lower

import "testing"

func TestKnown(t *testing.T) {
	cases := []struct {
		name    string
		partial bool
		id      uint32
		want    uint32
	}{
		{"all ids mapped", false, overflowID, overflowID},
		{"mapped", true, 1000, 1000},
		{"not mapped", true, overflowID, NoID},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := &FS{partial: c.partial}
			if got := f.known(c.id); got != c.want {
				t.Errorf("known(%d) = %d, want %d", c.id, got, c.want)
			}
		})
	}
}
