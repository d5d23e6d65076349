package workspace

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/winkfs/winkfs/journal"
)

// group is a span of history that is one unit: the commands that began in it,
// with all that they did, and what processes outside of any command did
// meanwhile.
type group struct {
	id    uint64
	name  string
	begin journal.Seq
	end   journal.Seq // 0 while it is open
}

// String is how the group is called.
func (g *group) String() string {
	if g.name != "" {
		return "group:" + g.name
	}
	return fmt.Sprintf("group:%d", g.id)
}

func (g *group) info() *GroupInfo {
	return &GroupInfo{ID: g.id, Name: g.name, Begin: uint64(g.begin), End: uint64(g.end), Open: g.end == 0}
}

// groups returns all groups, oldest first.
func (w *Workspace) groups() ([]*group, error) {
	var seqs []journal.Seq
	for _, op := range []journal.Op{journal.OpGroupBegin, journal.OpGroupEnd} {
		s, err := w.store.SeqsOfOp(op)
		if err != nil {
			return nil, err
		}
		seqs = append(seqs, s...)
	}
	slices.Sort(seqs)
	var all []*group
	err := w.store.Pick(seqs, func(r *journal.Record) error {
		switch {
		case r.Note == nil:
		case r.Op == journal.OpGroupBegin:
			all = append(all, &group{id: uint64(r.Note.Point), name: r.Note.Checkpoint, begin: r.Seq})
		case len(all) > 0 && all[len(all)-1].begin == r.Note.Point:
			all[len(all)-1].end = r.Seq
		}
		return nil
	})
	return all, err
}

// group returns the group of that number or name.
func (w *Workspace) group(name string) (*group, error) {
	all, err := w.groups()
	if err != nil {
		return nil, err
	}
	n, _ := strconv.ParseUint(name, 10, 64)
	for _, g := range all {
		if g.name == name || n != 0 && g.id == n {
			return g, nil
		}
	}
	return nil, Fail(CodeNothing, "find group: there is no group:%s", name).Hinted("`winkfs log --op begin` lists the groups")
}

// groupRecords returns the records of a group, ascending.
func (w *Workspace) groupRecords(g *group) ([]*journal.Record, error) {
	last := g.end
	if last == 0 {
		last = w.store.Head()
	}
	members, err := w.execsBegun(g.begin, last)
	if err != nil {
		return nil, err
	}
	var recs []*journal.Record
	keep := func(r *journal.Record) error {
		recs = append(recs, r)
		return nil
	}
	err = w.store.Records(g.begin, last, func(r *journal.Record) error {
		if r.Actor.Exec != 0 && !members[r.Actor.Exec] || slices.Contains(returning, r.Op) {
			return nil
		}
		return keep(r)
	})
	if err != nil || g.end == 0 {
		return recs, err
	}
	// Commands that go on after the end belong to it, too.
	var behind []journal.Seq
	for id := range members {
		seqs, err := w.store.SeqsOfExec(id)
		if err != nil {
			return nil, err
		}
		i, _ := slices.BinarySearch(seqs, last+1)
		behind = append(behind, seqs[i:]...)
	}
	slices.Sort(behind)
	return recs, w.store.Pick(behind, keep)
}

// execsBegun returns the commands that began between two records.
func (w *Workspace) execsBegun(first, last journal.Seq) (map[journal.ExecID]bool, error) {
	seqs, err := w.store.SeqsOfOp(journal.OpExecBegin)
	if err != nil {
		return nil, err
	}
	lo, _ := slices.BinarySearch(seqs, first)
	hi, _ := slices.BinarySearch(seqs, last+1)
	ids := map[journal.ExecID]bool{}
	err = w.store.Pick(seqs[lo:hi], func(r *journal.Record) error {
		if r.Note != nil && r.Note.Exec != nil {
			ids[r.Note.Exec.ID] = true
		}
		return nil
	})
	return ids, err
}

// Begin opens a group. There is one at a time.
func (w *Workspace) Begin(_ context.Context, req *BeginRequest) (*GroupResult, error) {
	if req.Name != "" {
		if err := checkName("begin group", req.Name); err != nil {
			return nil, err
		}
	}
	w.admin.Lock()
	defer w.admin.Unlock()
	all, err := w.groups()
	if err != nil {
		return nil, err
	}
	g := &group{id: 1, name: req.Name}
	for _, old := range all {
		g.id = old.id + 1
		switch {
		case old.end == 0:
			return nil, Fail(CodeUsage, "begin: %s is open already, and groups don't nest", old).Hinted("`winkfs end` ends it, `winkfs end --discard` undoes it, too")
		case req.Name != "" && old.name == req.Name:
			return nil, Fail(CodeUsage, "begin: there is a group %q already", req.Name).Hinted("choose another name")
		}
	}
	g.begin, err = w.mark(journal.OpGroupBegin, &journal.Note{Checkpoint: g.name, Point: journal.Seq(g.id)})
	if err != nil {
		return nil, err
	}
	return &GroupResult{Schema: groupSchema, Group: g.info()}, nil
}

const groupSchema = "winkfs.group/v1"

// End closes the open group, and with Discard undoes it.
func (w *Workspace) End(ctx context.Context, req *EndRequest) (*GroupResult, error) {
	g, err := w.closeGroup()
	if err != nil {
		return nil, err
	}
	res := &GroupResult{Schema: groupSchema, Group: g.info()}
	if !req.Discard {
		return res, nil
	}
	res.Undo, err = w.Undo(ctx, &UndoRequest{What: fmt.Sprintf("group:%d", g.id)})
	if CodeOf(err) == CodeNothing {
		err = nil
	}
	return res, err
}

func (w *Workspace) closeGroup() (*group, error) {
	w.admin.Lock()
	defer w.admin.Unlock()
	all, err := w.groups()
	if err != nil {
		return nil, err
	}
	if len(all) == 0 || all[len(all)-1].end != 0 {
		return nil, Fail(CodeNothing, "end: no group is open").Hinted("`winkfs begin` opens one")
	}
	g := all[len(all)-1]
	g.end, err = w.mark(journal.OpGroupEnd, &journal.Note{Checkpoint: g.name, Point: g.begin})
	return g, err
}

// mark journals a record that only has a note, durably.
func (w *Workspace) mark(op journal.Op, note *journal.Note) (journal.Seq, error) {
	seq, err := w.tree.Commit(nil, func(*journal.State) (*journal.Record, error) {
		return &journal.Record{Op: op, Actor: w.person(), Note: note}, nil
	})
	if err != nil {
		return 0, err
	}
	return seq, w.store.Sync()
}
