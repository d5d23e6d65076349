package workspace

import (
	"errors"
	"slices"

	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// errMoved means that something was recorded while a change of history was
// worked out, which then starts again.
var errMoved = errors.New("the workspace changed meanwhile")

// How often a change of history is worked out afresh because a busy workspace
// went on in a way that can't be made up for in the last moment: beside its
// writers, and then while they are held still.
const (
	freeTries  = 3
	stillTries = 10
)

// insist calls try until it doesn't fail with errMoved.
func (w *Workspace) insist(try func() error) error {
	if err := repeat(freeTries, try); !errors.Is(err, errMoved) {
		return err
	}
	err := w.tree.Still(func() error { return repeat(stillTries, try) })
	if errors.Is(err, errMoved) {
		return Wrap(CodeFailure, err, "change history").Hinted("something writes to the workspace all the time; stop it and try again")
	}
	return err
}

func repeat(times int, try func() error) (err error) {
	for range times {
		if err = try(); !errors.Is(err, errMoved) {
			return err
		}
	}
	return err
}

// attempt makes the change of history that work works out, again if the
// workspace went on meanwhile, and shows it.
func (w *Workspace) attempt(work func() (*change, *HistoryResult, error)) (*HistoryResult, error) {
	var c *change
	var res *HistoryResult
	err := w.insist(func() (err error) {
		if c, res, err = work(); err != nil {
			c = nil
			return err
		}
		if err = w.commit(c, res); err != nil && res.Seq == 0 {
			w.tell(c, res)
			c = nil
		}
		return err
	})
	if c != nil {
		w.tell(c, res) // not while the tree is held still
	}
	if err != nil {
		return nil, err
	}
	return res, nil
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
	head journal.Seq
	// nextNode is, if not 0, the number that the next new node must still get:
	// numbers given out since, which no record need have named, are not free.
	nextNode      journal.NodeID
	rec           *journal.Record
	needs         []journal.NodeID
	before, after *tree.View
	changed       []tree.Changed // from before to after
	// again works the record's changes out afresh against the state that the
	// workspace has come to meanwhile, or fails with errMoved. It is called
	// under the tree's lock and must be quick.
	again func(*journal.State) error
	show  *replay // what commit prepared for tell
}

// commit carries a change of history out, if the rules allow it, and makes it
// durable; tell must follow. A dry run only says what it would do. It fails with
// errMoved when the workspace went on since.
func (w *Workspace) commit(c *change, res *HistoryResult) error {
	if err := w.permit(c, res.DryRun); err != nil {
		return err
	}
	res.fill(c.changed)
	if res.DryRun {
		return nil
	}
	c.show = w.prepareReplay(c.changed, c.before, c.after)
	seq, err := w.tree.CommitReplayed(c.needs, c.show.names(), func(s *journal.State) (*journal.Record, error) {
		if s.Seq != c.head || c.nextNode != 0 && s.NextNode != c.nextNode {
			if err := c.again(s); err != nil {
				return nil, err
			}
		}
		c.rec.Changes = bury(c.rec.Changes)
		return c.rec, nil
	})
	if err != nil {
		return err
	}
	res.Seq = uint64(seq)
	return w.store.Sync()
}

// tell shows a change to the kernel and to those who watch the mount. It waits
// for the kernel if the change was made.
func (w *Workspace) tell(c *change, res *HistoryResult) {
	if res.Seq != 0 {
		w.flush()
	}
	c.show.run(w, res.Seq != 0)
	if !res.DryRun {
		w.touchRuntime()
	}
}

// permit asks the rules about a change, which they may forbid where the
// workspace is narrower than what made the files: a clone under a policy of its
// own.
func (w *Workspace) permit(c *change, dryRun bool) error {
	err := w.tree.Permit(c.changed)
	var ref *tree.Refusal
	if !errors.As(err, &ref) {
		return err
	}
	if !dryRun {
		w.tree.Refused(c.rec.Actor, 0, c.rec.Op.String(), ref)
	}
	return Wrap(CodeRefused, err, "change %s", ref.Path).At(ref.Path).Hinted("nothing was changed; leave the path out, or do it in a workspace whose rules allow it")
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
