package dev

import "encoding/binary"

// Kinds of notifications (enum fuse_notify_code).
const (
	notifyInvalInode = 2
	notifyInvalEntry = 3
	notifyStore      = 4
	notifyIncEpoch   = 8
)

// expireOnly is FUSE_EXPIRE_ONLY of struct fuse_notify_inval_entry_out.
const expireOnly = 1

// begin starts a message: struct fuse_out_header with the kind as error and no
// unique number. finish sets its length.
func begin(b []byte, kind uint32) []byte {
	b = binary.NativeEndian.AppendUint32(b[:0], 0)
	b = binary.NativeEndian.AppendUint32(b, kind)
	return binary.NativeEndian.AppendUint64(b, 0)
}

func finish(b []byte, extra int) []byte {
	binary.NativeEndian.PutUint32(b, uint32(len(b)+extra))
	return b
}

// appendInode is struct fuse_notify_inval_inode_out: u64 ino, s64 off, s64
// len. Off 0 and len 0 drop all cached bytes and the attributes; a negative off
// would leave the bytes.
func appendInode(b []byte, node uint64) []byte {
	b = begin(b, notifyInvalInode)
	b = binary.NativeEndian.AppendUint64(b, node)
	b = binary.NativeEndian.AppendUint64(b, 0)
	b = binary.NativeEndian.AppendUint64(b, 0)
	return finish(b, 0)
}

// appendEntry is struct fuse_notify_inval_entry_out: u64 parent, u32 namelen,
// u32 flags, then the name with a zero byte that namelen does not count.
func appendEntry(b []byte, parent uint64, name string, flags uint32) []byte {
	b = begin(b, notifyInvalEntry)
	b = binary.NativeEndian.AppendUint64(b, parent)
	b = binary.NativeEndian.AppendUint32(b, uint32(len(name)))
	b = binary.NativeEndian.AppendUint32(b, flags)
	b = append(b, name...)
	return finish(append(b, 0), 0)
}

// appendEpoch has no body: every directory entry that the kernel has cached is
// looked up again at its next use.
func appendEpoch(b []byte) []byte { return finish(begin(b, notifyIncEpoch), 0) }

// appendStore is struct fuse_notify_store_out: u64 nodeid, u64 offset, u32
// size, u32 padding; size bytes follow.
func appendStore(b []byte, node, off uint64, size int) []byte {
	b = begin(b, notifyStore)
	b = binary.NativeEndian.AppendUint64(b, node)
	b = binary.NativeEndian.AppendUint64(b, off)
	b = binary.NativeEndian.AppendUint32(b, uint32(size))
	b = binary.NativeEndian.AppendUint32(b, 0)
	return finish(b, size)
}
