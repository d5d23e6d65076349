package journal

import (
	"bytes"
	"maps"
	"slices"

	"go.etcd.io/bbolt"
)

// isGone reports whether nothing leads to the node any more: it was made in the
// workspace and has lost its last name. Only an undo, or a process that still
// has it open, can be about it. Such nodes and their contents lie in buckets of
// their own, so that opening costs in proportion to what the workspace has, not
// to what it ever had.
func isGone(id NodeID, n *Node) bool {
	return id >= CreatedBit && n.Own && n.Attr.Nlink == 0 && n.Origin.Source == 0
}

// nodeTables are the two places of a node's state.
type nodeTables struct{ here, gone *table }

func (w *batchWriter) nodeTables(here, gone int) (t nodeTables, err error) {
	if t.here, err = tableOf(w.tx, w.m, here); err != nil {
		return t, err
	}
	t.gone, err = tableOf(w.tx, w.m, gone)
	return t, err
}

// nodes writes the nodes' states and notes which ones change their place.
func (w *batchWriter) nodes() error {
	t, err := w.nodeTables(bucketNodes, bucketGone)
	if err != nil {
		return err
	}
	w.moved = map[NodeID]bool{}
	for _, id := range slices.Sorted(maps.Keys(w.b.nodes)) {
		key := beKey(uint64(id))
		n := w.b.nodes[id]
		to, from := t.here, t.gone
		if n != nil && isGone(id, n) {
			to, from = from, to
		}
		if id >= CreatedBit && from.has(key) {
			w.moved[id] = true
			if err := from.del(key); err != nil {
				return err
			}
		}
		if n == nil {
			err = to.del(key)
		} else {
			err = to.put(key, appendNode(nil, &zeroNode, n, 0))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// contentTable returns the table that holds the content of a node whose state
// is written.
func (w *batchWriter) contentTable(t nodeTables, id NodeID) (*table, error) {
	if id < CreatedBit {
		return t.here, nil
	}
	gone, err := tableOf(w.tx, w.m, bucketGone)
	if err != nil {
		return nil, err
	}
	if gone.has(beKey(uint64(id))) {
		return t.gone, nil
	}
	return t.here, nil
}

// moveContents carries over the contents of nodes that changed their place.
func (w *batchWriter) moveContents(t nodeTables) error {
	for _, id := range slices.Sorted(maps.Keys(w.moved)) {
		to, err := w.contentTable(t, id)
		if err != nil {
			return err
		}
		from := t.here
		if to == t.here {
			from = t.gone
		}
		if err := moveContent(from, to, beKey(uint64(id))); err != nil {
			return err
		}
	}
	return nil
}

// moveContent moves all pairs whose keys begin with prefix.
func moveContent(from, to *table, prefix []byte) error {
	var keys, values [][]byte
	c := from.b.Cursor()
	for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		p, err := unseal(from.name, k, v)
		if err != nil {
			return err
		}
		keys, values = append(keys, bytes.Clone(k)), append(values, bytes.Clone(p))
	}
	for i, k := range keys {
		if err := from.del(k); err != nil {
			return err
		}
		if err := to.put(k, values[i]); err != nil {
			return err
		}
	}
	return nil
}

// storedNode returns a node's state, nil if the database has none.
func storedNode(tx *bbolt.Tx, id NodeID) (*Node, error) {
	for _, bucket := range []int{bucketNodes, bucketGone} {
		t, err := tableOf(tx, &dbMeta{}, bucket)
		if err != nil {
			return nil, err
		}
		p, err := t.get(beKey(uint64(id)))
		if err != nil {
			return nil, err
		}
		if p != nil {
			return decodeNode(p)
		}
	}
	return nil, nil
}
