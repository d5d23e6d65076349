package fsx

import (
	"fmt"
	"math/rand/v2"

	"golang.org/x/sys/unix"
)

// kind is what an op does.
type kind int

const (
	read kind = iota
	write
	appendTo
	truncate  // by descriptor
	truncPath // by name
	mapRead
	mapWrite // and then perhaps msync, as flags say
	fallocate
	copyRange
	directRead
	directWrite
	seek // SEEK_DATA and SEEK_HOLE
	fsync
	reopen
	dropCaches
	remount
	whole // the whole file through a descriptor of its own
	kinds
)

var kindNames = [kinds]string{
	"read", "write", "append", "truncate", "truncate-path", "map-read", "map-write", "fallocate", "copy", "direct-read",
	"direct-write", "seek", "fsync", "reopen", "drop-caches", "remount", "whole",
}

var weights = [kinds]int{
	read: 10, write: 14, appendTo: 4, truncate: 4, truncPath: 2, mapRead: 8, mapWrite: 8, fallocate: 12, copyRange: 5,
	directRead: 4, directWrite: 4, seek: 4, fsync: 2, reopen: 2, dropCaches: 1, remount: 1, whole: 2,
}

// op is one operation. Which fields count depends on the kind.
type op struct {
	kind    kind
	off, n  int64
	to      int64 // where copyRange copies to
	flags   int   // of fallocate; 1 = msync after mapWrite, datasync
	pattern byte
}

func (o op) String() string {
	s := fmt.Sprintf("%-13s %#8x +%#-7x", kindNames[o.kind], o.off, o.n)
	switch o.kind {
	case copyRange:
		s += fmt.Sprintf(" to %#x", o.to)
	case fallocate:
		s += fmt.Sprintf(" flags %#x", o.flags)
	}
	return s
}

// concerns reports whether the operation may change the byte at off.
func (o op) concerns(off int64) bool {
	switch o.kind {
	case write, mapWrite, directWrite, fallocate:
		return o.off <= off && off < o.off+o.n
	case copyRange:
		return o.to <= off && off < o.to+o.n
	case truncate, truncPath, appendTo, remount:
		return true
	}
	return false
}

const page = 4096

// gen makes operations on a file of at most max bytes.
type gen struct {
	r   *rand.Rand
	max int64
}

func (g *gen) next(size int64) op {
	o := op{kind: g.kind(), pattern: byte(g.r.UintN(256))}
	o.off, o.n = g.rangeIn(size)
	switch o.kind {
	case truncate, truncPath:
		o.off, o.n = g.pick(0, g.r.Int64N(g.max), g.r.Int64N(g.max), g.r.Int64N(g.max)&^(page-1)), 0
	case appendTo:
		o.off, o.n = 0, min(o.n, g.max-size)
	case directRead, directWrite:
		o.off &^= page - 1
		o.n = max(page, (o.n+page-1)&^(page-1))
		o.n = min(o.n, g.max-o.off)
	case mapWrite, fsync:
		o.flags = g.r.IntN(2)
	case fallocate:
		o.flags = int(g.pick(0, unix.FALLOC_FL_KEEP_SIZE, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE,
			unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, unix.FALLOC_FL_ZERO_RANGE,
			unix.FALLOC_FL_ZERO_RANGE|unix.FALLOC_FL_KEEP_SIZE))
		o.n = max(o.n, 1)
	case copyRange:
		o.to = g.r.Int64N(g.max)
		o.n = min(o.n, g.max-o.to)
		if o.off < o.to+o.n && o.to < o.off+o.n { // within one file they may not overlap
			o.kind = read
		}
	}
	return o
}

// rangeIn returns a range that begins in the file more often than behind it.
func (g *gen) rangeIn(size int64) (off, n int64) {
	off = g.r.Int64N(g.max)
	if size > 0 && g.r.IntN(3) > 0 {
		off = g.r.Int64N(size)
	}
	if g.r.IntN(4) == 0 {
		off &^= page - 1
	}
	n = g.pick(g.r.Int64N(200), g.r.Int64N(3*page), page, g.r.Int64N(64<<10), g.r.Int64N(g.max))
	return off, min(n, g.max-off)
}

func (g *gen) pick(from ...int64) int64 { return from[g.r.IntN(len(from))] }

func (g *gen) kind() kind {
	total := 0
	for _, w := range weights {
		total += w
	}
	n := g.r.IntN(total)
	for k, w := range weights {
		if n -= w; n < 0 {
			return kind(k)
		}
	}
	panic("unreachable")
}
