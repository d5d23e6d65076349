package dev

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Opcodes that the loop itself looks at (enum fuse_opcode).
const (
	opForget      = 2
	opInit        = 26
	opInterrupt   = 36
	opBatchForget = 42
)

// header reads the parts of struct fuse_in_header that the loop needs:
//
//	0 u32 len · 4 u32 opcode · 8 u64 unique · 16 u64 nodeid · 24 u32 uid, gid, pid
type header []byte

const inHeader = 40

func (h header) opcode() uint32   { return binary.NativeEndian.Uint32(h[4:]) }
func (h header) unique() uint64   { return binary.NativeEndian.Uint64(h[8:]) }
func (h header) node() uint64     { return binary.NativeEndian.Uint64(h[16:]) }
func (h header) setNode(n uint64) { binary.NativeEndian.PutUint64(h[16:], n) }

// answered reports whether the kernel waits for a reply.
func (h header) answered() bool {
	op := h.opcode()
	return op != opForget && op != opBatchForget
}

// rootID is FUSE_ROOT_ID.
const rootID = 1

// Root maps the node number of a request as the filesystem gets it to the
// number that the kernel meant: 0 stands for the root where the library would
// not have passed the request on (see the package comment).
func Root(node uint64) uint64 {
	if node == 0 {
		return rootID
	}
	return node
}

// hackName is the name in the root directory that the library takes for its
// own.
var hackName = []byte(".go-fuse-epoll-hack\x00")

// sidestep gives a request about hackName in the root the node number 0.
func (h header) sidestep() {
	if h.node() == rootID && bytes.Contains(h, hackName) {
		h.setNode(0)
	}
}

// putReply writes a struct fuse_out_header without anything behind it.
func putReply(out []byte, unique uint64, errno unix.Errno) []byte {
	out = out[:outHeader]
	binary.NativeEndian.PutUint32(out[0:], outHeader)
	binary.NativeEndian.PutUint32(out[4:], uint32(-int32(errno)))
	binary.NativeEndian.PutUint64(out[8:], unique)
	return out
}
