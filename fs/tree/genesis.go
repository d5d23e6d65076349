package tree

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/lower"
	"github.com/winkfs/winkfs/journal"
)

// Genesis marks the record that a workspace with sources below its root begins
// with. It makes the directories that lead to them; changes count from the
// point behind it.
const Genesis = "genesis"

// genesis journals the entries that lead to sources below the root. A
// workspace of one source at the root needs none.
func (t *Tree) genesis() error {
	plain := len(t.sources) == 1 && t.sources[0].At == ""
	if plain {
		return nil
	}
	return t.mutate(&Request{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}, journal.OpMkdir, nil, touching(), func(x *tx) error {
		x.rec.Actor = journal.Actor{Comm: "winkfs", UID: x.r.UID}
		x.rec.Note = &journal.Note{Text: Genesis}
		root := t.nodes[journal.RootID]
		if t.rootSource() == 0 {
			e := x.edit(root)
			e.after = x.newDir()
		}
		made := map[string]*node{"": root}
		for i, s := range t.sources {
			if s.At != "" {
				x.graft(made, s.At, t.lower.Root(uint32(i+1)))
			}
		}
		return nil
	})
}

// newDir returns the state of a directory of the workspace's own.
func (x *tx) newDir() *journal.Node {
	return &journal.Node{Own: true, Attr: journal.Attr{
		Mode: unix.S_IFDIR | 0o755, UID: x.r.UID, GID: x.r.GID, Nlink: 2,
		Atime: x.now, Mtime: x.now, Ctime: x.now, Btime: x.now,
	}}
}

// graft makes the directories above a source's place and the entry for it.
func (x *tx) graft(made map[string]*node, at string, root *lower.Dir) {
	dir, rest := made[""], at
	for done := ""; ; {
		head, tail, more := strings.Cut(rest, "/")
		if !more {
			break
		}
		rest, done = tail, done+"/"+head
		if made[done] == nil {
			n := x.add(x.newDir())
			x.setEntry(dir, head, journal.Entry{Kind: journal.EntryNode, Node: n.id})
			made[done] = n
		}
		dir = made[done]
	}
	id := LowerID(root.Source(), root.Ino())
	n := &node{id: id, mode: unix.S_IFDIR, low: lower.File{Dir: root, Ino: root.Ino()}, dir: root}
	x.edits = append(x.edits, edit{n: n, after: x.pinned(n)})
	x.setEntry(dir, rest, journal.Entry{Kind: journal.EntryNode, Node: id})
}
