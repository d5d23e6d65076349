package fs

import (
	"time"

	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// Tree is what the adapter needs of a tree; *tree.Tree is the real one. Names
// are single components. The Stat of an operation that finds or makes a node
// counts one reference of the kernel's, which Forget gives back.
type Tree interface {
	SetNotifier(tree.Notifier)

	Lookup(r *tree.Request, parent journal.NodeID, name string) (tree.Stat, error)
	Forget(id journal.NodeID, n uint64)
	Getattr(r *tree.Request, id journal.NodeID) (tree.Stat, error)
	Setattr(r *tree.Request, id journal.NodeID, a tree.SetAttr) (tree.Stat, error)
	Ttl(id journal.NodeID) time.Duration
	Denied(r *tree.Request, op string, ref *tree.Refusal)

	Create(r *tree.Request, parent journal.NodeID, name string, mode uint32) (tree.Stat, error)
	Tmpfile(r *tree.Request, parent journal.NodeID, mode uint32) (tree.Stat, error)
	Mknod(r *tree.Request, parent journal.NodeID, name string, mode, rdev uint32) (tree.Stat, error)
	Mkdir(r *tree.Request, parent journal.NodeID, name string, mode uint32) (tree.Stat, error)
	Symlink(r *tree.Request, parent journal.NodeID, name, target string) (tree.Stat, error)
	Readlink(r *tree.Request, id journal.NodeID) (string, error)
	Link(r *tree.Request, id, parent journal.NodeID, name string) (tree.Stat, error)
	Unlink(r *tree.Request, parent journal.NodeID, name string) error
	Rmdir(r *tree.Request, parent journal.NodeID, name string) error
	Rename(r *tree.Request, oldParent journal.NodeID, oldName string, newParent journal.NodeID, newName string, flags uint32) error

	Open(r *tree.Request, id journal.NodeID, a tree.Access) error
	Read(r *tree.Request, id journal.NodeID, p []byte, off int64) (int, error)
	Write(r *tree.Request, id journal.NodeID, p []byte, off int64) (int, error)
	Fsync(r *tree.Request, id journal.NodeID, datasync bool) error
	Fallocate(r *tree.Request, id journal.NodeID, mode uint32, off, length int64) error
	Lseek(r *tree.Request, id journal.NodeID, off int64, whence int) (int64, error)
	CopyFileRange(r *tree.Request, src journal.NodeID, srcOff int64, dst journal.NodeID, dstOff, length int64) (int64, error)

	Getxattr(r *tree.Request, id journal.NodeID, name string) ([]byte, error)
	Listxattr(r *tree.Request, id journal.NodeID) ([]string, error)
	Setxattr(r *tree.Request, id journal.NodeID, name string, value []byte, flags uint32) error
	Removexattr(r *tree.Request, id journal.NodeID, name string) error

	Getflags(r *tree.Request, id journal.NodeID) (uint32, error)
	Setflags(r *tree.Request, id journal.NodeID, flags uint32) error

	Readdir(r *tree.Request, id journal.NodeID, cookie uint64, plus bool, emit func(*tree.Dirent) bool) error
	Statfs(r *tree.Request, id journal.NodeID) (tree.Statfs, error)
}

var _ Tree = (*tree.Tree)(nil)
