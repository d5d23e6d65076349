package model

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// ownProcess fills in an operation that needs a process of its own.
func (g *Gen) ownProcess(o *Op) {
	switch o.Kind {
	case Flock:
		o.Flags = pick(g, unix.LOCK_SH, unix.LOCK_EX, unix.LOCK_EX, unix.LOCK_UN)
	case Mmap:
		o.Len = page * (1 + g.r.Int64N(64))
		o.Mode = pick[uint32](g, unix.PROT_READ, unix.PROT_READ|unix.PROT_WRITE, unix.PROT_READ|unix.PROT_WRITE)
		o.Flags = pick(g, unix.MAP_SHARED, unix.MAP_SHARED, unix.MAP_PRIVATE)
	case MapRead, MapWrite:
		o.Off = pick(g, 0, g.r.Int64N(5000), g.r.Int64N(64*page))
		o.Len = 1 + pick(g, g.r.Int64N(100), g.r.Int64N(3*page))
	case Remount:
		o.Flags = g.r.IntN(2)
	}
}

// sequence returns operations that make the states which chance alone makes
// seldom: a directory in the place of a deleted or moved one, a file replaced
// by another over its own link.
func (g *Gen) sequence() []Op {
	name := func() Op { return Op{Seed: g.r.Uint64(), Slot: g.r.IntN(Slots), Mode: 0o755} }
	var ops []Op
	add := func(k Kind, path, path2 string, flags int) {
		o := name()
		o.Kind, o.Path, o.Path2, o.Flags = k, path, path2, flags
		o.Len = 1 + g.r.Int64N(9000)
		ops = append(ops, o)
	}
	switch g.r.IntN(4) {
	case 0: // empty a directory, remove it, make it anew
		dir := g.dir()
		for _, f := range below(g.files, dir) {
			add(Unlink, f, "", 0)
		}
		dirs := below(g.dirs, dir)
		for i := len(dirs) - 1; i >= 0; i-- {
			add(Rmdir, dirs[i], "", 0)
		}
		add(Rmdir, dir, "", 0)
		add(Mkdir, dir, "", 0)
		add(Create, path.Join(dir, "a"), "", 0)
		add(List, dir, "", 0)
	case 1: // move a directory away and put another into its place
		dir, to := g.dir(), g.fresh()
		add(Rename, dir, to, 0)
		add(Mkdir, dir, "", 0)
		for _, f := range below(g.files, dir) {
			add(Create, f, "", unix.O_EXCL)
			add(Append, path.Join(to, strings.TrimPrefix(f, dir+"/")), "", 0)
			break
		}
		add(List, dir, "", 0)
		add(List, to, "", 0)
	case 2: // keep a file's bytes by another name, then replace it
		file, link, next := g.some(), g.fresh(), g.fresh()
		add(Link, file, link, 0)
		add(Create, next, "", unix.O_TRUNC)
		add(Append, next, "", 0)
		add(Rename, next, file, 0)
		add(Append, link, "", 0)
		add(ReadFile, file, "", 0)
		add(ReadFile, link, "", 0)
	case 3: // go into a directory that then moves or goes
		dir, to := g.dir(), g.fresh()
		add(Chdir, dir, "", 0)
		add(Rename, dir, to, 0)
		add(Getcwd, "", "", 0)
		for _, k := range []Kind{Create, Stat, List, Unlink} {
			add(k, pick(g, "a", "b", "."), "", 0)
			ops[len(ops)-1].Cwd = true
		}
		add(Stat, "..", "", 0) // no more than that: it may lead out of the world
		ops[len(ops)-1].Cwd = true
		add(Rmdir, to, "", 0)
		add(Getcwd, "", "", 0)
		add(Create, "late", "", 0)
		ops[len(ops)-1].Cwd = true
	}
	return ops
}

// below returns the names that lie below dir, parents first.
func below(names []string, dir string) []string {
	var out []string
	for _, n := range names {
		if strings.HasPrefix(n, dir+"/") {
			out = append(out, n)
		}
	}
	return out
}
