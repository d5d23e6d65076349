package dev

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// MaxWrite is the size of the largest READ and WRITE.
const MaxWrite = 1 << 20

const (
	pageSize = 4096
	// maxRequest is what read(2) must have room for: a full WRITE with its
	// headers.
	maxRequest = MaxWrite + pageSize
	// bufferSize has room for the largest request followed by its reply: a
	// WRITE's is a few bytes; a READ of MaxWrite bytes is itself a few.
	bufferSize = MaxWrite + 4*pageSize
	// outHeader is the size of struct fuse_out_header.
	outHeader = 16
)

// buffer holds one request and the reply to it.
type buffer struct {
	mem []byte
	// n is the length of the request.
	n int
}

// newBuffer maps memory. With locked it is there before the kernel copies into
// it (see the package comment); locking it in memory as well is best effort: an
// ordinary user's limit may not allow it.
func newBuffer(locked bool) (*buffer, error) {
	flags := unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	if locked {
		flags |= unix.MAP_POPULATE
	}
	mem, err := unix.Mmap(-1, 0, bufferSize, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return nil, fmt.Errorf("map request buffer: %w", err)
	}
	if locked {
		_ = unix.Mlock(mem)
	}
	return &buffer{mem: mem}, nil
}

// free gives the memory back. No request may be in it.
func (b *buffer) free() {
	_ = unix.Munmap(b.mem)
	b.mem = nil
}

// in is the request.
func (b *buffer) in() []byte { return b.mem[:b.n] }

// out is the space for the reply. It begins a header's length before a page,
// so that a READ's bytes are page aligned.
func (b *buffer) out() []byte {
	page := (b.n + outHeader + pageSize - 1) &^ (pageSize - 1)
	return b.mem[page-outHeader:]
}
