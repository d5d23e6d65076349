package history

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/winkfs/winkfs/tests/harness"
)

// clone makes a fork of the workspace as it is or was at a point.
func (s *space) clone() {
	s.Helper()
	if len(s.spaces) >= maxSpaces {
		s.someSpace().remove()
		return
	}
	number := s.next()
	k := &space{
		full: s.full, parent: s, ref: filepath.Join(s.e.Dir, fmt.Sprint("reference", number)),
		points: maps.Clone(s.points), execs: s.execs, bornAt: number, now: s.now.clone(),
		merges: maps.Clone(s.merges),
	}
	name, from := fmt.Sprint("fork", number), s.ref
	flags := []string{"clone", "-w", s.w.Name, "--with-changes"}
	point, p, ok := s.somePoint()
	atPoint := ok && s.r.IntN(3) == 0
	if atPoint {
		flags, k.now, from = append(flags, "--at", point), p.now.clone(), p.dir
	}
	r := s.w.Run(append(flags, name)...)
	if atPoint && s.dropped(point, r) {
		return
	}
	if r.Code != 0 {
		s.Fatalf("%v %s: exit status %d\n%s", flags, name, r.Code, r.Stderr)
	}
	k.born = k.now.clone()
	harness.CopyTree(s.T, from, k.ref)
	k.w = s.e.Prepare(name, s.source)
	k.w.Remount()
	s.lend(k)
	s.spaces = append(s.spaces, k)
	k.compare("its birth")
	s.compare("the birth of " + name)
	if atPoint {
		k.exactly("its birth", p.tree)
	}
}

// lend gives a fork some of the areas that only the parent worked in.
func (s *space) lend(k *space) {
	s.owned = slices.DeleteFunc(s.owned, func(area string) bool {
		if s.now.areas[area] == 0 || k.now.areas[area] != s.now.areas[area] || s.r.IntN(2) == 0 {
			return false
		}
		k.owned = append(k.owned, area)
		return true
	})
}

// mergeSome merges some fork into its parent.
func (s *space) mergeSome() {
	s.Helper()
	if len(s.spaces) == 1 {
		return
	}
	s.spaces[1+s.r.IntN(len(s.spaces)-1)].merge()
}

// merge merges a fork into its parent. Either may be unmounted.
func (s *space) merge() {
	s.Helper()
	p := s.parent
	before, own := harness.MustDump(s.T, s.w.Mount), harness.Tree(nil)
	if !p.gone {
		own = harness.MustDump(s.T, p.w.Mount)
	}
	mount := s.unmountSome()
	m := s.mergeRule()
	r := s.w.Run("merge", "--json", s.w.Name)
	mount()
	s.exactly("its merge", before)
	switch {
	case p.gone:
		if r.Code != 3 || !strings.Contains(r.Stderr, "gone") {
			s.Errorf("merge of an orphan: exit status %d\n%s", r.Code, r.Stderr)
		}
	case m.outcome == conflict && r.Code != 5, m.outcome == allowed && r.Code != 0, r.Code != 0 && r.Code != 5:
		s.Errorf("merge of %s into %s: exit status %d; %s\n%s%s", s.w.Name, p.w.Name, r.Code, m.why, r.Stdout, r.Stderr)
	case r.Code == 5:
		s.counts["merges refused"]++
		p.exactly("a refused merge", own)
		if s.r.IntN(2) == 0 {
			s.giveWay()
		}
	default:
		p.merged(m, own, r.Stdout)
	}
}

// giveWay makes the fork's texts those of its parent.
func (s *space) giveWay() {
	s.Helper()
	for _, name := range keys(s.now.text, s.parent.now.text) {
		ours, there := s.now.text[name]
		want, wanted := s.parent.now.text[name]
		if there && !wanted {
			s.removeText(name)
		}
		if !wanted || there && ours.alike(want) {
			continue
		}
		want.id = ours.id
		if !there {
			want.id = s.next()
		}
		for _, dir := range []string{s.w.Mount, s.ref} {
			want.write(s.T, dir, name, "new")
		}
		s.now.text[name] = want
	}
	s.compare("giving way")
}

// merged takes in that a merge was made. Now and then it is undone, and so is
// one whose result the reference doesn't know.
func (s *space) merged(m *merging, own harness.Tree, document string) {
	s.Helper()
	var d struct {
		Seq uint64 `json:"seq"`
	}
	if err := json.Unmarshal([]byte(document), &d); err != nil {
		s.Fatalf("merge: %v in\n%s", err, document)
	}
	unknown := m.outcome == either
	if unknown {
		s.counts["merges beyond the reference"]++
	} else {
		s.counts["merges made"]++
	}
	if d.Seq != 0 && (unknown || s.r.IntN(4) == 0) {
		after := harness.MustDump(s.T, s.w.Mount)
		s.w.MustIn("undo", fmt.Sprint(d.Seq))
		s.exactly("the undo of a merge", own)
		if unknown || s.r.IntN(2) == 0 {
			return
		}
		s.w.MustIn("redo")
		s.exactly("the redo of a merge", after)
	}
	if unknown {
		return
	}
	if d.Seq == 0 {
		delete(m.result.merged, m.s) // no record says that it was merged
		if b := s.now.merged[m.s]; b != nil {
			m.result.merged[m.s] = b
		}
	}
	s.take(m)
	s.compare("the merge of " + m.s.w.Name)
	s.giveBack(m)
}

// take makes the reference what the rule says.
func (s *space) take(m *merging) {
	s.Helper()
	for _, path := range m.taken {
		if dir, name := filepath.Split(path); dir == "execs/" {
			s.merges[name] = true
		}
		if err := harness.RemoveTree(s.ref + "/" + path); err != nil {
			s.Fatal(err)
		}
		if _, err := os.Lstat(m.s.ref + "/" + path); err == nil {
			harness.CopyTree(s.T, m.s.ref+"/"+path, s.ref+"/"+path)
		}
	}
	for _, name := range keys(s.now.text, m.result.text) {
		t, there := m.result.text[name]
		if there {
			t.write(s.T, s.ref, name, "new")
		} else if err := os.Remove(s.ref + "/text/" + name); err != nil {
			s.Fatal(err)
		}
	}
	s.now = m.result
}

// giveBack lets the parent work in areas of the fork's that are equal in both.
func (s *space) giveBack(m *merging) {
	m.s.owned = slices.DeleteFunc(m.s.owned, func(area string) bool {
		if id := m.s.now.areas[area]; id == 0 || m.known(id) != s.now.areas[area] || s.r.IntN(2) == 0 {
			return false
		}
		s.owned = append(s.owned, area)
		return true
	})
}

// unmountSome unmounts a fork, its parent, both or none, and returns what
// mounts them again.
func (s *space) unmountSome() (mount func()) {
	s.Helper()
	var down []*space
	for _, x := range []*space{s, s.parent} {
		if !x.gone && s.r.IntN(4) == 0 {
			x.w.Umount()
			down = append(down, x)
		}
	}
	return func() {
		s.Helper()
		for _, x := range down {
			x.w.Remount()
		}
	}
}

// remove removes a fork, which may have forks of its own.
func (s *space) remove() {
	s.Helper()
	if s.parent == nil {
		return
	}
	s.w.Umount()
	s.w.Must("rm", "--yes", s.w.Name)
	if err := harness.RemoveTree(s.ref); err != nil {
		s.Fatal(err)
	}
	s.gone = true
	f := s.full
	f.spaces = slices.DeleteFunc(f.spaces, func(x *space) bool { return x == s })
	for _, area := range s.owned {
		if p := s.parent; !p.gone && p.now.areas[area] != 0 {
			p.owned = append(p.owned, area)
		}
	}
	for _, x := range f.spaces {
		delete(x.now.merged, s)
		x.compare("the removal of " + s.w.Name)
	}
}
