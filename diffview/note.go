package diffview

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Note names something that a patch can't carry.
type Note struct {
	Path string `json:"path"`
	Kind string `json:"kind"` // mode, mtime, owner, xattrs, directory, special, binary, path
	Text string `json:"text"`
}

// Notes lists what Patch with these options loses, by path. An mtime counts
// only where nothing else of the file changes, since applying any other change
// sets it anyway.
func Notes(changes []Change, o Options) ([]Note, error) {
	var out []Note
	for i := range changes {
		ns, err := noteChange(&changes[i], changes, o)
		if err != nil {
			return nil, err
		}
		out = append(out, ns...)
	}
	slices.SortStableFunc(out, func(a, b Note) int { return cmp.Compare(a.Path, b.Path) })
	return out, nil
}

func noteChange(c *Change, all []Change, o Options) ([]Note, error) {
	n := noter{c: c}
	for _, f := range []*File{c.Old, c.New} {
		if f != nil && inGitDir(f.Path) {
			n.add("path", "git refuses patches to files of a .git directory")
			break
		}
	}
	if c.New != nil {
		n.meta()
	}
	switch {
	case isDir(c.Old) || isDir(c.New):
		n.directory(all)
	case special(c.Old) || special(c.New):
		n.add("special", "git holds no "+typeName(c)+", the patch leaves it out")
	default:
		return n.out, n.content(o)
	}
	return n.out, nil
}

// noter collects the notes of one change.
type noter struct {
	c   *Change
	out []Note
}

func (n *noter) add(kind, text string) {
	n.out = append(n.out, Note{n.c.Path(), kind, text})
}

// meta notes attributes of the new side that git does not store.
func (n *noter) meta() {
	o, f := n.c.Old, n.c.New
	var old File
	if o != nil {
		old = *o
	}
	if !maps.Equal(old.Xattrs, f.Xattrs) {
		n.add("xattrs", "extended attributes: "+xattrNames(old.Xattrs, f.Xattrs))
	}
	if o != nil && (old.UID != f.UID || old.GID != f.GID) {
		n.add("owner", "the owner changes")
	}
	modeLost := isRegular(f) && !exact(f) && (o == nil || old.Mode != f.Mode)
	modeLost = modeLost || isRegular(f) && o != nil && old.Mode != f.Mode && gitMode(o) == gitMode(f)
	if modeLost {
		n.add("mode", "mode "+fullMode(f)+", of which a patch carries "+gitMode(f))
	}
}

func xattrNames(a, b map[string]string) string {
	var names []string
	for k, v := range b {
		if old, ok := a[k]; !ok || old != v {
			names = append(names, Quote(k))
		}
	}
	for k := range a {
		if _, ok := b[k]; !ok {
			names = append(names, Quote(k))
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// directory notes what happens to a directory itself. One that files of the
// patch lie in comes and goes with them.
func (n *noter) directory(all []Change) {
	o, f := n.c.Old, n.c.New
	switch {
	case isDir(o) && isDir(f):
		if o.Mode != f.Mode {
			n.add("mode", "the directory's mode becomes "+fullMode(f))
		}
	case isDir(f):
		if !holds(all, f.Path, func(c *Change) *File { return c.New }) {
			n.add("directory", "a new empty directory")
		}
	case isDir(o):
		if !holds(all, o.Path, func(c *Change) *File { return c.Old }) {
			n.add("directory", "an empty directory is deleted")
		}
	}
}

func holds(all []Change, dir string, side func(*Change) *File) bool {
	return slices.ContainsFunc(all, func(c Change) bool {
		f := side(&c)
		return f != nil && tracked(f) && under(f.Path, dir)
	})
}

// content notes binary contents that the patch names only, and a change of the
// mtime alone.
func (n *noter) content(o Options) error {
	c := n.c
	d, err := compare(c)
	if err != nil {
		return err
	}
	if d.binary && d.old.oid != d.new.oid && !o.Binary {
		n.add("binary", "binary or large contents need a binary patch")
	}
	if c.Status() == Modified && d.old.oid == d.new.oid && c.Old.Mtime != c.New.Mtime && c.New.Mtime != 0 {
		n.add("mtime", "the mtime becomes "+time.Unix(0, c.New.Mtime).UTC().Format(time.RFC3339Nano))
	}
	return nil
}

func special(f *File) bool { return f != nil && !tracked(f) && !isDir(f) }

func typeName(c *Change) string {
	f := c.New
	if !special(f) {
		f = c.Old
	}
	switch kind(f) {
	case unix.S_IFIFO:
		return "FIFO"
	case unix.S_IFSOCK:
		return "socket"
	}
	return "device"
}

func byPath(changes []Change) []Change {
	out := slices.Clone(changes)
	slices.SortStableFunc(out, func(a, b Change) int { return cmp.Compare(a.Path(), b.Path()) })
	return out
}
