package workspace

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/winkfs/winkfs/journal"
)

// By says whose record something is.
type By struct {
	Seq  uint64 `json:"seq"`
	Exec uint64 `json:"exec,omitempty"` // 0 = a process outside any command
	Comm string `json:"comm,omitempty"`
}

func byOf(r *journal.Record) *By {
	if r == nil {
		return nil
	}
	return &By{Seq: uint64(r.Seq), Exec: uint64(r.Actor.Exec), Comm: r.Actor.Comm}
}

// String names the command if there is one, else the record.
func (b *By) String() string {
	who := ""
	if b.Comm != "" {
		who = " (" + b.Comm + ")"
	}
	if b.Exec != 0 {
		return fmt.Sprintf("exec:%d%s", b.Exec, who)
	}
	return fmt.Sprintf("record %d%s", b.Seq, who)
}

// describe makes the conflict that a person reads: which path, what about it,
// and whose changes meet there.
func (u *undoPlan) describe(c journal.Conflict) (Conflict, error) {
	what := c.Reason
	if c.Field != "" {
		what = c.Field + " " + what
	}
	return u.blamed(Conflict{Path: u.pathOf(c), Reason: what}, c, c)
}

// blamed adds whose changes meet: ours and theirs are what the two set, which
// differs where one replaced the file.
func (u *undoPlan) blamed(out Conflict, ours, theirs journal.Conflict) (Conflict, error) {
	out.Undone = byOf(u.ours(ours))
	later, err := u.later(theirs)
	if err != nil {
		return out, err
	}
	out.Later = byOf(later)
	switch {
	case out.Undone != nil && out.Later != nil:
		out.Reason += fmt.Sprintf(": by %s, later by %s", out.Undone, out.Later)
	case out.Later != nil:
		out.Reason += fmt.Sprintf(": by %s", out.Later)
	}
	return out, nil
}

// ours returns the newest of the records to undo that set what is in conflict.
func (u *undoPlan) ours(c journal.Conflict) *journal.Record {
	for _, r := range slices.Backward(u.recs) {
		if sets(r, &c) {
			return r
		}
	}
	return nil
}

// later returns the newest other record behind the first to undo that set what
// is in conflict, nil if there is none.
func (u *undoPlan) later(c journal.Conflict) (*journal.Record, error) {
	return u.laterBut(c, func(*journal.Record) bool { return false })
}

// laterBut is later without the records that don't count.
func (u *undoPlan) laterBut(c journal.Conflict, but func(*journal.Record) bool) (*journal.Record, error) {
	id := c.Node
	if c.Name != "" {
		id = c.Parent
	}
	seqs, err := u.w.store.SeqsOfNode(id)
	if err != nil {
		return nil, err
	}
	first, _ := slices.BinarySearch(seqs, u.recs[0].Seq)
	seqs = slices.DeleteFunc(seqs[first:], func(s journal.Seq) bool { return s > u.head || u.isOurs(s) })
	for len(seqs) > 0 {
		n := max(0, len(seqs)-64)
		var found *journal.Record
		err := u.w.store.Pick(seqs[n:], func(r *journal.Record) error {
			if sets(r, &c) && !but(r) {
				found = r
			}
			return nil
		})
		if found != nil || err != nil {
			return found, err
		}
		seqs = seqs[:n]
	}
	return nil, nil
}

func (u *undoPlan) isOurs(seq journal.Seq) bool {
	_, ok := slices.BinarySearchFunc(u.recs, seq, func(r *journal.Record, s journal.Seq) int { return int(int64(r.Seq) - int64(s)) })
	return ok
}

// sets reports whether a record sets the value that is in conflict.
func sets(r *journal.Record, c *journal.Conflict) bool {
	for i := range r.Changes {
		ch := &r.Changes[i]
		switch {
		case c.Name != "" && ch.Entry != nil:
			if ch.Entry.Parent == c.Parent && ch.Entry.Name == c.Name {
				return true
			}
		case c.Name != "":
			if ch.Node != nil && ch.Node.ID == c.Parent && (ch.Node.After == nil || ch.Node.After.Attr.Nlink == 0) {
				return true
			}
		case ch.Content != nil:
			if ch.Content.ID == c.Node && c.Field == "" && ch.Content.Off < c.Off+max(c.Len, 1) && c.Off < ch.Content.Off+ch.Content.Len {
				return true
			}
		case ch.Node != nil:
			if ch.Node.ID == c.Node && (c.Field == "" && c.Len == 0 || ch.Node.Sets(c.Field)) {
				return true
			}
		}
	}
	return false
}

// pathOf returns the path by which the records knew what is in conflict.
func (u *undoPlan) pathOf(c journal.Conflict) string {
	for _, r := range slices.Backward(u.recs) {
		for _, ch := range r.Changes {
			switch {
			case c.Name != "" && ch.Entry != nil && ch.Entry.Parent == c.Parent && ch.Entry.Name == c.Name:
				return nameOf(r, c.Name)
			case c.Name == "" && r.Path != "" && slices.Contains(changedNodes(&ch), c.Node):
				return r.Path
			}
		}
	}
	if c.Name != "" {
		return path.Join(u.pathOf(journal.Conflict{Node: c.Parent}), c.Name)
	}
	return u.place(c.Node)
}

// place returns the path of a node by the entries of the present.
func (u *undoPlan) place(id journal.NodeID) string {
	if id == journal.RootID {
		return ""
	}
	for parent, entries := range u.now.Entries {
		for name, e := range entries {
			if e.Kind == journal.EntryNode && e.Node == id {
				return path.Join(u.place(parent), name)
			}
		}
	}
	return fmt.Sprintf("node %d", id)
}

// nameOf returns which of a record's paths ends in the name.
func nameOf(r *journal.Record, name string) string {
	if r.Path2 != "" && strings.HasSuffix("/"+r.Path2, "/"+name) {
		return r.Path2
	}
	if r.Path == "" {
		return name
	}
	return r.Path
}

// foremost leaves out what only follows from another conflict of the same file:
// where its bytes are in conflict, so are its size and its time.
func foremost(conflicts []journal.Conflict) []journal.Conflict {
	rank := func(c journal.Conflict) int {
		return slices.Index([]string{"", "size", "mtime"}, c.Field)
	}
	best := map[journal.NodeID]int{}
	for _, c := range conflicts {
		if r := rank(c); c.Name == "" && r >= 0 {
			if b, ok := best[c.Node]; !ok || r < b {
				best[c.Node] = r
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(conflicts), func(c journal.Conflict) bool {
		return c.Name == "" && rank(c) > best[c.Node]
	})
}

// refuse makes the error that lists the conflicts by path.
func (u *undoPlan) refuse(conflicts []journal.Conflict) error {
	list := u.refused
	for _, c := range foremost(conflicts) {
		if u.told[c.Node] {
			continue
		}
		d, err := u.describe(c)
		if err != nil {
			return err
		}
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b Conflict) int { return strings.Compare(a.Path+"\x00"+a.Reason, b.Path+"\x00"+b.Reason) })
	list = slices.CompactFunc(list, func(a, b Conflict) bool { return a.Path == b.Path && a.Reason == b.Reason })
	e := Fail(CodeConflict, "undo: later work overlaps in %d place(s); nothing was changed", len(list))
	e.Conflicts = list
	return e.Hinted("undo the later work first, or name the paths that don't overlap")
}
