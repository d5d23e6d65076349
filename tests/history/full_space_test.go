package history

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/winkfs/winkfs/tests/harness"
	"github.com/winkfs/winkfs/tests/model"
)

// space is a workspace and its reference.
type space struct {
	*full
	w      *harness.Workspace
	parent *space // nil for the first
	gone   bool
	ref    string // the reference's directory
	now    facts
	owned  []string        // areas that no other workspace works in
	merges map[string]bool // directories below execs/ that a merge took away or brought
	points map[string]*fullCopy
	execs  uint64 // commands so far
	// born is what it began with, and bornAt the highest identity then.
	born   facts
	bornAt int
}

// fullCopy is a copy of the reference at a point.
type fullCopy struct {
	dir  string
	now  facts
	tree harness.Tree // as the mount showed it, with times
}

// copyOf makes a full copy of the reference.
func (s *space) copyOf() *fullCopy {
	s.Helper()
	p := &fullCopy{filepath.Join(s.e.Dir, "copy"+strconv.Itoa(s.next())), s.now.clone(), harness.MustDump(s.T, s.w.Mount)}
	harness.CopyTree(s.T, s.ref, p.dir)
	return p
}

// become makes the reference what a copy is.
func (s *space) become(p *fullCopy) {
	s.Helper()
	if err := harness.RemoveTree(s.ref); err != nil {
		s.Fatal(err)
	}
	harness.CopyTree(s.T, p.dir, s.ref)
	s.now = p.now.clone()
}

// compare compares the whole workspace with its reference.
func (s *space) compare(what string) { s.Helper(); s.compareIn(what, "") }

// compareIn compares a directory, and returns how many names are below it.
func (s *space) compareIn(what, dir string) int {
	s.Helper()
	got, want := harness.MustDump(s.T, s.w.Mount+dir), harness.MustDump(s.T, s.ref+dir)
	s.same(s.w.Name+dir+" after "+what, got, want, likeReference)
	return len(want)
}

// exactly compares the workspace with what its mount showed at some time.
func (s *space) exactly(what string, want harness.Tree) {
	s.Helper()
	s.same(s.w.Name+" after "+what, harness.MustDump(s.T, s.w.Mount), want, recorded)
}

func (s *space) same(what string, got, want harness.Tree, omit harness.Omit) {
	s.Helper()
	if diffs := harness.Differences(got, want, omit); len(diffs) > 0 {
		s.Errorf("%s the tree differs:\n\t%s", what, strings.Join(diffs, "\n\t"))
	}
}

// focus is the area that operations are done in for a while, with files open.
type focus struct {
	s                  *space
	area               string
	subject, reference *model.World
	left, done         int // operations
}

// close lets go of both directories.
func (o *focus) close() {
	if o.s == nil {
		return
	}
	o.subject.Close()
	o.reference.Close()
	*o = focus{}
}

func (f *full) look() {
	f.Helper()
	f.focus.close()
	s := f.someSpace()
	area := s.someArea()
	subject, err := model.NewWorld(s.w.Mount + "/ops/" + area)
	if err != nil {
		f.Fatal(err)
	}
	reference, err := model.NewWorld(s.ref + "/ops/" + area)
	if err != nil {
		f.Fatal(err)
	}
	f.focus = focus{s: s, area: area, subject: subject, reference: reference, left: 1 + f.r.IntN(40)}
}

// someArea returns an area to work in: one of the workspace's own, now and then
// one that is nobody's, or a new one.
func (s *space) someArea() string {
	s.Helper()
	own := slices.DeleteFunc(keys(s.now.areas), func(a string) bool { return s.owner(a) != s })
	free := slices.DeleteFunc(keys(s.now.areas), func(a string) bool { return s.owner(a) != nil })
	switch n := s.r.IntN(12); {
	case n == 0 && len(free) > 0:
		area := free[s.r.IntN(len(free))]
		s.owned = append(s.owned, area)
		return area
	case n == 1 && len(own) < 3 || len(own) == 0:
		return s.newArea()
	}
	return own[s.r.IntN(len(own))]
}

// operation does a random operation in one area of a workspace.
func (f *full) operation() {
	f.Helper()
	o := &f.focus
	if o.left--; o.left < 0 {
		f.look()
	}
	dir := "/ops/" + o.area
	if o.done%10 == 0 {
		f.gen.Learn(o.s.ref + dir)
	}
	o.done++
	op := f.gen.Next()
	got, _ := o.subject.Do(op)
	if want, _ := o.reference.Do(op); got != want {
		f.Errorf("%s in %s of %s: got %q, want %q", op, o.area, o.s.w.Name, got, want)
	}
	o.s.now.areas[o.area] = f.next()
	if o.s.compareIn(op.String(), dir) > 25 {
		f.prune(dir)
	}
}

// prune removes something at the top of an area in both.
func (f *full) prune(dir string) {
	f.Helper()
	s := f.focus.s
	names, err := os.ReadDir(s.ref + dir)
	if err != nil {
		f.Fatal(err)
	}
	name := names[f.r.IntN(len(names))].Name()
	for _, top := range []string{s.w.Mount, s.ref} {
		if err := harness.RemoveTree(top + dir + "/" + name); err != nil {
			f.Fatal(err)
		}
	}
	s.compareIn("the removal of "+name, dir)
}

// facts is what the reference knows of a workspace beside its directory. All
// numbers are identities: two things with the same one are the same files.
type facts struct {
	text   map[string]text       // files below text/
	made   map[string]int        // directories below execs/, each made by one command
	areas  map[string]int        // directories below ops/, by what they hold
	live   map[uint64]command    // commands that stand
	merged map[*space]*mergeBase // forks of which a merge stands
}

func newFacts() facts {
	return facts{map[string]text{}, map[string]int{}, map[string]int{}, map[uint64]command{}, map[*space]*mergeBase{}}
}

func (f facts) clone() facts {
	return facts{maps.Clone(f.text), maps.Clone(f.made), maps.Clone(f.areas), maps.Clone(f.live), maps.Clone(f.merged)}
}
