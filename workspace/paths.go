package workspace

import (
	"encoding/json"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/winkfs/winkfs/fs/tree"
)

// trimPath brings a workspace-relative path into the form of the tree: no
// slash at either end, "" for the root.
func trimPath(p string) string { return strings.Trim(path.Clean("/"+p), "/") }

// under reports whether p is dir or lies below it; everything lies below "".
func under(p, dir string) bool {
	return dir == "" || p == dir || strings.HasPrefix(p, dir) && p[len(dir)] == '/'
}

// PathList is a list of workspace-relative paths in a request. Its JSON carries
// paths that are not UTF-8, which a JSON string can't, as {"bytes": base64}.
type PathList []string

// rawPath is the form of a path that is not UTF-8.
type rawPath struct {
	Bytes []byte `json:"bytes"`
}

// MarshalJSON writes the list.
func (l PathList) MarshalJSON() ([]byte, error) {
	out := make([]any, len(l))
	for i, p := range l {
		if out[i] = p; !utf8.ValidString(p) {
			out[i] = rawPath{[]byte(p)}
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (l *PathList) UnmarshalJSON(b []byte) error {
	var in []json.RawMessage
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*l = nil
	for _, m := range in {
		var text string
		var raw rawPath
		if err := json.Unmarshal(m, &text); err != nil {
			if err := json.Unmarshal(m, &raw); err != nil {
				return err
			}
			text = string(raw.Bytes)
		}
		*l = append(*l, text)
	}
	return nil
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
