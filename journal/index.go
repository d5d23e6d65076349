package journal

import (
	"encoding/binary"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"
)

// SeqsOfNode returns the records that concern a node, in order: changes of its
// attributes and content, and of entries that lead or led to it or lie in it.
func (s *Store) SeqsOfNode(id NodeID) ([]Seq, error) {
	seqs, err := s.mentionedSeqs(bucketByNode, id, func(b *batch) []touch { return b.touched })
	if err != nil {
		return nil, fmt.Errorf("look up records of node %d: %w", id, err)
	}
	return seqs, nil
}

// SeqsOfOp returns the records of an operation, in order. Only operations that
// are not on files are listed: commands, checkpoints, undo and its kin,
// refusals.
func (s *Store) SeqsOfOp(op Op) ([]Seq, error) {
	if !op.noted() {
		return nil, fmt.Errorf("look up records of operation %s: %w", op, ErrUnknownOp)
	}
	seqs, err := s.mentionedSeqs(bucketByOp, NodeID(op), func(b *batch) []touch { return b.ops })
	if err != nil {
		return nil, fmt.Errorf("look up records of operation %s: %w", op, err)
	}
	return seqs, nil
}

// mentionedSeqs reads an index of mentions.
func (s *Store) mentionedSeqs(bucket int, id NodeID, of func(*batch) []touch) ([]Seq, error) {
	pending := s.pendingSeqs(func(b *batch) []Seq {
		var out []Seq
		for _, t := range of(b) {
			if t.node == id {
				out = append(out, t.seq)
			}
		}
		return out
	})
	stored, err := s.storedSeqs(bucket, uint64(id), func(out []Seq, k, p []byte) ([]Seq, error) {
		last := Seq(binary.BigEndian.Uint64(k[8:])) << blockBits
		w := &wire{b: p}
		for len(w.b) > 0 {
			last += Seq(w.uvarint())
			out = append(out, last)
		}
		return out, dbWire(w)
	})
	return mergeSeqs(stored, pending), err
}

// SeqsOfExec returns the records of an exec, in order; of exec 0, those of
// processes outside any.
func (s *Store) SeqsOfExec(id ExecID) ([]Seq, error) {
	pending := s.pendingSeqs(func(b *batch) []Seq {
		var out []Seq
		for _, r := range b.runs {
			if r.exec == id {
				out = appendRun(out, r.first, r.last)
			}
		}
		return out
	})
	stored, err := s.storedSeqs(bucketByExec, uint64(id), func(out []Seq, k, p []byte) ([]Seq, error) {
		first := Seq(binary.BigEndian.Uint64(k[8:]))
		w := &wire{b: p}
		return appendRun(out, first, first+Seq(w.uvarint())), dbWire(w)
	})
	if err != nil {
		return nil, fmt.Errorf("look up records of exec %d: %w", id, err)
	}
	return mergeSeqs(stored, pending), nil
}

func appendRun(out []Seq, first, last Seq) []Seq {
	for q := first; q <= last; q++ {
		out = append(out, q)
	}
	return out
}

// pendingSeqs collects from the batches that are not in the database yet. It
// is called before the database is read, so that a commit in between makes
// records appear twice but never not at all.
func (s *Store) pendingSeqs(from func(*batch) []Seq) []Seq {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Seq
	for _, b := range []*batch{s.committing, s.pend} {
		if b != nil {
			out = append(out, from(b)...)
		}
	}
	return out
}

// storedSeqs reads all keys of an index that begin with id.
func (s *Store) storedSeqs(bucket int, id uint64, add func(out []Seq, k, p []byte) ([]Seq, error)) ([]Seq, error) {
	var out []Seq
	err := s.view(func(tx *bbolt.Tx) error {
		t, err := tableOf(tx, &dbMeta{}, bucket)
		if err != nil {
			return err
		}
		c := t.b.Cursor()
		for k, v := c.Seek(beKey(id)); len(k) == 16 && binary.BigEndian.Uint64(k) == id; k, v = c.Next() {
			p, err := unseal(t.name, k, v)
			if err != nil {
				return err
			}
			if out, err = add(out, k, p); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

func mergeSeqs(a, b []Seq) []Seq {
	out := append(a, b...)
	slices.Sort(out)
	return slices.Compact(out)
}
