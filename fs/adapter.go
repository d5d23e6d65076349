package fs

import (
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/dev"
	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// adapter is the filesystem as go-fuse's protocol server wants it. Its methods
// are called from several goroutines. The cancel channels are not used:
// operations can't be interrupted (see package dev).
type adapter struct {
	tree  Tree
	log   *slog.Logger
	limit limiter
	// suid says that set-id bits and file capabilities have an effect in the
	// mount; immutable.
	suid bool
	// auditOpens says that the kernel is to send OPEN; immutable.
	auditOpens bool
	// notify is set before the first request of a mount.
	notify atomic.Pointer[Notifier]
}

var _ fuse.RawFileSystem = (*adapter)(nil)

// String names the filesystem in the library's messages.
func (a *adapter) String() string { return "winkfs" }

// SetDebug does nothing: debugging is the logger's level.
func (a *adapter) SetDebug(bool) {}

// Init is never called, as the library's server type is not used.
func (a *adapter) Init(*fuse.Server) {}

// OnUnmount is never called, as the library's server type is not used.
func (a *adapter) OnUnmount() {}

// resent is FUSE_UNIQUE_RESEND.
const resent = 1 << 63

// request says who asks.
func request(h *fuse.InHeader) *tree.Request {
	return &tree.Request{TID: h.Pid, UID: h.Uid, GID: h.Gid, Unique: h.Unique &^ resent}
}

// node is the number of the node that the request is about.
func node(h *fuse.InHeader) journal.NodeID { return journal.NodeID(dev.Root(h.NodeId)) }

// encode fills in an entry: the node, its attributes, and how long the kernel
// may believe both. What the host does within a directory, or through another
// name of a file, may be seen later than what it does to their names.
func (a *adapter) encode(out *fuse.EntryOut, s *tree.Stat, ttl time.Duration) {
	out.NodeId = uint64(s.ID)
	out.Generation = s.Gen
	out.SetEntryTimeout(ttl)
	if s.Attr.Mode&unix.S_IFMT == unix.S_IFDIR || s.Attr.Nlink > 1 {
		ttl = min(ttl, a.tree.Ttl(s.ID))
	}
	out.SetAttrTimeout(ttl)
	encodeAttr(&out.Attr, s)
}

func encodeAttr(out *fuse.Attr, s *tree.Stat) {
	at := &s.Attr
	out.Ino, out.Size, out.Blocks = uint64(s.ID), at.Size, s.Blocks
	out.Atime, out.Atimensec = split(at.Atime)
	out.Mtime, out.Mtimensec = split(at.Mtime)
	out.Ctime, out.Ctimensec = split(at.Ctime)
	out.Mode, out.Nlink, out.Rdev = at.Mode, at.Nlink, at.Rdev
	out.Uid, out.Gid = shown(at.UID, selfUID), shown(at.GID, selfGID)
	out.Blksize = s.Blksize
}

// The daemon's own ids, as its user namespace has them.
var selfUID, selfGID = uint32(os.Geteuid()), uint32(os.Getegid())

// shown returns the id that the kernel is told. An owner that is not known,
// since the daemon's user namespace does not map it, becomes the daemon's own:
// told the overflow id, the kernel would refuse every write to the file
// (HAS_UNMAPPED_ID in inode_permission).
func shown(id, self uint32) uint32 {
	if id == tree.NoID {
		return self
	}
	return id
}

// split returns a time as seconds, negative before 1970, and nanoseconds,
// never negative.
func split(t journal.Timespec) (sec uint64, nsec uint32) {
	s, n := int64(t)/1e9, int64(t)%1e9
	if n < 0 {
		s, n = s-1, n+1e9
	}
	return uint64(s), uint32(n)
}

// join is the inverse of split. Times that nanoseconds in 64 bits can't hold
// (before 1677, after 2262) become the nearest that they can.
func join(sec uint64, nsec uint32) journal.Timespec {
	const limit = (1<<63 - 1) / 1_000_000_000
	switch s := int64(sec); {
	case s >= limit:
		return 1<<63 - 1
	case s <= -limit:
		return -1 << 63
	default:
		return journal.Timespec(s*1e9 + int64(nsec))
	}
}
