package workspace

import (
	"errors"
	"fmt"
	"slices"

	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// errMoved means that something was recorded while a change of history was
// worked out, which then starts again.
var errMoved = errors.New("the workspace changed meanwhile")

// commitTries is how often a change of history is worked out afresh because a
// busy workspace went on in a way that can't be made up for in the last moment.
const commitTries = 10

// attempt calls fn until it doesn't fail with errMoved.
func attempt(fn func() error) error {
	var err error
	for range commitTries {
		if err = fn(); !errors.Is(err, errMoved) {
			return err
		}
	}
	return Wrap(CodeFailure, err, "change history").Hinted("something writes to the workspace all the time; stop it and try again")
}

// floor is the lowest point that the workspace can return to: what comes
// before only says where the sources show.
func (w *Workspace) floor() (journal.Seq, error) {
	base, err := w.tree.Base()
	if err != nil {
		return 0, err
	}
	return base.Seq(), nil
}

// records returns the records of a range, ascending.
func (w *Workspace) records(from, to journal.Seq) ([]*journal.Record, error) {
	var recs []*journal.Record
	if from > to {
		return nil, nil
	}
	err := w.store.Records(from, to, func(r *journal.Record) error {
		recs = append(recs, r)
		return nil
	})
	return recs, err
}

// change is a change of history that was worked out at some record.
type change struct {
	head          journal.Seq
	rec           *journal.Record
	needs         []journal.NodeID
	before, after *tree.View
	changed       []tree.Changed // from before to after
	// again works the record's changes out afresh against the state that the
	// workspace has come to meanwhile, or fails with errMoved. It is called
	// under the tree's lock and must be quick.
	again func(*journal.State) error
}

// make carries a change of history out, makes it durable and shows it to those
// who watch the mount; a dry run only says what it would do. It fails with
// errMoved when the workspace went on since.
func (w *Workspace) make(c *change, res *HistoryResult) error {
	res.fill(c.changed)
	if res.DryRun {
		return nil
	}
	show := w.prepareReplay(c.changed, c.before, c.after)
	seq, err := w.tree.CommitReplayed(c.needs, show.names(), func(s *journal.State) (*journal.Record, error) {
		if s.Seq != c.head {
			if err := c.again(s); err != nil {
				return nil, err
			}
		}
		c.rec.Changes = bury(c.rec.Changes)
		return c.rec, nil
	})
	if err == nil {
		res.Seq = uint64(seq)
		err = w.store.Sync()
		w.flush()
	}
	show.run(w, res.Seq != 0)
	w.touchRuntime()
	return err
}

// finish fills in what a change that was made did, and makes it durable.
func (w *Workspace) finish(res *HistoryResult, before, after *tree.View) error {
	changed, err := tree.Changes(before, after)
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	if res.fill(changed); res.DryRun {
		return nil
	}
	w.flush()
	w.touchRuntime()
	return w.store.Sync()
}

// fill says what changed. Merged is known already.
func (res *HistoryResult) fill(changed []tree.Changed) {
	res.Schema, res.Changes = HistorySchema, effects(changed)
	slices.Sort(res.Merged)
	res.Restored, res.Merged, res.Refused = []string{}, append([]string{}, res.Merged...), []Conflict{}
	for _, c := range changed {
		if _, merged := slices.BinarySearch(res.Merged, c.Path()); !merged {
			res.Restored = append(res.Restored, c.Path())
		}
	}
}

// flush waits until the kernel has forgotten what isn't true any more, so that
// whoever looks after the command sees its effect.
func (w *Workspace) flush() {
	if m, err := w.mount(); err == nil {
		if err := m.Flush(); err != nil {
			w.log.Warn("kernel not told of changes", "err", err)
		}
	}
}

// withChanges counts the records that changed something.
func withChanges(recs []*journal.Record) int {
	n := 0
	for _, r := range recs {
		if len(r.Changes) > 0 {
			n++
		}
	}
	return n
}
