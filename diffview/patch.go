package diffview

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
)

// Patch writes the changes as a patch that `git apply` takes: deletions first,
// creations last, each by path. Directories and special files, which git does
// not hold, are left out; Notes lists them.
func Patch(w io.Writer, changes []Change, o Options) error {
	p := &printer{w: bufio.NewWriterSize(w, 64<<10), o: o}
	for _, c := range sections(changes) {
		if err := p.section(&c); err != nil {
			return err
		}
	}
	if err := p.w.Flush(); err != nil {
		return fmt.Errorf("write patch: %w", err)
	}
	return nil
}

// sections returns one change for each section of the patch. A change of type
// becomes a deletion and a creation, as does a rename that changes the type or
// is of a symbolic link: a pure rename carries no mode, so `git apply` would not
// know that the link makes way, and refuse a path below it.
func sections(changes []Change) []Change {
	var out []Change
	for _, c := range changes {
		switch {
		case c.Old != nil && c.New != nil && kind(c.Old) == kind(c.New) && !(isSymlink(c.Old) && c.Old.Path != c.New.Path):
			if tracked(c.New) {
				out = append(out, c)
			}
		default:
			if c.Old != nil && tracked(c.Old) {
				out = append(out, Change{Old: c.Old})
			}
			if c.New != nil && tracked(c.New) {
				out = append(out, Change{New: c.New})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Change) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(a.Path(), b.Path()))
	})
	return out
}

// rank orders sections: git looks up what a path holds by the sections before,
// and -R reads them backwards.
func rank(c *Change) int {
	switch {
	case c.New == nil:
		return 0
	case c.Old == nil:
		return 2
	}
	return 1
}

// section prints one section, or nothing when git would see no change.
func (p *printer) section(c *Change) error {
	d, err := compare(c)
	if err != nil {
		return err
	}
	same := d.old.oid == d.new.oid
	renamed := c.Status() == Renamed
	if c.Old != nil && c.New != nil && same && !renamed && gitMode(c.Old) == gitMode(c.New) {
		return nil
	}
	p.header(d, same, renamed)
	if same || !d.binary && len(d.hunks) == 0 {
		return p.err
	}
	if d.binary {
		return p.binarySection(d)
	}
	p.head("--- " + side("a/", c.Old))
	p.head("+++ " + side("b/", c.New))
	for i := range d.hunks {
		p.hunk(d, &d.hunks[i])
	}
	return p.err
}

// header prints the lines up to the contents.
func (p *printer) header(d *delta, same, renamed bool) {
	c := d.change
	oldPath, newPath := c.Path(), c.Path()
	if renamed {
		oldPath = c.Old.Path
	}
	p.head("diff --git " + Quote("a/"+oldPath) + " " + Quote("b/"+newPath))
	mode := ""
	switch {
	case c.Old == nil:
		p.head("new file mode " + gitMode(c.New))
	case c.New == nil:
		p.head("deleted file mode " + gitMode(c.Old))
	case gitMode(c.Old) != gitMode(c.New):
		p.head("old mode " + gitMode(c.Old))
		p.head("new mode " + gitMode(c.New))
	default:
		mode = " " + gitMode(c.New)
	}
	if renamed {
		p.head(fmt.Sprintf("similarity index %d%%", similarity(d)))
		p.head("rename from " + Quote(oldPath))
		p.head("rename to " + Quote(newPath))
	}
	if !same {
		p.head("index " + p.oids(d) + mode)
	}
}

// oids returns the two ids of the index line, whole where the contents are not
// lines, since git finds or checks binary contents by them.
func (p *printer) oids(d *delta) string {
	if d.binary {
		return d.old.oid.String() + ".." + d.new.oid.String()
	}
	return d.old.oid.short() + ".." + d.new.oid.short()
}

func (p *printer) binarySection(d *delta) error {
	if p.o.Binary && !p.o.escapes() {
		return p.writeBinary(d)
	}
	names := [2]string{"/dev/null", "/dev/null"}
	if c := d.change; c.Old != nil {
		names[0] = Quote("a/" + c.Old.Path)
	}
	if c := d.change; c.New != nil {
		names[1] = Quote("b/" + c.New.Path)
	}
	p.line("Binary files " + names[0] + " and " + names[1] + " differ")
	return p.err
}

func side(prefix string, f *File) string {
	if f == nil {
		return "/dev/null"
	}
	return label(prefix, f.Path)
}
