package workspace

import (
	"slices"

	"github.com/winkfs/winkfs/apply"
	"github.com/winkfs/winkfs/fs/tree"
)

// unsure returns the changes that apply has to be asked about, to know whether
// any of all has drifted. Of most the comparison with the base has shown already
// that the host is as it was recorded: asking about each of 100,000 takes a
// second, comparing what is at hand a moment.
//
// If apply finds no conflict among these there is none among all. If it does,
// it must be asked about all: what it says of one may depend on others.
func (w *Workspace) unsure(now *tree.View, changed []tree.Changed) []tree.Changed {
	s := newSureness(w, now, changed)
	out := slices.DeleteFunc(slices.Clone(changed), s.sure)
	deletes := func(c tree.Changed) bool { return c.New == nil || c.Old != nil && c.Old.Path != c.New.Path }
	if slices.ContainsFunc(out, deletes) {
		return changed // whether a directory can go depends on all that is in it
	}
	return out
}

// sureness tells which changes can't have drifted.
type sureness struct {
	w      *Workspace
	now    *tree.View
	gone   map[hostPath][]apply.Fingerprint
	left   map[string]bool // paths that files were moved away from
	made   map[string]bool // directories where there was nothing
	looked map[string]bool // other directories of which apply is asked about a new file
}

func newSureness(w *Workspace, now *tree.View, changed []tree.Changed) *sureness {
	s := &sureness{w: w, now: now, left: map[string]bool{}, made: map[string]bool{}, looked: map[string]bool{}}
	s.gone = goneOrigins(s.now)
	for _, c := range changed {
		switch {
		case c.Old == nil && c.New.IsDir():
			s.made[c.New.Path] = true
		case c.Old != nil && c.New != nil && c.Old.Path != c.New.Path:
			s.left[c.Old.Path] = true
		}
	}
	return s
}

func (s *sureness) sure(c tree.Changed) bool {
	switch {
	case c.New != nil && c.New.IsDir():
		return false // apply makes of it what becomes of the files in it
	case c.Old == nil:
		return s.free(c.New)
	case c.New == nil:
		return s.asRecorded(c.Old)
	case c.Old.Path != c.New.Path || c.Old.ID() != c.New.ID() && s.w.origin(s.now, c.New).Exists:
		return false
	}
	return s.asRecorded(c.Old)
}

// free reports whether a new file's place on the host is free, as the base has
// shown, and was when the workspace took it. That the directory can be written to
// is found out by one file in it.
func (s *sureness) free(f *tree.Item) bool {
	if s.left[f.Path] || s.w.origin(s.now, f).Exists {
		return false
	}
	dir, _ := splitLast(f.Path)
	if s.made[dir] || s.looked[dir] {
		return true
	}
	s.looked[dir] = true
	return false
}

// asRecorded reports whether the host's file is the one that was recorded at
// its copy-up, and no other was recorded at the same place.
func (s *sureness) asRecorded(old *tree.Item) bool {
	up := s.now.Node(old.ID())
	if up == nil || up.Origin.Mode == 0 || !appliable(old.Stat.Attr.Mode) {
		return false
	}
	at, ok := s.w.locate(old.Path)
	if !ok || at != (hostPath{up.Origin.Source, up.Origin.Path}) {
		return false
	}
	has := recorded(up)
	same := func(f apply.Fingerprint) bool { return sameFingerprint(f, has) }
	return same(present(old)) && (len(s.gone[at]) == 0 || slices.ContainsFunc(s.gone[at], same))
}

func sameFingerprint(a, b apply.Fingerprint) bool {
	return a.Ino == b.Ino && a.Mode == b.Mode && a.Size == b.Size && a.Mtime == b.Mtime && a.Ctime == b.Ctime
}
