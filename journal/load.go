package journal

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"
)

// loadState reads the state that the database holds.
func loadState(tx *bbolt.Tx, m *dbMeta) (*State, error) {
	st := NewState()
	st.Seq, st.NextNode, st.NextExec = m.seq, max(m.nextNode, st.NextNode), max(m.nextExec, st.NextExec)
	l := stateLoader{st}
	for _, b := range []struct {
		bucket int
		each   func(key, payload []byte) error
	}{
		{bucketNodes, l.node},
		{bucketEntries, l.entry},
		{bucketContent, l.content},
		{bucketExecs, l.exec},
		{bucketPoints, l.point},
	} {
		t, err := tableOf(tx, m, b.bucket)
		if err != nil {
			return nil, err
		}
		if err := t.each(b.each); err != nil {
			return nil, err
		}
	}
	return st, nil
}

// stateLoader puts the pairs of the state's buckets into a State.
type stateLoader struct{ st *State }

func (l stateLoader) node(key, payload []byte) error {
	id, err := idKey(key, 8)
	if err != nil {
		return err
	}
	l.st.Nodes[NodeID(id)], err = decodeNode(payload)
	return err
}

func decodeNode(payload []byte) (*Node, error) {
	w := &wire{b: payload}
	n := w.node(&zeroNode, 0)
	return n, dbWire(w)
}

func (l stateLoader) entry(key, payload []byte) error {
	if len(key) < 9 {
		return corruptDB("key %x is too short", key)
	}
	w := &wire{b: payload}
	e := w.entry()
	l.st.setEntry(NodeID(binary.BigEndian.Uint64(key)), string(key[8:]), e)
	return dbWire(w)
}

func (l stateLoader) content(key, payload []byte) error {
	id, err := idKey(key, 16)
	if err != nil {
		return err
	}
	return setStoredChunk(l.st.content(NodeID(id)), binary.BigEndian.Uint64(key[8:]), payload)
}

func (l stateLoader) exec(key, payload []byte) error {
	id, err := idKey(key, 8)
	if err != nil {
		return err
	}
	w := &wire{b: payload}
	l.st.Execs[ExecID(id)] = w.exec()
	return dbWire(w)
}

func (l stateLoader) point(key, payload []byte) error {
	if len(key) < 1 {
		return corruptDB("key of a checkpoint is empty")
	}
	w := &wire{b: payload}
	l.st.Checkpoints[string(key[1:])] = Seq(w.uvarint())
	return dbWire(w)
}

// idKey returns the number that a key of n bytes begins with.
func idKey(key []byte, n int) (uint64, error) {
	if len(key) != n {
		return 0, corruptDB("key %x has %d bytes instead of %d", key, len(key), n)
	}
	return binary.BigEndian.Uint64(key), nil
}

func dbWire(w *wire) error {
	if err := w.end(); err != nil {
		return corruptDB("value can't be read: %v", err)
	}
	return nil
}

// checkFiles checks that the files that the database knows of are there.
func (s *Store) checkFiles(tx *bbolt.Tx, m *dbMeta) error {
	logs, err := tableOf(tx, m, bucketLogs)
	if err != nil {
		return err
	}
	err = logs.each(func(key, payload []byte) error {
		first, err := idKey(key, 8)
		if err != nil {
			return err
		}
		w := &wire{b: payload}
		num := w.uvarint32()
		if s.files.get(num) == nil {
			return corruptAt(logName(Seq(first), num), -1, Seq(first), "the log segment is missing")
		}
		return dbWire(w)
	})
	if err != nil {
		return err
	}
	packs, err := tableOf(tx, m, bucketPacks)
	if err != nil {
		return err
	}
	return packs.each(func(key, payload []byte) error { return checkPack(&s.files, key, payload) })
}

// checkPack checks that a pack that the database knows is there and has at
// least the length noted.
func checkPack(files *fileTable, key, payload []byte) error {
	num, err := idKey(key, 8)
	if err != nil {
		return err
	}
	w := &wire{b: payload}
	size := int64(w.uvarint())
	if err := dbWire(w); err != nil {
		return err
	}
	d := files.get(uint32(num))
	if d == nil {
		return corruptAt(packName(uint32(num)), -1, 0, "the pack is missing")
	}
	got, err := files.size(d)
	if err != nil {
		return fmt.Errorf("look at pack: %w", err)
	}
	if got < size {
		return corruptAt(d.name, got, 0, "the pack is cut short: %d bytes were written", size)
	}
	return nil
}
