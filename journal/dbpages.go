package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"os"

	"golang.org/x/sys/unix"
)

// bbolt trusts its pages: a flipped bit in one makes it panic, read out of
// bounds or give a page that is in use to new data. So the structure is
// checked before it is opened. The layout is that of bbolt's
// internal/common/page.go, version 2 of its format.

const (
	pageHeaderSize = 16
	pageBranch     = 0x01
	pageLeaf       = 0x02
	pageMeta       = 0x04
	pageFreelist   = 0x10
	boltMagic      = 0xED0CDAED
	boltVersion    = 2
	elemSize       = 16
	noFreelist     = ^uint64(0)
	maxDepth       = 64
)

// pageChecker walks the pages of one database file.
type pageChecker struct {
	b        []byte
	pageSize uint64
	high     uint64 // pages from here on are not in use
	seen     []byte // by page: 0 not met, 1 reachable, 2 free
	problems []Problem
	one      bool // stop at the first problem
}

type boltMeta struct {
	pageSize             uint32
	root, freelist, high uint64
	txid                 uint64
}

// checkPagesOf checks the file at path and returns the first problem.
func checkPagesOf(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	if fi.Size() < 2*pageHeaderSize {
		return corruptDB("the file has only %d bytes", fi.Size())
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(fi.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map database: %w", err)
	}
	defer unix.Munmap(b)
	if ps := checkPages(b, true); len(ps) > 0 {
		e := corruptDB("%s", ps[0].What)
		e.Pos = ps[0].Pos
		return e
	}
	return nil
}

// checkPages returns what is wrong with the structure of a database.
func checkPages(b []byte, one bool) []Problem {
	c := &pageChecker{b: b, one: one}
	m := c.meta()
	if m == nil {
		return c.problems
	}
	c.pageSize, c.high = uint64(m.pageSize), m.high
	if c.high*c.pageSize > uint64(len(b)) || c.high < 2 {
		c.problem(c.high, "the file is cut short: %d bytes, %d pages of %d in use", len(b), c.high, c.pageSize)
		return c.problems
	}
	c.seen = make([]byte, c.high)
	c.seen[0], c.seen[1] = 1, 1
	c.tree(m.root, nil, nil, 0)
	if m.freelist != noFreelist {
		c.freelist(m.freelist)
	}
	for id, s := range c.seen {
		if s == 0 && !c.full() {
			c.problem(uint64(id), "page %d is neither in use nor free", id)
		}
	}
	return c.problems
}

// problem notes what is wrong with a page.
func (c *pageChecker) problem(page uint64, format string, args ...any) {
	c.problems = append(c.problems, Problem{File: dbName, Pos: int64(page * c.pageSize), What: fmt.Sprintf(format, args...)})
}

func (c *pageChecker) full() bool {
	return c.one && len(c.problems) > 0 || len(c.problems) >= maxProblems
}

// meta returns the newer of the two good meta pages. A commit that the loss of
// power cut short may leave one of them bad: then the other one counts, and
// only a search for all problems names it.
func (c *pageChecker) meta() *boltMeta {
	m0, err0 := metaAt(c.b, 0)
	size := os.Getpagesize()
	if m0 != nil {
		size = int(m0.pageSize)
	}
	m1, err1 := metaAt(c.b, size)
	if !c.one {
		for _, err := range []error{err0, err1} {
			if err != nil {
				c.problem(0, "%v", err)
			}
		}
	}
	switch {
	case m0 == nil && m1 == nil:
		c.problem(0, "both meta pages are damaged: %v; %v", err0, err1)
		return nil
	case m0 == nil:
		return m1
	case m1 == nil || m0.txid > m1.txid:
		return m0
	}
	return m1
}

func metaAt(b []byte, pos int) (*boltMeta, error) {
	const length = 64
	if pos+pageHeaderSize+length > len(b) {
		return nil, fmt.Errorf("meta page at %d: the file is cut short", pos)
	}
	if id := b[pos]; id > 1 || int(id) != min(pos, 1) || binary.LittleEndian.Uint16(b[pos+8:]) != pageMeta {
		return nil, fmt.Errorf("meta page at %d: damaged header", pos)
	}
	v := b[pos+pageHeaderSize:]
	h := fnv.New64a()
	h.Write(v[:56])
	le := binary.LittleEndian
	if le.Uint32(v) != boltMagic || le.Uint32(v[4:]) != boltVersion || le.Uint64(v[56:]) != h.Sum64() {
		return nil, fmt.Errorf("meta page at %d: checksum does not match", pos)
	}
	m := &boltMeta{pageSize: le.Uint32(v[8:]), root: le.Uint64(v[16:]), freelist: le.Uint64(v[32:]), high: le.Uint64(v[40:]), txid: le.Uint64(v[48:])}
	if m.pageSize < 512 || m.pageSize > 1<<20 || m.pageSize&(m.pageSize-1) != 0 {
		return nil, fmt.Errorf("meta page at %d: page size %d", pos, m.pageSize)
	}
	return m, nil
}

// page claims a page and returns its bytes, nil if it can't be right.
func (c *pageChecker) page(id uint64, flags uint16) []byte {
	if id < 2 || id >= c.high {
		c.problem(id, "page %d is out of range", id)
		return nil
	}
	b := c.b[id*c.pageSize:]
	le := binary.LittleEndian
	over := uint64(le.Uint32(b[12:]))
	if le.Uint64(b) != id || le.Uint16(b[8:])&^flags != 0 || le.Uint16(b[8:]) == 0 || over >= c.high-id {
		c.problem(id, "header of page %d is damaged", id)
		return nil
	}
	for i := id; i <= id+over; i++ {
		if c.seen[i] != 0 {
			c.problem(i, "page %d is in use twice", i)
			return nil
		}
		c.seen[i] = 1
	}
	return b[:(over+1)*c.pageSize]
}

// tree walks a branch or leaf page, whose keys must lie in [lo, hi).
func (c *pageChecker) tree(id uint64, lo, hi []byte, depth int) {
	if c.full() {
		return
	}
	if depth > maxDepth {
		c.problem(id, "page %d lies too deep", id)
		return
	}
	b := c.page(id, pageBranch|pageLeaf)
	if b == nil {
		return
	}
	switch binary.LittleEndian.Uint16(b[8:]) {
	case pageBranch:
		c.branch(id, b, lo, hi, depth)
	case pageLeaf:
		c.leaf(id, b, lo, hi, depth)
	default:
		c.problem(id, "page %d is of unknown kind", id)
	}
}

// elems returns the elements of a page; nil if they don't fit.
func (c *pageChecker) elems(id uint64, b []byte) []byte {
	n := int(binary.LittleEndian.Uint16(b[10:]))
	if pageHeaderSize+n*elemSize > len(b) {
		c.problem(id, "page %d has an impossible number of elements", id)
		return nil
	}
	return b[pageHeaderSize : pageHeaderSize+n*elemSize]
}

func (c *pageChecker) branch(id uint64, b, lo, hi []byte, depth int) {
	elems := c.elems(id, b)
	if len(elems) == 0 {
		c.problem(id, "branch page %d is empty", id)
		return
	}
	le := binary.LittleEndian
	keys := make([][]byte, len(elems)/elemSize)
	for i := range keys {
		e := elems[i*elemSize:]
		keys[i] = c.slice(id, b, i, le.Uint32(e), le.Uint32(e[4:]))
		if keys[i] == nil || !c.ordered(id, keys, i, lo, hi) {
			return
		}
	}
	for i, k := range keys {
		end := hi
		if i+1 < len(keys) {
			end = keys[i+1]
		}
		c.tree(le.Uint64(elems[i*elemSize+8:]), k, end, depth+1)
	}
}

func (c *pageChecker) leaf(id uint64, b, lo, hi []byte, depth int) {
	elems := c.elems(id, b)
	le := binary.LittleEndian
	keys := make([][]byte, len(elems)/elemSize)
	for i := range keys {
		e := elems[i*elemSize:]
		flags, pos, ksize, vsize := le.Uint32(e), le.Uint32(e[4:]), le.Uint32(e[8:]), le.Uint32(e[12:])
		kv := c.slice(id, b, i, pos, ksize+vsize)
		if kv == nil || ksize > uint32(len(kv)) || flags > 1 {
			c.problem(id, "page %d: element %d is damaged", id, i)
			return
		}
		keys[i] = kv[:ksize]
		if !c.ordered(id, keys, i, lo, hi) {
			return
		}
		if flags == 1 {
			c.bucket(id, kv[ksize:], depth)
		}
	}
}

// bucket walks a bucket's tree, or the page that is part of its value.
func (c *pageChecker) bucket(id uint64, v []byte, depth int) {
	if len(v) < 16 {
		c.problem(id, "page %d: a bucket is cut short", id)
		return
	}
	if root := binary.LittleEndian.Uint64(v); root != 0 {
		c.tree(root, nil, nil, depth+1)
		return
	}
	in := v[16:]
	if len(in) < pageHeaderSize || binary.LittleEndian.Uint16(in[8:]) != pageLeaf {
		c.problem(id, "page %d: an inline bucket is damaged", id)
		return
	}
	c.leaf(id, in, nil, nil, depth+1)
}

// slice returns n bytes at pos from element i, nil if they leave the page.
func (c *pageChecker) slice(id uint64, b []byte, i int, pos, n uint32) []byte {
	at := uint64(pageHeaderSize+i*elemSize) + uint64(pos)
	if at+uint64(n) > uint64(len(b)) {
		c.problem(id, "page %d: element %d reaches out of the page", id, i)
		return nil
	}
	return b[at : at+uint64(n)]
}

// ordered checks that the key is behind the one before it and within [lo, hi).
func (c *pageChecker) ordered(id uint64, keys [][]byte, i int, lo, hi []byte) bool {
	k := keys[i]
	if i > 0 && bytes.Compare(keys[i-1], k) >= 0 || lo != nil && bytes.Compare(k, lo) < 0 || hi != nil && bytes.Compare(k, hi) >= 0 {
		c.problem(id, "page %d: keys are out of order at element %d", id, i)
		return false
	}
	return true
}

func (c *pageChecker) freelist(id uint64) {
	b := c.page(id, pageFreelist)
	if b == nil {
		return
	}
	n, ids := uint64(binary.LittleEndian.Uint16(b[10:])), b[pageHeaderSize:]
	if n == 0xFFFF {
		n, ids = binary.LittleEndian.Uint64(ids), ids[8:]
	}
	if n > uint64(len(ids)/8) {
		c.problem(id, "the list of free pages is damaged")
		return
	}
	for i := range n {
		p := binary.LittleEndian.Uint64(ids[i*8:])
		if p < 2 || p >= c.high || c.seen[p] != 0 {
			c.problem(id, "page %d is listed as free but is in use", p)
			return
		}
		c.seen[p] = 2
	}
}
