package journal

import "maps"

// NodeID is the number of a node: its st_ino and its FUSE node id. It never
// changes, copy-up, remount and restart included.
//
// Numbers of lower nodes are derived from the source and the lower's inode
// number (LowerID); numbers of created nodes come from a counter with the top
// bit set (CreatedBit).
type NodeID uint64

// RootID is the root directory of every workspace (FUSE_ROOT_ID).
const RootID NodeID = 1

// CreatedBit marks the numbers of nodes that do not come from a lower file.
const CreatedBit NodeID = 1 << 63

// Timespec is a point in time in nanoseconds since 1970, which may be
// negative.
type Timespec int64

// Attr are a node's own attributes, as stat(2) shows them.
type Attr struct {
	Mode  uint32 // file type and permission bits, as in st_mode
	UID   uint32
	GID   uint32
	Nlink uint32
	Rdev  uint32
	Size  uint64 // bytes; of a lower file without OwnContent the lower's size counts instead
	Atime Timespec
	Mtime Timespec
	Ctime Timespec
	Btime Timespec
}

// Origin tells where a node's lower part is. The zero Origin means that the
// node has none: it was created in the workspace.
type Origin struct {
	Source uint32 // number of the source, from 1; 0 = no lower part
	Path   string // path below the source's directory, "" = the directory itself
	// Fingerprint of the lower at copy-up: what drift is judged against.
	Ino   uint64
	Size  uint64
	Mtime Timespec
	Ctime Timespec
	Mode  uint32
}

// Node is the upper state of a node. Values are immutable once published:
// change a copy (Clone).
type Node struct {
	Attr Attr
	// Own says that Attr and Xattrs are the node's own. Without it the node is
	// only pinned: it holds a name in place for something below it or for
	// itself, and attributes follow the lower.
	Own bool
	// OwnContent says that a regular file's bytes are described by its Content.
	// Without it they are the lower's.
	OwnContent bool
	// Opaque says that a directory's lower entries are hidden.
	Opaque bool
	// Flags are the inode flags (FS_..._FL of ioctl_iflags(2)).
	Flags  uint32
	Origin Origin
	Target string            // of a symbolic link that is Own
	Xattrs map[string]string // complete when Own; nil = none
}

// Clone returns a copy that may be changed.
func (n *Node) Clone() *Node {
	c := *n
	c.Xattrs = maps.Clone(n.Xattrs)
	return &c
}

// EntryKind is what the upper says of a name.
type EntryKind uint8

const (
	// EntryNone means that the upper says nothing: the lower's entry, if the
	// directory has a lower and is not opaque, shows.
	EntryNone EntryKind = iota
	// EntryNode means that the name leads to the node.
	EntryNode
	// EntryWhiteout means that the name does not exist, whatever the lower has.
	EntryWhiteout
)

// Entry is the upper's value for one name in one directory.
type Entry struct {
	Kind EntryKind
	Node NodeID // for EntryNode; for EntryWhiteout the lower node that it hides, 0 = not known
}
