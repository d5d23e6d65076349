package workspace

import (
	"slices"
	"strconv"
	"strings"

	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// target is what show and undo are about: a command, a group of them, a record
// or what lies between two points.
type target struct {
	exec     journal.ExecID
	seq      journal.Seq
	group    string // number or name
	from, to string // points; to "" is the present
}

// parseTarget reads exec:N, group:N, group:NAME, FROM..[TO] or a record's
// number.
func parseTarget(s string) (target, error) {
	if name, ok := strings.CutPrefix(s, "group:"); ok && name != "" {
		return target{group: name}, nil
	}
	if from, to, ok := strings.Cut(s, ".."); ok && from != "" {
		return target{from: from, to: to}, nil
	}
	digits, isExec := strings.CutPrefix(s, "exec:")
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || n == 0 {
		return target{}, Fail(CodeUsage, "read %q: expected exec:N, group:N, group:NAME, a record's number or FROM..TO", s)
	}
	if isExec {
		return target{exec: journal.ExecID(n)}, nil
	}
	return target{seq: journal.Seq(n)}, nil
}

// targetRecords returns the records that a target means, ascending.
func (w *Workspace) targetRecords(t target) ([]*journal.Record, error) {
	switch {
	case t.exec != 0:
		return w.recordsOf(t.exec)
	case t.group != "":
		g, err := w.group(t.group)
		if err != nil {
			return nil, err
		}
		return w.groupRecords(g)
	case t.from != "":
		return w.recordsBetween(t.from, t.to)
	}
	r, err := w.record(t.seq)
	if err != nil {
		return nil, err
	}
	if isGenesis(r) {
		return nil, Fail(CodeNothing, "undo %d: it says where the sources show and can't be undone", t.seq)
	}
	if r.Op == journal.OpClone {
		return nil, Fail(CodeNothing, "undo %d: the fork began with it", t.seq).Hinted("`winkfs rollback %d` returns to what the parent had", t.seq-1)
	}
	return []*journal.Record{r}, nil
}

func isGenesis(r *journal.Record) bool { return r.Note != nil && r.Note.Text == tree.Genesis }

// recordsBetween returns the records behind one point up to another.
func (w *Workspace) recordsBetween(from, to string) ([]*journal.Record, error) {
	first, err := w.resolve(from)
	if err != nil {
		return nil, err
	}
	last := w.store.Head()
	if to != "" {
		if last, err = w.resolve(to); err != nil {
			return nil, err
		}
	}
	if first > last {
		return nil, Fail(CodeUsage, "undo %s..%s: the second point comes before the first", from, to)
	}
	floor, err := w.floor()
	if err != nil {
		return nil, err
	}
	return w.records(max(first, floor)+1, last)
}

// toUndo returns the records that a target means and that are not undone
// already.
func (w *Workspace) toUndo(t target, paths pathSet, name string) ([]*journal.Record, error) {
	all, err := w.targetRecords(t)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(r *journal.Record) bool { return len(r.Changes) == 0 })
	all = paths.records(all)
	if len(all) == 0 && len(paths) > 0 {
		return nil, Fail(CodeNothing, "undo %s: it changed nothing there", name).Hinted("`winkfs show %s` lists what it changed", name)
	}
	if len(all) == 0 {
		return nil, Fail(CodeNothing, "undo %s: it changed nothing", name)
	}
	h, err := w.revertedRecords()
	if err != nil {
		return nil, err
	}
	if err := h.upTo(all[0].Seq); err != nil {
		return nil, err
	}
	// What took back a record and is undone with it counts for nothing: the two
	// cancel out.
	among := map[journal.Seq]bool{}
	for _, r := range all {
		among[r.Seq] = true
	}
	last := h.known(all[len(all)-1].Seq)
	recs := slices.DeleteFunc(all, func(r *journal.Record) bool {
		by := h.known(r.Seq)
		return by != 0 && !among[by]
	})
	if len(recs) == 0 {
		return nil, Fail(CodeNothing, "undo %s: record %d undid it already", name, last).Hinted("`winkfs redo` takes the last undo back")
	}
	return recs, nil
}

// below reports whether a record removed a directory in which one of the paths
// lies.
func (s pathSet) below(r *journal.Record) bool {
	return r.Op == journal.OpRmdir && slices.ContainsFunc(s, func(p string) bool { return p != r.Path && under(p, r.Path) })
}

// records returns the records that are about the paths, with all others about
// the same files: a file that was written under another name and then renamed
// is undone whole, and a directory comes back with what was deleted in it.
func (s pathSet) records(recs []*journal.Record) []*journal.Record {
	if len(s) == 0 {
		return recs
	}
	files := map[journal.NodeID]bool{}
	in := make([]bool, len(recs))
	for grown := true; grown; {
		grown = false
		for i, r := range recs {
			if in[i] || !s.has(r.Path) && !s.has(r.Path2) && !about(r, files) && !s.below(r) {
				continue
			}
			in[i], grown = true, true
			for id := range nodesOf(r) {
				files[id] = true
			}
		}
	}
	var out []*journal.Record
	for i, r := range recs {
		if in[i] {
			out = append(out, r)
		}
	}
	return out
}

// about reports whether a record is about one of the files.
func about(r *journal.Record, files map[journal.NodeID]bool) bool {
	for id := range nodesOf(r) {
		if files[id] {
			return true
		}
	}
	return false
}
