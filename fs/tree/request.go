package tree

import (
	"github.com/winkfs/winkfs/fs/lower"
	"github.com/winkfs/winkfs/journal"
)

// NoID stands for a user or group id that is not known: the request did not
// carry it (FUSE requests on an id-mapped mount), or the daemon's user namespace
// does not map the owner of a lower file.
const NoID = lower.NoID

// Request says who asks. It is taken from the FUSE request's header.
type Request struct {
	TID    uint32 // thread that made the request; 0 = the kernel itself (write-back)
	UID    uint32 // NoID = not carried
	GID    uint32
	Unique uint64 // the request's number
	Umask  uint32 // of a request that makes a file: bits that its mode does not get without a default ACL
	// KillPriv says that the kernel asks for set-id bits to be cleared
	// (FUSE_WRITE_KILL_SUIDGID, FATTR_KILL_SUIDGID).
	KillPriv bool
	// KillSGID says that the kernel asks for the set-group-id bit to be cleared
	// when an access ACL is set (FUSE_SETXATTR_ACL_KILL_SGID).
	KillSGID bool
	// WriteBack says that a write comes from a shared mapping, whose writer is
	// not known.
	WriteBack bool
}

// Stat is a node's attributes with its numbers.
type Stat struct {
	ID      journal.NodeID
	Gen     uint64 // generation: with ID unique over the life of the workspace
	Attr    journal.Attr
	Blocks  uint64 // of 512 bytes
	Blksize uint32
	// Changed says that what the kernel has cached of the node is out of date,
	// and that it should not be answered before it has dropped that.
	Changed bool
}

// SetMask says which fields of a SetAttr count.
type SetMask uint32

// Fields of SetAttr. SetAtimeNow and SetMtimeNow ask for the current time.
const (
	SetMode SetMask = 1 << iota
	SetUID
	SetGID
	SetSize
	SetAtime
	SetMtime
	SetCtime
	SetAtimeNow
	SetMtimeNow
)

// SetAttr is what Setattr changes, all of it or nothing.
type SetAttr struct {
	Mask     SetMask
	Mode     uint32 // permission bits only; the type stays
	UID, GID uint32
	Size     uint64
	Atime    journal.Timespec
	Mtime    journal.Timespec
	Ctime    journal.Timespec
}

// Dirent is one entry of a directory listing.
type Dirent struct {
	Name   string
	ID     journal.NodeID
	Mode   uint32 // file type bits
	Cookie uint64 // position behind this entry
	// Stat is set for a listing with attributes, but for "." and "..". The
	// entry then counts as looked up once it was emitted.
	Stat *Stat
}

// Rename flags, as in renameat2(2).
const (
	RenameNoReplace = 1 << 0
	RenameExchange  = 1 << 1
	RenameWhiteout  = 1 << 2
)

// Statfs is what statfs(2) shows.
type Statfs struct {
	Blocks, Bfree, Bavail, Files, Ffree uint64
	Bsize, Frsize, Namelen              uint32
}

// Notifier tells the kernel to forget what it has cached. Calls only queue:
// they may be made under any lock and never block.
type Notifier interface {
	// Entry says that the name may lead elsewhere than before.
	Entry(parent journal.NodeID, name string)
	// Expire says that the name must be looked up again before it is next used.
	// What is cached of the file stays. An Inode after it holds for what a
	// look-up under way is going to tell the kernel, too.
	Expire(parent journal.NodeID, name string)
	// Epoch says that every name must be looked up again, those included that
	// are known not to exist. It reports false if the kernel can't.
	Epoch() bool
	// Inode says that a file's bytes and attributes, or a directory's listing
	// and attributes, may differ from what was told before.
	Inode(id journal.NodeID)
}

// Watcher watches the lower for changes that the host makes.
type Watcher interface {
	// Watch begins to watch the directory, or the file with several names, that
	// is open at fd, under the number of its node. It must be called before that
	// is read. It reports false when it can't be watched; caches must then be
	// short.
	Watch(id journal.NodeID, fd int) bool
	// Unwatch says that nobody needs the watch any more. It does not block.
	Unwatch(id journal.NodeID)
}

// Attributor finds who is behind a thread id.
type Attributor interface {
	// Actor returns what is known of the thread. Safe for concurrent use.
	Actor(tid, uid uint32) journal.Actor
	// Capable reports whether the thread has a capability (CAP_...) in effect,
	// for what the kernel leaves to the file system and does not tell it. A
	// thread that is gone has none.
	Capable(tid uint32, capability int) bool
	// InGroup reports whether a thread is in a group now.
	InGroup(tid, gid uint32) bool
}
