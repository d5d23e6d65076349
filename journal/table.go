package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"
)

// fillPercent is how full bbolt leaves the pages that it splits: keys mostly
// come in ascending order.
const fillPercent = 0.9

// table is a bucket within a transaction, with its sum.
type table struct {
	b    *bbolt.Bucket
	name string
	sum  *bucketSum
}

func tableOf(tx *bbolt.Tx, m *dbMeta, i int) (*table, error) {
	b := tx.Bucket([]byte(bucketNames[i]))
	if b == nil {
		return nil, corruptDB("bucket %s is missing", bucketNames[i])
	}
	b.FillPercent = fillPercent
	return &table{b: b, name: bucketNames[i], sum: &m.sums[i]}, nil
}

// get returns the payload of a key, nil if there is none.
func (t *table) get(key []byte) ([]byte, error) {
	v := t.b.Get(key)
	if v == nil {
		return nil, nil
	}
	return unseal(t.name, key, v)
}

func (t *table) has(key []byte) bool { return t.b.Get(key) != nil }

func (t *table) put(key, payload []byte) error {
	v := seal(t.name, key, payload)
	old := t.b.Get(key)
	if bytes.Equal(old, v) && old != nil {
		return nil
	}
	t.forget(old)
	t.sum.count++
	t.sum.sum += uint64(binary.LittleEndian.Uint32(v[len(payload):]))
	if err := t.b.Put(key, v); err != nil {
		return fmt.Errorf("write bucket %s: %w", t.name, err)
	}
	return nil
}

func (t *table) del(key []byte) error {
	old := t.b.Get(key)
	if old == nil {
		return nil
	}
	t.forget(old)
	if err := t.b.Delete(key); err != nil {
		return fmt.Errorf("write bucket %s: %w", t.name, err)
	}
	return nil
}

// forget takes a value out of the sum.
func (t *table) forget(old []byte) {
	if len(old) < 4 {
		return
	}
	t.sum.count--
	t.sum.sum -= uint64(binary.LittleEndian.Uint32(old[len(old)-4:]))
}

// each calls fn for all pairs in order and compares their sum.
func (t *table) each(fn func(key, payload []byte) error) error {
	var got bucketSum
	c := t.b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		p, err := unseal(t.name, k, v)
		if err != nil {
			return err
		}
		got.count++
		got.sum += uint64(binary.LittleEndian.Uint32(v[len(p):]))
		if err := fn(k, p); err != nil {
			return fmt.Errorf("bucket %s, key %x: %w", t.name, k, err)
		}
	}
	if got != *t.sum {
		return corruptDB("bucket %s has %d pairs (sum %x), %d (sum %x) were written", t.name, got.count, got.sum, t.sum.count, t.sum.sum)
	}
	return nil
}
