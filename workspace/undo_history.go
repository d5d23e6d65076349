package workspace

import (
	"slices"

	"github.com/winkfs/winkfs/journal"
)

// returning are the operations that take back others. A fork begins at a point,
// so its first own record takes back what came behind that.
var returning = []journal.Op{journal.OpUndo, journal.OpRedo, journal.OpRollback, journal.OpDiscard, journal.OpClone}

// reverted tells which records are taken back at the head. It reads the
// records that took others back, the newest first, no further than asked.
//
// A record that takes others back counts only if nothing later took it back in
// its turn, so one pass from the newest on decides all.
type reverted struct {
	read func(journal.Seq) (*journal.Record, error)
	left []journal.Seq               // records not read yet, ascending
	by   map[journal.Seq]journal.Seq // record -> what took it back
	all  []span                      // spans taken back whole
}

// span is what a rollback of the whole workspace took back: first..last.
type span struct{ first, last, by journal.Seq }

// revertedRecords begins the pass.
func (w *Workspace) revertedRecords() (*reverted, error) {
	h := &reverted{read: w.record, by: map[journal.Seq]journal.Seq{}}
	for _, op := range returning {
		seqs, err := w.store.SeqsOfOp(op)
		if err != nil {
			return nil, err
		}
		h.left = append(h.left, seqs...)
	}
	slices.Sort(h.left)
	return h, nil
}

// next takes in the newest record that is left and returns it if it counts,
// nil if it was taken back; false if there is none.
func (h *reverted) next() (*journal.Record, bool, error) {
	n := len(h.left) - 1
	if n < 0 {
		return nil, false, nil
	}
	seq := h.left[n]
	h.left = h.left[:n]
	if h.known(seq) != 0 {
		return nil, true, nil
	}
	r, err := h.read(seq)
	if err != nil {
		return nil, false, err
	}
	h.take(r)
	return r, true, nil
}

// take notes what a record took back. A rollback or discard that is not
// limited to some paths took back all behind its point; of one that is, no
// record counts as taken back as a whole.
func (h *reverted) take(r *journal.Record) {
	if r.Note == nil {
		return
	}
	for _, s := range r.Note.Undone {
		h.by[s] = r.Seq
	}
	whole := r.Op == journal.OpRollback || r.Op == journal.OpDiscard
	if r.Op == journal.OpClone || whole && r.Note.Text == "" {
		h.all = append(h.all, span{r.Note.Point + 1, r.Seq - 1, r.Seq})
	}
}

// known returns what took the record back, as far as was read; 0 is nothing.
func (h *reverted) known(seq journal.Seq) journal.Seq {
	if by := h.by[seq]; by != 0 {
		return by
	}
	for _, s := range h.all {
		if s.first <= seq && seq <= s.last {
			return s.by
		}
	}
	return 0
}

// upTo reads all that can have taken back the record.
func (h *reverted) upTo(seq journal.Seq) error {
	for n := len(h.left); n > 0 && h.left[n-1] > seq; n = len(h.left) {
		if _, _, err := h.next(); err != nil {
			return err
		}
	}
	return nil
}

// newest returns the newest undo, rollback or discard that stands, nil if
// there is none.
func (h *reverted) newest() (*journal.Record, error) {
	for {
		r, more, err := h.next()
		if err != nil || !more {
			return nil, err
		}
		if r != nil && r.Op != journal.OpRedo && r.Op != journal.OpClone {
			return r, nil
		}
	}
}
