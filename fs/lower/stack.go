package lower

import (
	"errors"

	"golang.org/x/sys/unix"
)

// A stack is a list of sources that show in one place, the first on top. A name
// is looked up from the top down and the first hit counts; directories of the
// same path are merged as far down as there is nothing else of that name. The
// layers are only read: there are no whiteouts between them.
//
// Each layer is a source with a number of its own. A Dir stands for the layer
// that it lies in and for all that is merged under it there, so a path together
// with the number of the uppermost layer that has it finds the same files again.

// AddBelow takes a further layer by descriptor, which it owns from then on. It
// is shown under root and all layers that were added to it before. The same
// rules hold as for Add.
func (f *FS) AddBelow(root *Dir, dirfd int) (*Dir, error) {
	d, err := f.Add(dirfd)
	if err != nil {
		return nil, err
	}
	last := root
	for last.under != nil {
		last = last.under
	}
	last.under = d
	return d, nil
}

// beneath is the result of looking for what is merged under a directory.
type beneath struct{ dir *Dir } // nil: nothing

// next returns the directory merged directly under d, nil if there is none. It
// looks only once: that the host adds or removes whole directories in a layer
// shows after the directory was looked up anew (see Restack).
func (d *Dir) next() (*Dir, error) {
	if d.parent() == nil || d.root.under == nil {
		return d.under, nil
	}
	if b := d.below.Load(); b != nil {
		return b.dir, nil
	}
	dir, err := d.findNext()
	if err != nil {
		return nil, err
	}
	d.below.CompareAndSwap(nil, &beneath{dir})
	return dir, nil
}

// Restack takes over what was found merged under the same directory when it was
// looked up anew.
func (d *Dir) Restack(found *Dir) {
	if d != found && d.root.under != nil && d.parent() != nil {
		d.below.Store(found.below.Load())
	}
}

// findNext looks for d's name in what is merged under its parent. Anything but a
// directory ends the search, as it hides what lies under it.
func (d *Dir) findNext() (*Dir, error) {
	above := d.at.Load()
	p, err := above.parent.next()
	if p == nil || err != nil {
		return nil, err
	}
	at, st, err := p.Lookup(above.name)
	switch {
	case absent(err):
		return nil, nil
	case err != nil:
		return nil, err
	case st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Mounted:
		return nil, nil
	}
	return at.Child(above.name, st.Ino), nil
}

// Merged reports whether the directory shows entries of several layers. Its link
// count is then that of one of them.
func (d *Dir) Merged() bool {
	next, err := d.next()
	return next != nil || err != nil
}

// Lookup finds a name in the directory or in one merged under it, and returns
// which of them has it, with its attributes. It does not follow symbolic links.
func (d *Dir) Lookup(name string) (at *Dir, st Stat, err error) {
	for at = d; ; {
		st, err = at.Stat(name)
		if !absent(err) {
			return at, st, err
		}
		next, nerr := at.next()
		if nerr != nil {
			return at, st, nerr
		}
		if next == nil {
			return at, st, err
		}
		at = next
	}
}

// absent reports whether an error only says that there is no such name.
func absent(err error) bool { return err == unix.ENOENT || errors.Is(err, unix.ENOENT) }

// readBelow adds the entries of the directories merged under d.
func (d *Dir) readBelow(out []Dirent) ([]Dirent, error) {
	next, err := d.next()
	if next == nil || err != nil {
		return out, err
	}
	below, err := next.ReadDir()
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(out))
	for i := range out {
		seen[out[i].Name] = true
	}
	for _, e := range below {
		if !seen[e.Name] {
			out = append(out, e)
		}
	}
	return out, nil
}

// eachFound calls fn with d and what was found merged under it so far.
func (d *Dir) eachFound(fn func(*Dir)) {
	for d != nil {
		fn(d)
		if d.parent() == nil {
			d = d.under
			continue
		}
		b := d.below.Load()
		if b == nil {
			return
		}
		d = b.dir
	}
}
