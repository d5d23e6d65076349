package journal

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"
)

// LookupNode returns the upper state of a node at the head and, if it has any,
// the node's content; nil for what there is none of. The content belongs to
// the caller.
func (s *Store) LookupNode(id NodeID) (*Node, *Content, error) {
	for {
		p := s.pendingNode(id)
		n, c, err := s.lookup(id, p)
		if err != nil {
			return nil, nil, fmt.Errorf("look up node %d: %w", id, err)
		}
		if s.pendingNode(id).commits == p.commits {
			return n, c, nil
		}
	}
}

// lookup puts together what the database and the batches say of a node.
func (s *Store) lookup(id NodeID, p pendingState) (n *Node, c *Content, err error) {
	n, c = p.node, &Content{}
	err = s.view(func(tx *bbolt.Tx) (err error) {
		if !p.known {
			if n, err = storedNode(tx, id); err != nil {
				return err
			}
		}
		return storedContent(tx, id, c)
	})
	if err != nil {
		return nil, nil, err
	}
	for _, sp := range p.splices {
		c.Splice(sp.Off, sp.Len, sp.After)
	}
	if (n == nil || !n.OwnContent) && c.Empty() {
		c = nil
	}
	return n, c, nil
}

// pendingState is what the batches say of a node.
type pendingState struct {
	commits uint64 // ended when this was collected
	known   bool   // node is the newest, nil = gone
	node    *Node
	splices []ContentChange
}

// pendingNode collects what is not in the database yet. It fits a read of the
// database if no commit ended in between.
func (s *Store) pendingNode(id NodeID) pendingState {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := pendingState{commits: s.commits}
	for _, b := range []*batch{s.committing, s.pend} {
		if b == nil {
			continue
		}
		if n, ok := b.nodes[id]; ok {
			p.known, p.node = true, n
		}
		for _, sp := range b.splices {
			if sp.id == id {
				p.splices = append(p.splices, ContentChange{ID: id, Off: sp.off, Len: sp.n, After: b.extents[sp.lo:sp.hi]})
			}
		}
	}
	return p
}

// storedContent reads a node's content. It lies whole in one of the buckets.
func storedContent(tx *bbolt.Tx, id NodeID, into *Content) error {
	for _, bucket := range []int{bucketContent, bucketGoneContent} {
		t, err := tableOf(tx, &dbMeta{}, bucket)
		if err != nil {
			return err
		}
		if err := contentIn(t, id, into); err != nil {
			return err
		}
	}
	return nil
}

func contentIn(t *table, id NodeID, into *Content) error {
	c := t.b.Cursor()
	for k, v := c.Seek(beKey(uint64(id))); len(k) == 16 && NodeID(binary.BigEndian.Uint64(k)) == id; k, v = c.Next() {
		p, err := unseal(t.name, k, v)
		if err != nil {
			return err
		}
		if err := setStoredChunk(into, binary.BigEndian.Uint64(k[8:]), p); err != nil {
			return err
		}
	}
	return nil
}
