package apply

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// verb says what an op does.
type verb string

const (
	remove verb = "remove" // Now goes to its temporary name: files, links and empty directories
	move   verb = "move"   // Now goes to Path
	mkdir  verb = "mkdir"  // a staged directory goes to Path
	put    verb = "put"    // a staged file or link goes to Path, exchanged with Old if there is one
	meta   verb = "meta"   // mode, times and xattrs of Path are set in place
)

// op is one operation of a plan. Paths are bytes, so that JSON keeps them.
type op struct {
	Verb   verb   `json:"verb"`
	Source uint32 `json:"source"`
	Path   []byte `json:"path"`          // where the result lies
	Now    []byte `json:"now,omitempty"` // where Old lies before anything moves
	Old    *fact  `json:"old,omitempty"` // what is there before; nil = nothing

	Mode   uint32  `json:"mode,omitempty"`
	Mtime  int64   `json:"mtime,omitempty"`
	Target []byte  `json:"target,omitempty"`
	Xattrs []xattr `json:"xattrs,omitempty"`
	NoACL  bool    `json:"no_acl,omitempty"`

	TempDir []byte `json:"tempdir,omitempty"` // directory that stays where it is
	Temp    string `json:"temp,omitempty"`    // temporary name in it

	index int
	item  *Item
}

// made is what staging did for an op. The intent file holds it in a line of its
// own, by the op's index.
type made struct {
	Ino    uint64 `json:"ino,omitempty"`    // of the staged file
	Digest []byte `json:"sha256,omitempty"` // of its contents
	Copied bool   `json:"copied,omitempty"` // the pre-image is a copy, made while staging
}

// plan is everything that an apply will do, in the order of its items.
type plan struct {
	Version int               `json:"version"`
	Tag     string            `json:"tag"`   // part of all temporary names
	Roots   map[uint32]uint64 `json:"roots"` // inode of each source's root
	Ops     []*op             `json:"ops"`

	moves map[uint32][]*Item
}

func newPlan() *plan {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return &plan{Version: 1, Tag: hex.EncodeToString(b[:]), moves: make(map[uint32][]*Item)}
}

// add appends an op and gives it its temporary name.
func (p *plan) add(o *op) {
	o.index = len(p.Ops)
	o.Temp = fmt.Sprintf(".winkfs-apply-%s-%d", p.Tag, o.index)
	p.Ops = append(p.Ops, o)
}

// now returns the path on the host of what will lie at path, before the moves.
func (p *plan) now(source uint32, path string) string {
	var best *Item
	for _, it := range p.moves[source] {
		if (path == it.Path || under(path, it.Path)) && (best == nil || len(it.Path) > len(best.Path)) {
			best = it
		}
	}
	if best == nil {
		return path
	}
	return best.MoveFrom + path[len(best.Path):]
}

// nameIn returns the path on the host of the name in its directory, which may
// move, whatever moves onto the name itself.
func (p *plan) nameIn(source uint32, path string) string {
	dir, name := splitPath(path)
	if dir == "" {
		return name
	}
	return p.now(source, dir) + "/" + name
}

// under reports whether path lies below dir.
func under(path, dir string) bool {
	return len(path) > len(dir) && path[len(dir)] == '/' && strings.HasPrefix(path, dir)
}

func depth(path []byte) int { return strings.Count(string(path), "/") }

// step is one rename of the commit.
type step struct {
	op  *op
	out bool // of a move: from Now to the temporary name; else from there to Path
}

// steps returns the order of the commit: files are removed, then directories
// are emptied from below by moving out and removing, then the tree is built from
// above, then files are put in place and attributes set, directories from below.
func (p *plan) steps() []step {
	var del, out, in, puts, metas []step
	for _, o := range p.Ops {
		switch {
		case o.Verb == remove && o.Old.kind() != unix.S_IFDIR:
			del = append(del, step{op: o})
		case o.Verb == remove:
			out = append(out, step{op: o})
		case o.Verb == move:
			out = append(out, step{op: o, out: true})
			in = append(in, step{op: o})
		case o.Verb == mkdir:
			in = append(in, step{op: o})
		case o.Verb == put:
			puts = append(puts, step{op: o})
		case o.Verb == meta:
			metas = append(metas, step{op: o})
		}
	}
	slices.SortStableFunc(out, func(a, b step) int { return cmp.Compare(depth(b.op.Now), depth(a.op.Now)) })
	slices.SortStableFunc(in, func(a, b step) int { return cmp.Compare(depth(a.op.Path), depth(b.op.Path)) })
	slices.SortStableFunc(metas, func(a, b step) int { return cmp.Compare(depth(b.op.Path), depth(a.op.Path)) })
	return slices.Concat(del, out, in, puts, metas)
}

// checkPath refuses what is no path below a root.
func checkPath(path string) error {
	for c := range strings.SplitSeq(path, "/") {
		switch {
		case c == "" || c == "." || c == "..":
			return fmt.Errorf("check path %q: not a path below the source", path)
		case strings.IndexByte(c, 0) >= 0:
			return fmt.Errorf("check path %q: holds a NUL byte", path)
		case len(c) > 255:
			return fmt.Errorf("check path %q: a component is too long", path)
		}
	}
	return nil
}
