package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/winkfs/winkfs/diffview"
	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// mergeNote is what a merge's record says in Note.Text.
type mergeNote struct {
	Workspace string      `json:"workspace"` // id of the fork
	Name      string      `json:"name,omitempty"`
	Seq       journal.Seq `json:"seq"` // the fork's record up to which it was merged
	Nodes     renumbering `json:"nodes"`
}

// Merge brings a fork's changes into the workspace.
func (w *Workspace) Merge(_ context.Context, req *MergeRequest) (*MergeResult, error) {
	w.admin.Lock()
	defer w.admin.Unlock()
	f, err := w.openFork(req)
	if err != nil {
		return nil, err
	}
	defer f.close()
	d := &dataMover{from: f.store, to: w.store, shared: f.note.FirstFile, moved: map[storedRange]journal.Loc{}}
	var m *merged
	err = w.insist(func() (err error) {
		m, err = w.merge(f, d, req.DryRun)
		return err
	})
	if m != nil {
		w.tell(m.change, m.history) // not while the tree is held still
	}
	if err != nil {
		return nil, err
	}
	return &MergeResult{
		Schema: "winkfs.merge/v1", Workspace: f.cfg.ID, Name: f.cfg.Name, From: uint64(f.head), DryRun: req.DryRun,
		Seq: m.history.Seq, Merged: append([]string{}, m.texts...), Changes: m.history.Changes,
	}, nil
}

// merged is a merge that was made and not shown yet, or that would be made.
type merged struct {
	change  *change
	history *HistoryResult
	texts   []string
}

// merge works the merge out against the workspace as it is, and makes it. It
// fails with errMoved when the workspace went on meanwhile. What it returns was
// made, also beside an error.
func (w *Workspace) merge(f *forkStore, d *dataMover, dryRun bool) (*merged, error) {
	var now *journal.State
	if err := w.read(func(s *journal.State) { now = s.Clone() }); err != nil {
		return nil, err
	}
	m, note, err := w.mergeOf(f, now)
	if err != nil {
		return nil, err
	}
	plan, err := m.Plan()
	if err != nil {
		return nil, fmt.Errorf("merge %s: %w", f.cfg.ID, err)
	}
	if len(plan.Conflicts) > 0 {
		return nil, w.mergeConflicts(f, plan)
	}
	h := &HistoryResult{DryRun: dryRun || len(plan.Changes)+len(plan.Contents) == 0}
	c, err := w.mergeChange(f, d, now, note, plan, h.DryRun)
	if err != nil {
		return nil, err
	}
	if err = w.commit(c, h); err != nil && h.Seq == 0 {
		w.tell(c, h)
		return nil, err
	}
	return &merged{c, h, plan.Merged}, err
}

// mergeChange returns the change that a merge makes. For a dry run the bytes
// stay where they are.
func (w *Workspace) mergeChange(f *forkStore, d *dataMover, now *journal.State, note *mergeNote, plan *tree.MergePlan, dryRun bool) (*change, error) {
	c := &change{head: now.Seq, nextNode: now.NextNode, before: w.viewOf(now.Clone())}
	c.again = func(*journal.State) error { return errMoved }
	var changes []journal.Change
	if dryRun {
		changes = planned(plan.Changes, plan.Contents)
	} else {
		rec, err := mergeRecord(w.person(), note, plan, now)
		if err != nil {
			return nil, err
		}
		if rec.Changes, rec.Data, err = d.contents(rec.Changes, plan.Contents); err != nil {
			return nil, err
		}
		c.rec, c.needs, changes = rec, tree.NodesOf([]*journal.Record{rec}), rec.Changes
	}
	for i := range changes {
		now.ApplyChange(&changes[i])
	}
	c.after = tree.NewView(now, w.low, w.sources, &bothStores{w.store, f.store})
	var err error
	if c.changed, err = tree.Changes(c.before, c.after); err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	return c, nil
}

// mergeRecord returns the record of a merge, its contents aside.
func mergeRecord(who journal.Actor, note *mergeNote, plan *tree.MergePlan, now *journal.State) (*journal.Record, error) {
	note.Nodes.Same = pairsOf(plan.Same)
	text, err := json.Marshal(note)
	if err != nil {
		return nil, fmt.Errorf("encode note: %w", err)
	}
	rec := &journal.Record{Op: journal.OpMerge, Actor: who, Note: &journal.Note{Text: string(text)}, Changes: plan.Changes}
	if last, ok := note.Nodes.last(); ok {
		// The numbers of nodes that have no name yet are taken, too.
		c := &journal.NodeChange{ID: last, Before: now.Nodes[last], After: afterOf(plan.Changes, last)}
		rec.Changes = append(rec.Changes, journal.Change{Node: c})
	}
	return rec, nil
}

// afterOf returns the state that changes give a node, nil if they give it none.
func afterOf(changes []journal.Change, id journal.NodeID) *journal.Node {
	for _, c := range changes {
		if c.Node != nil && c.Node.ID == id {
			return c.Node.After
		}
	}
	return nil
}

// mergeOf returns the three views of a merge, in the workspace's own numbers.
func (w *Workspace) mergeOf(f *forkStore, now *journal.State) (tree.Merge, *mergeNote, error) {
	earlier, err := w.earlierMerges(f)
	if err != nil {
		return tree.Merge{}, nil, err
	}
	from, first := f.own, f.note.NextNode
	if n := len(earlier); n > 0 {
		from, first = earlier[n-1].Seq, earlier[n-1].Nodes.To
	}
	base, err := f.at(from)
	if err != nil {
		return tree.Merge{}, nil, err
	}
	note := &mergeNote{
		Workspace: f.cfg.ID, Name: f.cfg.Name, Seq: f.head,
		Nodes: renumbering{From: first, To: max(first, f.state.NextNode), Start: now.NextNode},
	}
	number := numbers(append(earlier, note))
	// The fork's own state is looked up by its own numbers for conflicts.
	f.number = number
	theirs := tree.Renumber(f.state, number)
	if err := w.reviveLike(theirs, now); err != nil {
		return tree.Merge{}, nil, err
	}
	view := func(s *journal.State, store *journal.Store) *tree.View {
		return tree.NewView(s, w.low, w.sources, store)
	}
	return tree.Merge{
		Base: view(tree.Renumber(base, number), f.store), Theirs: view(theirs, f.store), Ours: view(now.Clone(), w.store),
		Text: mergeTexts,
	}, note, nil
}

// reviveLike adds the nodes to the workspace's state that the fork has and that
// were dropped from memory here, because nothing leads to them any more: the
// fork may have brought them back.
func (w *Workspace) reviveLike(theirs, now *journal.State) error {
	var ids []journal.NodeID
	for id := range theirs.Nodes {
		if id >= journal.CreatedBit && id < now.NextNode && now.Nodes[id] == nil {
			ids = append(ids, id)
		}
	}
	return tree.Revive(now, w.store, ids)
}

// earlierMerges returns the merges of the fork that stand, oldest first.
func (w *Workspace) earlierMerges(f *forkStore) ([]*mergeNote, error) {
	seqs, err := w.store.SeqsOfOp(journal.OpMerge)
	if err != nil || len(seqs) == 0 {
		return nil, err
	}
	undone, err := w.revertedRecords()
	if err != nil {
		return nil, err
	}
	if err := undone.upTo(seqs[0]); err != nil {
		return nil, err
	}
	var out []*mergeNote
	for _, seq := range seqs {
		rec, err := w.record(seq)
		if err != nil {
			return nil, err
		}
		note := &mergeNote{}
		if rec.Note == nil || json.Unmarshal([]byte(rec.Note.Text), note) != nil || note.Workspace != f.cfg.ID || undone.known(seq) != 0 {
			continue
		}
		out = append(out, note)
	}
	return out, nil
}

// mergeTexts merges the bytes of a file that both changed, line by line.
func mergeTexts(base, ours, theirs tree.Item) ([]byte, string, error) {
	var text [3][]byte
	for i, it := range []tree.Item{base, ours, theirs} {
		b, err := readText(&it)
		if errors.Is(err, errNotText) {
			return nil, "changed in both, and is not text", nil
		}
		if err != nil {
			return nil, "", err
		}
		text[i] = b
	}
	m := diffview.Merge(text[0], text[1], text[2])
	if n := len(m.Conflicts); n > 0 {
		return nil, fmt.Sprintf("changed in both, %d place(s) of it in different ways", n), nil
	}
	return append([]byte{}, m.Text...), "", nil
}

// mergeConflicts makes the error that lists the conflicts and whose they are.
func (w *Workspace) mergeConflicts(f *forkStore, plan *tree.MergePlan) error {
	e := Fail(CodeConflict, "merge %s: %d conflict(s); nothing was changed", forkName(f.cfg), len(plan.Conflicts))
	own := f.ownNumbers()
	for _, c := range plan.Conflicts {
		var ids []journal.NodeID
		for _, id := range c.Theirs {
			if back, ok := own[id]; ok {
				id = back
			}
			ids = append(ids, id)
		}
		theirs, err := lastChange(f.store, f.own, ids)
		if err != nil {
			return err
		}
		ours, err := lastChange(w.store, f.note.Seq, c.Ours)
		if err != nil {
			return err
		}
		e.Conflicts = append(e.Conflicts, Conflict{Path: c.Path, Reason: fmt.Sprintf("%s (fork: %s; workspace: %s)", c.Reason, theirs, ours)})
	}
	return e.Hinted("make the fork or the workspace agree on these paths, by an edit, undo or rollback, and merge again; `winkfs diff ..ws:%s` shows what differs", forkName(f.cfg))
}

// lastChange says which record behind a point touched one of the nodes last.
func lastChange(store *journal.Store, behind journal.Seq, ids []journal.NodeID) (string, error) {
	var last journal.Seq
	for _, id := range ids {
		if id == 0 {
			continue
		}
		seqs, err := store.SeqsOfNode(id)
		if err != nil {
			return "", err
		}
		if n := len(seqs); n > 0 && seqs[n-1] > behind {
			last = max(last, seqs[n-1])
		}
	}
	if last == 0 {
		return "not known", nil
	}
	var rec *journal.Record
	err := store.Records(last, last, func(r *journal.Record) error {
		rec = r
		return nil
	})
	if err != nil || rec == nil {
		return "", err
	}
	return whoDid(store, rec)
}

// whoDid names the command, or the process, of a record.
func whoDid(store *journal.Store, r *journal.Record) (string, error) {
	if r.Actor.Exec == 0 {
		return fmt.Sprintf("record %d by %s, pid %d", r.Seq, r.Actor.Comm, r.Actor.PID), nil
	}
	seqs, err := store.SeqsOfOp(journal.OpExecBegin)
	if err != nil {
		return "", err
	}
	who := fmt.Sprintf("exec:%d", r.Actor.Exec)
	for i := len(seqs) - 1; i >= 0; i-- {
		if seqs[i] > r.Seq {
			continue
		}
		found := false
		err := store.Records(seqs[i], seqs[i], func(b *journal.Record) error {
			if b.Note != nil && b.Note.Exec != nil && b.Note.Exec.ID == r.Actor.Exec {
				found = true
				who += fmt.Sprintf(" %q", shortCommand(b.Note.Exec.Command))
			}
			return nil
		})
		if found || err != nil {
			return who, err
		}
	}
	return who, nil
}

// shortCommand is a command for a message.
func shortCommand(argv []string) string {
	text := ""
	for i, a := range argv {
		if i > 0 {
			text += " "
		}
		text += a
	}
	if r := []rune(text); len(r) > 60 {
		text = string(r[:57]) + "..."
	}
	return text
}

func forkName(c *Config) string {
	if c.Name != "" {
		return c.Name
	}
	return c.ID
}

// forkStore is a fork's journal as it was at some moment, opened for reading.
type forkStore struct {
	cfg    *Config
	store  *journal.Store
	state  *journal.State
	note   forkNote
	own    journal.Seq // its first own record
	head   journal.Seq // its last one; a snapshot has one more
	number func(journal.NodeID) journal.NodeID
}

// openFork opens the fork that a merge is of, and refuses one of another
// workspace.
func (w *Workspace) openFork(req *MergeRequest) (*forkStore, error) {
	dir := filepath.Join(w.root(), dirPrefix+req.Workspace)
	if filepath.Base(dir) != dirPrefix+req.Workspace {
		return nil, Fail(CodeUsage, "merge %q: it is no workspace's id", req.Workspace)
	}
	cfg, err := loadFrozen(dir)
	if err != nil {
		return nil, Wrap(CodeUnknown, err, "merge %s: there is no such workspace", req.Workspace)
	}
	if cfg.Parent == nil || cfg.Parent.ID != w.entry.ID {
		return nil, Fail(CodeUsage, "merge %s: it is no fork of %s", forkName(cfg), forkName(w.cfg)).
			Hinted("only a clone made by `winkfs clone --with-changes` can be merged, and only into the workspace that it was made of")
	}
	if req.Snapshot != "" {
		if dir = filepath.Join(w.root(), req.Snapshot); filepath.Base(req.Snapshot) != req.Snapshot || !incomplete(dir) {
			return nil, Fail(CodeUsage, "merge %s: %q holds no snapshot", forkName(cfg), req.Snapshot)
		}
	}
	store, err := journal.Open(dir, journal.Options{ReadOnly: true, Logger: w.log, LockTimeout: lockWait})
	if err != nil {
		return nil, journalError(&Entry{ID: cfg.ID, Dir: dir}, err)
	}
	f := &forkStore{cfg: cfg, store: store, state: store.State(), head: store.Head()}
	if err := f.readNote(w.entry.ID, req.Snapshot != ""); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *forkStore) close() { f.store.Close() }

// readNote finds where the fork left its parent: the newest clone record of
// that parent's, not counting the one that a snapshot begins with.
func (f *forkStore) readNote(parent string, snapshot bool) error {
	seqs, err := f.store.SeqsOfOp(journal.OpClone)
	if err != nil {
		return err
	}
	if n := len(seqs); snapshot && n > 0 {
		seqs = seqs[:n-1]
		f.head--
	}
	if len(seqs) == 0 {
		return Fail(CodeCorrupt, "merge %s: its journal doesn't say where it left its parent", forkName(f.cfg))
	}
	f.own = seqs[len(seqs)-1]
	err = f.store.Records(f.own, f.own, func(r *journal.Record) error {
		if r.Note == nil {
			return nil
		}
		return json.Unmarshal([]byte(r.Note.Text), &f.note)
	})
	if err != nil {
		return fmt.Errorf("merge %s: read where it left its parent: %w", forkName(f.cfg), err)
	}
	if f.note.Parent != parent {
		return Fail(CodeUsage, "merge %s: its journal is a fork of workspace %q", forkName(f.cfg), f.note.Parent)
	}
	return nil
}

// at returns the fork's state at one of its own records.
func (f *forkStore) at(seq journal.Seq) (*journal.State, error) {
	s := f.state.Clone()
	var inverse journal.Inverter
	if err := f.store.AddTo(&inverse, seq+1, f.store.Head()); err != nil {
		return nil, err
	}
	if err := tree.Revive(s, f.store, inverse.Nodes()); err != nil {
		return nil, err
	}
	changes := inverse.Changes()
	for i := range changes {
		s.ApplyChange(&changes[i])
	}
	s.Seq = seq
	return s, nil
}

// ownNumbers returns the fork's own number of each node of the merge.
func (f *forkStore) ownNumbers() map[journal.NodeID]journal.NodeID {
	own := map[journal.NodeID]journal.NodeID{}
	for id := range f.state.Nodes {
		own[f.number(id)] = id
	}
	return own
}
