package apply

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"golang.org/x/sys/unix"
)

// newOp returns the op that makes what the item wants.
func newOp(v verb, it *Item, now string, old *fact) *op {
	w := &it.Want
	return &op{Verb: v, Source: it.Source, Path: []byte(it.Path), Now: []byte(now), Old: old, Mode: w.Mode &^ 0o7000,
		Mtime: w.Mtime, Target: []byte(w.Target), Xattrs: xattrsOf(w.Xattrs), NoACL: w.NoACL, item: it}
}

// create adds the ops that make the item where nothing is left.
func (c *checker) create(it *Item) {
	if it.Want.kind() == unix.S_IFDIR {
		c.plan.add(newOp(mkdir, it, "", nil))
		c.later(it)
	} else {
		c.plan.add(newOp(put, it, "", nil))
	}
}

// later adds an op that sets a directory's mode and mtime after it is filled.
func (c *checker) later(it *Item) {
	if it.Want.Mtime != 0 || it.Want.Mode&0o700 != 0o700 {
		c.plan.add(newOp(meta, it, "", nil))
	}
}

func (c *checker) remove(it *Item, now string, f *fact) {
	c.plan.add(&op{Verb: remove, Source: it.Source, Path: []byte(it.Path), Now: []byte(now), Old: f, item: it})
}

// change adds the ops that turn what the host has into what the item wants.
func (c *checker) change(it *Item, now string, f *fact) error {
	w := &it.Want
	isDir, toDir := f.kind() == unix.S_IFDIR, w.kind() == unix.S_IFDIR
	switch {
	case isDir && toDir:
		c.plan.add(newOp(meta, it, now, f))
	case isDir != toDir:
		c.remove(it, now, f)
		c.create(it)
	case w.kind() == unix.S_IFREG && f.kind() == unix.S_IFREG && w.Open == nil && f.Nlink == 1:
		if w.Size != f.Size {
			return fmt.Errorf("apply %q: no contents given for a new size", it.Path)
		}
		c.plan.add(newOp(meta, it, now, f))
	default:
		if f.Nlink > 1 {
			c.res.Notes = append(c.res.Notes, Skip{Path: it.Path, Reason: fmt.Sprintf(
				"one of %d hard links on the host; the others keep the old contents", f.Nlink)})
		}
		c.plan.add(newOp(put, it, now, f))
	}
	return nil
}

// checkMove compares a moved item with the host.
func (c *checker) checkMove(it *Item) error {
	f, err := c.look(it, it.MoveFrom)
	if err != nil {
		return err
	}
	if f == nil {
		at, err := c.host.look(it.Source, it.Path)
		if err == nil && at != nil && at.Ino == it.Base.Ino && at.kind() == it.Base.kind() {
			c.skip(it, "the host already has this")
			return nil
		}
		return &drift{it.Path, "deleted on the host"}
	}
	if special(f) {
		c.skip(it, "the host has a FIFO, socket or device here, which is never touched")
		return nil
	}
	if drifted, why, err := c.drifted(it, it.MoveFrom, f); err != nil || drifted {
		if err == nil {
			err = &drift{it.Path, why}
		}
		return err
	}
	if it.Base.Ino != 0 && it.Base.Ino != f.Ino {
		return &drift{it.Path, "replaced on the host"}
	}
	return c.addMove(it, f)
}

func (c *checker) addMove(it *Item, f *fact) error {
	if c.items[key{it.Source, it.Path, false}] == nil {
		now := c.plan.nameIn(it.Source, it.Path)
		at, err := c.look(it, now)
		if err != nil {
			return err
		}
		if at != nil && !c.movesAway(it.Source, now) {
			return &drift{it.Path, "created on the host too"}
		}
	}
	c.plan.add(newOp(move, it, it.MoveFrom, f))
	if w := &it.Want; w.Mode&0o777 != f.Mode&0o777 || w.Mtime != 0 && w.Mtime != f.Mtime {
		c.plan.add(newOp(meta, it, it.MoveFrom, f))
	}
	return nil
}

// movesAway reports whether what is at the path is itself moved or removed.
func (c *checker) movesAway(source uint32, now string) bool {
	return slices.ContainsFunc(c.plan.moves[source], func(m *Item) bool { return m.MoveFrom == now }) ||
		c.items[key{source, now, false}] != nil && c.items[key{source, now, false}].Want.absent()
}

// keepFull drops removals of directories that hold something which this apply
// does not remove, from below.
func (c *checker) keepFull() error {
	gone := make(map[key]bool)
	for _, o := range c.plan.Ops {
		if o.Verb == remove || o.Verb == move {
			gone[key{o.Source, string(o.Now), false}] = true
		}
	}
	dropped := make(map[*op]bool)
	for _, s := range c.plan.steps() {
		o := s.op
		if o.Verb != remove || o.Old.kind() != unix.S_IFDIR {
			continue
		}
		rest, err := c.remains(o, gone)
		if err != nil {
			return err
		}
		if rest == "" {
			continue
		}
		delete(gone, key{o.Source, string(o.Now), false})
		dropped[o] = true
		c.keep(o, rest)
	}
	c.plan.Ops = slices.DeleteFunc(c.plan.Ops, func(o *op) bool { return dropped[o] })
	for i, o := range c.plan.Ops {
		o.index = i
	}
	return nil
}

// remains returns the first name in the directory that stays.
func (c *checker) remains(o *op, gone map[key]bool) (string, error) {
	names, err := c.host.list(o.Source, string(o.Now))
	if err != nil {
		return "", err
	}
	slices.Sort(names)
	for _, n := range names {
		if !gone[key{o.Source, string(o.Now) + "/" + n, false}] {
			return n, nil
		}
	}
	return "", nil
}

func (c *checker) keep(o *op, rest string) {
	p := string(o.Path)
	if o.item != nil && !o.item.Want.absent() {
		c.conflict(o.item, fmt.Sprintf("the directory on the host holds %q, which the workspace did not delete", rest))
		return
	}
	c.res.Skipped = append(c.res.Skipped, Skip{Path: p,
		Reason: fmt.Sprintf("the directory is kept: it holds %q, which the workspace did not delete", rest)})
}

// parents finds items whose directory will not be there.
func (c *checker) parents() {
	dirs := make(map[key]bool)
	for _, o := range c.plan.Ops {
		if o.Verb == mkdir || o.Verb == move {
			dirs[key{o.Source, string(o.Path), false}] = true
		}
	}
	for _, o := range c.plan.Ops {
		dir := path.Dir(string(o.Path))
		if o.Verb == remove || o.Verb == meta || dir == "." || dirs[key{o.Source, dir, false}] {
			continue
		}
		f, err := c.host.look(o.Source, c.plan.now(o.Source, dir))
		if err == nil && f != nil && f.kind() == unix.S_IFDIR {
			continue
		}
		if err != nil && !errors.Is(err, unix.ELOOP) && !errors.Is(err, unix.ENOTDIR) {
			c.conflict(o.item, "its directory can't be opened on the host: "+last(err))
			continue
		}
		c.conflict(o.item, fmt.Sprintf("its directory %q is not on the host and not part of this apply", dir))
	}
}

// choosePlaces gives each op the directory for its temporary name: the nearest
// above that is there and neither removed nor moved.
func (c *checker) choosePlaces() {
	unsafe := make(map[key]bool)
	for _, o := range c.plan.Ops {
		if o.Verb == remove || o.Verb == move {
			unsafe[key{o.Source, string(o.Now), false}] = true
		}
	}
	known := make(map[key]string)
	for _, o := range c.plan.Ops {
		from := o.Path
		if o.Verb == remove {
			from = o.Now
		}
		dir, _ := splitPath(string(from))
		k := key{o.Source, dir, false}
		if _, ok := known[k]; !ok {
			known[k] = c.stays(o.Source, dir, unsafe)
		}
		o.TempDir = []byte(known[k])
	}
}

func (c *checker) stays(source uint32, dir string, unsafe map[key]bool) string {
	best := dir
	for d := dir; d != ""; d, _ = splitPath(d) {
		if unsafe[key{source, d, false}] {
			best, _ = splitPath(d)
		}
	}
	for best != "" {
		f, err := c.host.look(source, best)
		if err == nil && f != nil && f.kind() == unix.S_IFDIR {
			break
		}
		best, _ = splitPath(best)
	}
	return best
}
