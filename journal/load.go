package journal

import (
	"encoding/binary"
	"fmt"
	"sync"

	"go.etcd.io/bbolt"
)

// loadState reads the state that the database holds. Its cost is in proportion
// to what the workspace has changed, not to the length of history.
func (s *Store) loadState(m *dbMeta) (*State, error) {
	st := newStateFor(m)
	st.Seq, st.NextNode, st.NextExec = m.seq, max(m.nextNode, st.NextNode), max(m.nextExec, st.NextExec)
	l := stateLoader{st}
	var nodes, rest error
	var both sync.WaitGroup
	both.Go(func() { nodes = s.loadBuckets(m, loading{bucketNodes, l.node}) })
	both.Go(func() {
		rest = s.loadBuckets(m, loading{bucketEntries, l.entry}, loading{bucketContent, l.content},
			loading{bucketExecs, l.exec}, loading{bucketPoints, l.point})
	})
	both.Wait()
	if nodes != nil {
		return nil, nodes
	}
	return st, rest
}

// newStateFor returns a state before the first record with room for what the
// database says it holds.
func newStateFor(m *dbMeta) *State {
	st := NewState()
	room := func(bucket int) int { return int(min(m.sums[bucket].count, 1<<20)) }
	st.Nodes = make(map[NodeID]*Node, room(bucketNodes))
	st.Contents = make(map[NodeID]*Content, room(bucketContent))
	return st
}

// loading is a bucket and what takes in its pairs.
type loading struct {
	bucket int
	each   func(key, payload []byte) error
}

// loadBuckets reads buckets in a transaction of its own.
func (s *Store) loadBuckets(m *dbMeta, ls ...loading) error {
	return s.view(func(tx *bbolt.Tx) error {
		for _, l := range ls {
			t, err := tableOf(tx, m, l.bucket)
			if err != nil {
				return err
			}
			if err := t.each(l.each); err != nil {
				return err
			}
		}
		return nil
	})
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
	if err := packs.each(func(key, payload []byte) error { return checkPack(&s.files, key, payload) }); err != nil {
		return err
	}
	keeps, err := tableOf(tx, m, bucketKeeps)
	if err != nil {
		return err
	}
	return keeps.each(func(key, payload []byte) error { return checkKept(&s.files, key, payload) })
}

// checkKept checks that a keep that the database knows is there and has its
// length.
func checkKept(files *fileTable, key, payload []byte) error {
	num, err := idKey(key, 8)
	if err != nil {
		return err
	}
	w := &wire{b: payload}
	at, size := Seq(w.uvarint()), int64(w.uvarint())
	if err := dbWire(w); err != nil {
		return err
	}
	name := keepName(uint32(num), at)
	d := files.get(uint32(num))
	if d == nil || d.name != name {
		return corruptAt(name, -1, 0, "the file is missing")
	}
	if d.found != size {
		return corruptAt(name, d.found, 0, "the file has %d bytes, %d were written", d.found, size)
	}
	return nil
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
