package workspace

import (
	"path"
	"strings"

	"github.com/winkfs/winkfs/fs/tree"
)

// trimPath brings a workspace-relative path into the form of the tree: no
// slash at either end, "" for the root.
func trimPath(p string) string { return strings.Trim(path.Clean("/"+p), "/") }

// under reports whether p is dir or lies below it; everything lies below "".
func under(p, dir string) bool {
	return dir == "" || p == dir || strings.HasPrefix(p, dir) && p[len(dir)] == '/'
}

// pathSet is what a person named; none means everything.
type pathSet []string

func newPathSet(paths []string) pathSet {
	var s pathSet
	for _, p := range paths {
		s = append(s, trimPath(p))
	}
	return s
}

func (s pathSet) has(p string) bool {
	if len(s) == 0 {
		return true
	}
	for _, dir := range s {
		if under(p, dir) {
			return true
		}
	}
	return false
}

// only returns the changes of which one side lies in the set.
func (s pathSet) only(changed []tree.Changed) []tree.Changed {
	if len(s) == 0 {
		return changed
	}
	var out []tree.Changed
	for _, c := range changed {
		if c.Old != nil && s.has(c.Old.Path) || c.New != nil && s.has(c.New.Path) {
			out = append(out, c)
		}
	}
	return out
}
