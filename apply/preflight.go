package apply

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"

	"golang.org/x/sys/unix"
)

// checker compares the items with the host and makes the plan.
type checker struct {
	host   *host
	o      *Options
	plan   *plan
	res    *Result
	items  map[key]*Item
	left   map[key]bool // skipped items
	denied map[key]bool // of these, the ones that got no yes
}

type key struct {
	source uint32
	path   string
	move   bool
}

func (it *Item) key() key { return key{it.Source, it.Path, it.MoveFrom != ""} }

// preflight looks at everything and changes nothing. Conflicts are in the
// result; an error means that looking failed.
func preflight(h *host, items []Item, o *Options) (*plan, *Result, error) {
	c := &checker{host: h, o: o, plan: newPlan(), res: &Result{}, items: make(map[key]*Item), left: make(map[key]bool), denied: make(map[key]bool)}
	if err := c.collect(items); err != nil {
		return nil, nil, err
	}
	for i := range items {
		it := &items[i]
		if c.items[it.key()] != it {
			continue
		}
		if err := c.check(it); err != nil {
			var d *drift
			if !errors.As(err, &d) {
				return nil, nil, err
			}
			c.conflict(it, d.reason)
		}
	}
	if err := c.keepFull(); err != nil {
		return nil, nil, err
	}
	c.parents()
	c.choosePlaces()
	return c.plan, c.res, nil
}

// collect checks the paths and asks for guarded items, all before any look at
// the host.
func (c *checker) collect(items []Item) error {
	for i := range items {
		it := &items[i]
		paths := []string{it.Path}
		for _, p := range []string{it.MoveFrom, it.At} {
			if p != "" {
				paths = append(paths, p)
			}
		}
		for _, p := range paths {
			if err := checkPath(p); err != nil {
				return err
			}
		}
		if _, ok := c.o.Roots[it.Source]; !ok {
			return fmt.Errorf("apply %q: no source %d", it.Path, it.Source)
		}
		if c.items[it.key()] != nil {
			return fmt.Errorf("apply %q: named twice", it.Path)
		}
		c.items[it.key()] = it
	}
	for i := range items {
		c.guard(&items[i])
	}
	for i := range items {
		if it := &items[i]; it.MoveFrom != "" && !c.left[it.key()] {
			c.plan.moves[it.Source] = append(c.plan.moves[it.Source], it)
		}
	}
	for k, it := range c.items {
		if it.Want.absent() && it.At == "" && c.impliedByMove(it) {
			delete(c.items, k)
		}
	}
	return nil
}

// impliedByMove reports whether the item says that something is absent because
// it moved away. Taken by its word it would delete what moves.
func (c *checker) impliedByMove(it *Item) bool {
	for _, m := range c.plan.moves[it.Source] {
		if it.Path == m.MoveFrom || under(it.Path, m.MoveFrom) {
			return c.plan.now(it.Source, it.Path) == it.Path
		}
	}
	return false
}

// guard leaves an item that needs a yes and has none.
func (c *checker) guard(it *Item) {
	if c.o.Guard == nil || c.o.ForceGuarded {
		return
	}
	class, guarded := c.o.Guard(it)
	if !guarded || c.o.Confirm != nil && c.o.Confirm(it, class) {
		return
	}
	c.left[it.key()], c.denied[it.key()] = true, true
	c.res.Skipped = append(c.res.Skipped, Skip{it.Path, "the host would execute it, so it needs a yes of its own", class})
}

func (c *checker) skip(it *Item, reason string) {
	c.left[it.key()] = true
	c.res.Skipped = append(c.res.Skipped, Skip{Path: it.Path, Reason: reason})
}

func (c *checker) conflict(it *Item, reason string) {
	c.res.Conflicts = append(c.res.Conflicts, Conflict{it.Path, reason})
}

// check compares one item with the host and adds its ops.
func (c *checker) check(it *Item) error {
	if c.left[it.key()] {
		return nil
	}
	switch it.Want.kind() {
	case 0, unix.S_IFREG, unix.S_IFDIR, unix.S_IFLNK:
	default:
		c.skip(it, "FIFOs, sockets and devices are never applied")
		return nil
	}
	if dir := c.deniedParent(it); dir != "" {
		c.skip(it, fmt.Sprintf("its directory %q was left out", dir))
		return nil
	}
	if it.MoveFrom != "" {
		return c.checkMove(it)
	}
	now := c.before(it)
	f, err := c.look(it, now)
	if err != nil {
		return err
	}
	if f != nil && !it.Base.Exists && c.movesAway(it.Source, now) {
		f = nil // another file takes the name of one that moves away
	}
	if f != nil && special(f) {
		if it.Base.Exists && it.Base.kind() == f.kind() {
			c.skip(it, "the host has a FIFO, socket or device here, which is never touched")
			return nil
		}
		return &drift{it.Path, "the host has a FIFO, socket or device here by now"}
	}
	return c.compare(it, now, f)
}

// before returns where on the host the item's base lies. A move onto the same
// path does not bring it: the item is about what lay there before.
func (c *checker) before(it *Item) string {
	if it.At != "" {
		return it.At
	}
	if it.Want.absent() && c.items[key{it.Source, it.Path, true}] != nil {
		return c.plan.nameIn(it.Source, it.Path)
	}
	return c.plan.now(it.Source, it.Path)
}

func special(f *fact) bool {
	k := f.kind()
	return k != unix.S_IFREG && k != unix.S_IFDIR && k != unix.S_IFLNK
}

// look returns what is on the host. A parent that is no directory is that
// parent's matter if it becomes one in this apply.
func (c *checker) look(it *Item, now string) (*fact, error) {
	f, err := c.host.look(it.Source, now)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR):
		if c.becomesDir(it) {
			return nil, nil
		}
		if it.Want.absent() && errors.Is(err, unix.ENOTDIR) {
			return nil, nil
		}
		return nil, &drift{it.Path, "a parent is no directory on the host: " + last(err)}
	case errors.Is(err, unix.EXDEV):
		return nil, &drift{it.Path, "another file system is mounted there on the host"}
	}
	return nil, err
}

// last returns the text of the innermost error.
func last(err error) string {
	for u := errors.Unwrap(err); u != nil; u = errors.Unwrap(err) {
		err = u
	}
	return err.Error()
}

// deniedParent returns the directory that the item needs and that got no yes.
func (c *checker) deniedParent(it *Item) string {
	for p := path.Dir(it.Path); p != "." && !it.Want.absent(); p = path.Dir(p) {
		if c.denied[key{it.Source, p, false}] || c.denied[key{it.Source, p, true}] {
			return p
		}
	}
	return ""
}

func (c *checker) becomesDir(it *Item) bool {
	for p := path.Dir(it.Path); p != "."; p = path.Dir(p) {
		for _, moved := range []bool{false, true} {
			if a := c.items[key{it.Source, p, moved}]; a != nil && a.Want.kind() == unix.S_IFDIR {
				return true
			}
		}
	}
	return false
}

// compare decides between conflict, nothing to do, and ops.
func (c *checker) compare(it *Item, now string, f *fact) error {
	w := &it.Want
	switch {
	case f == nil && w.absent():
		c.skip(it, "the host already lacks it")
		return nil
	case f == nil && it.Base.Exists:
		return &drift{it.Path, "deleted on the host"}
	case f == nil:
		c.create(it)
		return nil
	}
	drifted, why, err := c.drifted(it, now, f)
	if err != nil {
		return err
	}
	if drifted {
		same, err := c.equal(it, now, f)
		if err != nil {
			return err
		}
		if same {
			c.skip(it, "the host already has this")
			return nil
		}
		return &drift{it.Path, why}
	}
	if w.absent() {
		c.remove(it, now, f)
		return nil
	}
	return c.change(it, now, f)
}

// drifted reports whether the host's file is another than the base.
func (c *checker) drifted(it *Item, now string, f *fact) (bool, string, error) {
	b := &it.Base
	switch {
	case !b.Exists:
		return true, "created on the host too, with other contents", nil
	case b.kind() != f.kind():
		return true, "became " + kindName(f.kind()) + " on the host", nil
	case f.kind() == unix.S_IFDIR:
		return it.Want.kind() == unix.S_IFDIR && f.Mode != b.Mode, "its mode changed on the host", nil
	case f.kind() == unix.S_IFLNK && b.Target != "":
		return b.Target != string(f.Target), "its target changed on the host", nil
	case unmoved(b, f):
		return false, "", nil
	case f.Mode != b.Mode:
		return true, "its mode changed on the host", nil
	case f.kind() != unix.S_IFREG || b.Digest == nil || b.Size != f.Size:
		return true, "changed on the host", nil
	}
	sum, err := c.host.digest(it.Source, now, f)
	return !bytes.Equal(sum, b.Digest), "changed on the host", err
}

// unmoved reports whether all that the base knows is still so. Zero inode and
// ctime are not known.
func unmoved(b *Fingerprint, f *fact) bool {
	return b.Mode == f.Mode && b.Size == f.Size && b.Mtime == f.Mtime &&
		(b.Ino == 0 || b.Ino == f.Ino) && (b.Ctime == 0 || b.Ctime == f.Ctime)
}

// equal reports whether the host has what the item wants, whoever made it.
func (c *checker) equal(it *Item, now string, f *fact) (bool, error) {
	w := &it.Want
	switch {
	case w.kind() != f.kind():
		return false, nil
	case w.kind() == unix.S_IFDIR:
		return !it.Base.Exists || w.Mode&0o777 == f.Mode&0o777, nil
	case w.kind() == unix.S_IFLNK:
		return w.Target == string(f.Target), nil
	case w.Size != f.Size || w.Mode&0o777 != f.Mode&0o777:
		return false, nil
	case w.Open == nil:
		return w.Size == 0, nil
	}
	return c.equalContent(it, now, f)
}

func (c *checker) equalContent(it *Item, now string, f *fact) (bool, error) {
	h, err := c.host.openRegular(it.Source, now, f)
	if err != nil {
		return false, err
	}
	defer h.Close()
	w, err := it.Want.Open()
	if err != nil {
		return false, fmt.Errorf("open %q in the workspace: %w", it.Path, err)
	}
	defer w.Close()
	a, b := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, errA := io.ReadFull(h, a)
		m, errB := io.ReadFull(w, b)
		if !bytes.Equal(a[:n], b[:m]) {
			return false, nil
		}
		for _, err := range []error{errA, errB} {
			if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
				return false, fmt.Errorf("compare %q: %w", it.Path, err)
			}
		}
		if errA != nil || errB != nil {
			return errA != nil && errB != nil, nil
		}
	}
}

func kindName(kind uint32) string {
	switch kind {
	case unix.S_IFREG:
		return "a file"
	case unix.S_IFDIR:
		return "a directory"
	case unix.S_IFLNK:
		return "a symbolic link"
	}
	return "a FIFO, socket or device"
}
