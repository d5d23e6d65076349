package journal

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
)

// batchWriter moves a batch into the database within one transaction.
type batchWriter struct {
	tx *bbolt.Tx
	m  *dbMeta
	b  *batch
	// moved are the nodes that nodes() carried from one of their buckets to
	// the other.
	moved map[NodeID]bool
}

// write writes the batch and the meta value. The transaction must be rolled
// back on error, and m is then of no use.
func (w *batchWriter) write() error {
	for _, step := range []func() error{w.nodes, w.entries, w.content, w.execs, w.points, w.logs, w.byExec, w.byNode, w.marks, w.byOp} {
		if err := step(); err != nil {
			return err
		}
	}
	if !w.b.empty() {
		w.m.seq, w.m.hash, w.m.end = w.b.seq, w.b.hash, w.b.end
	}
	w.m.nextNode = max(w.m.nextNode, w.b.nextNode)
	w.m.nextExec = max(w.m.nextExec, w.b.nextExec)
	return writeMeta(w.tx, w.m)
}

func (w *batchWriter) entries() error {
	t, err := tableOf(w.tx, w.m, bucketEntries)
	if err != nil {
		return err
	}
	keys := slices.SortedFunc(maps.Keys(w.b.entries), func(a, b entryKey) int {
		return cmp.Or(cmp.Compare(a.parent, b.parent), strings.Compare(a.name, b.name))
	})
	for _, k := range keys {
		key := append(beKey(uint64(k.parent)), k.name...)
		e := w.b.entries[k]
		if e.Kind == EntryNone {
			err = t.del(key)
		} else {
			err = t.put(key, appendEntry(nil, e))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *batchWriter) execs() error {
	t, err := tableOf(w.tx, w.m, bucketExecs)
	if err != nil {
		return err
	}
	for i := range w.b.execs {
		n := &w.b.execs[i]
		key := beKey(uint64(n.exec.ID))
		before, err := getExec(t, key)
		if err != nil {
			return err
		}
		if err := t.put(key, appendExec(nil, n.apply(before))); err != nil {
			return err
		}
	}
	return nil
}

func getExec(t *table, key []byte) (*Exec, error) {
	p, err := t.get(key)
	if err != nil || p == nil {
		return nil, err
	}
	w := &wire{b: p}
	e := w.exec()
	if err := w.end(); err != nil {
		return nil, corruptDB("exec of key %x: %v", key, err)
	}
	return e, nil
}

func (w *batchWriter) points() error {
	t, err := tableOf(w.tx, w.m, bucketPoints)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(w.b.points)) {
		p := w.b.points[name]
		if !p.set {
			err = t.del(pointKey(name))
		} else {
			err = t.put(pointKey(name), binary.AppendUvarint(nil, uint64(p.seq)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pointKey is a checkpoint's key: never empty, which bbolt refuses.
func pointKey(name string) []byte { return append([]byte{'='}, name...) }

func (w *batchWriter) logs() error {
	t, err := tableOf(w.tx, w.m, bucketLogs)
	if err != nil {
		return err
	}
	for _, l := range w.b.logs {
		if err := t.put(beKey(uint64(l.seq)), binary.AppendUvarint(nil, uint64(l.loc.File))); err != nil {
			return err
		}
	}
	return nil
}

func (w *batchWriter) byExec() error {
	t, err := tableOf(w.tx, w.m, bucketByExec)
	if err != nil {
		return err
	}
	for i, r := range w.b.runs {
		first := r.first
		if i == 0 {
			if first, err = joinStoredRun(t, r); err != nil {
				return err
			}
		}
		key := beKey(uint64(r.exec), uint64(first))
		if err := t.put(key, binary.AppendUvarint(nil, uint64(r.last-first))); err != nil {
			return err
		}
	}
	return nil
}

// joinStoredRun returns the first record of the stored run that r continues,
// or r's own.
func joinStoredRun(t *table, r execRun) (Seq, error) {
	c := t.b.Cursor()
	k, _ := c.Seek(beKey(uint64(r.exec), uint64(r.first)))
	if k == nil {
		k, _ = c.Last()
	} else {
		k, _ = c.Prev()
	}
	if len(k) != 16 || binary.BigEndian.Uint64(k) != uint64(r.exec) {
		return r.first, nil
	}
	p, err := t.get(k)
	if err != nil {
		return 0, err
	}
	first := Seq(binary.BigEndian.Uint64(k[8:]))
	n, _ := binary.Uvarint(p)
	if first+Seq(n)+1 == r.first {
		return first, nil
	}
	return r.first, nil
}

// blockBits is the number of records, as a power of two, whose mentions of a
// node share one value of the index.
const blockBits = 12

func (w *batchWriter) byNode() error { return w.mentions(bucketByNode, w.b.touched) }

func (w *batchWriter) byOp() error { return w.mentions(bucketByOp, w.b.ops) }

// mentions adds records to an index.
func (w *batchWriter) mentions(bucket int, touched []touch) error {
	t, err := tableOf(w.tx, w.m, bucket)
	if err != nil {
		return err
	}
	ts := slices.Clone(touched)
	slices.SortFunc(ts, func(a, b touch) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmpSeq(a.seq, b.seq))
	})
	ts = slices.Compact(ts)
	for len(ts) > 0 {
		n := 1
		for n < len(ts) && ts[n].node == ts[0].node && ts[n].seq>>blockBits == ts[0].seq>>blockBits {
			n++
		}
		if err := addMentions(t, ts[:n]); err != nil {
			return err
		}
		ts = ts[n:]
	}
	return nil
}

// addMentions appends records of one block to a node's or operation's value: each is written
// as its distance from the one before, the first from the block's begin.
func addMentions(t *table, ts []touch) error {
	block := ts[0].seq >> blockBits
	key := beKey(uint64(ts[0].node), uint64(block))
	old, err := t.get(key)
	if err != nil {
		return err
	}
	last := block << blockBits
	for w := (&wire{b: old}); len(w.b) > 0; {
		last += Seq(w.uvarint())
	}
	val := bytes.Clone(old)
	for _, m := range ts {
		val = binary.AppendUvarint(val, uint64(m.seq-last))
		last = m.seq
	}
	return t.put(key, val)
}

func (w *batchWriter) marks() error {
	t, err := tableOf(w.tx, w.m, bucketMarks)
	if err != nil {
		return err
	}
	for _, m := range w.b.marks {
		if err := t.put(beKey(uint64(m.seq)), appendLoc(nil, m.loc)); err != nil {
			return err
		}
	}
	return nil
}

// beKey makes a key of big-endian numbers, so that keys sort as the numbers.
func beKey(ns ...uint64) []byte {
	k := make([]byte, 0, 8*len(ns)+16)
	for _, n := range ns {
		k = binary.BigEndian.AppendUint64(k, n)
	}
	return k
}
