package fs

import (
	"errors"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// Lookup answers LOOKUP. That a name does not exist is an answer too, with node
// number 0, so that the kernel can keep it.
func (a *adapter) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	parent := node(h)
	s, err := a.tree.Lookup(request(h), parent, name)
	switch {
	case err == nil:
		a.dropped(&s)
		a.encode(out, &s, a.tree.Ttl(parent))
		return fuse.OK
	case err == tree.ErrNotExist || errors.Is(err, tree.ErrNotExist):
		out.SetEntryTimeout(a.tree.Ttl(parent))
		return fuse.OK
	}
	return a.status("lookup", h, name, err)
}

// Forget takes FORGET, which has no answer.
func (a *adapter) Forget(id, n uint64) { a.tree.Forget(journal.NodeID(id), n) }

// entry answers the operations that make a node.
func (a *adapter) entry(op string, h *fuse.InHeader, name string, out *fuse.EntryOut, s *tree.Stat, err error) fuse.Status {
	if err != nil {
		return a.status(op, h, name, err)
	}
	a.encode(out, s, a.tree.Ttl(node(h)))
	return fuse.OK
}

// Mknod answers MKNOD.
func (a *adapter) Mknod(_ <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	r := request(&in.InHeader)
	r.Umask = in.Umask
	s, err := a.tree.Mknod(r, node(&in.InHeader), name, in.Mode, in.Rdev)
	return a.entry("mknod", &in.InHeader, name, out, &s, err)
}

// Mkdir answers MKDIR.
func (a *adapter) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	r := request(&in.InHeader)
	r.Umask = in.Umask
	s, err := a.tree.Mkdir(r, node(&in.InHeader), name, in.Mode)
	return a.entry("mkdir", &in.InHeader, name, out, &s, err)
}

// Symlink answers SYMLINK.
func (a *adapter) Symlink(_ <-chan struct{}, h *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	s, err := a.tree.Symlink(request(h), node(h), name, target)
	return a.entry("symlink", h, name, out, &s, err)
}

// Link answers LINK.
func (a *adapter) Link(_ <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	s, err := a.tree.Link(request(&in.InHeader), journal.NodeID(in.Oldnodeid), node(&in.InHeader), name)
	return a.entry("link", &in.InHeader, name, out, &s, err)
}

// Create answers CREATE. See the package comment for a name that exists.
func (a *adapter) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	r := request(&in.InHeader)
	r.Umask = in.Umask
	s, err := a.tree.Create(r, node(&in.InHeader), name, in.Mode)
	if err != nil && in.Flags&unix.O_EXCL == 0 && errors.Is(err, tree.ErrExist) {
		return fuse.Status(unix.ESTALE)
	}
	out.OpenOut = opened
	return a.entry("create", &in.InHeader, name, &out.EntryOut, &s, err)
}

// opened is how the kernel opens files when OPEN is not implemented.
var opened = fuse.OpenOut{OpenFlags: fuse.FOPEN_KEEP_CACHE}

// Tmpfile answers TMPFILE.
func (a *adapter) Tmpfile(_ <-chan struct{}, in *fuse.CreateIn, out *fuse.CreateOut) fuse.Status {
	r := request(&in.InHeader)
	r.Umask = in.Umask
	s, err := a.tree.Tmpfile(r, node(&in.InHeader), in.Mode)
	out.OpenOut = opened
	return a.entry("tmpfile", &in.InHeader, "", &out.EntryOut, &s, err)
}

// Readlink answers READLINK.
func (a *adapter) Readlink(_ <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	target, err := a.tree.Readlink(request(h), node(h))
	if err != nil {
		return nil, a.status("readlink", h, "", err)
	}
	return []byte(target), fuse.OK
}

// Unlink answers UNLINK.
func (a *adapter) Unlink(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return a.status("unlink", h, name, a.tree.Unlink(request(h), node(h), name))
}

// Rmdir answers RMDIR.
func (a *adapter) Rmdir(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return a.status("rmdir", h, name, a.tree.Rmdir(request(h), node(h), name))
}

// Rename answers RENAME, which has no flags, and RENAME2.
func (a *adapter) Rename(_ <-chan struct{}, in *fuse.RenameIn, oldName, newName string) fuse.Status {
	err := a.tree.Rename(request(&in.InHeader), node(&in.InHeader), oldName, journal.NodeID(in.Newdir), newName, in.Flags)
	return a.status("rename", &in.InHeader, oldName, err)
}
