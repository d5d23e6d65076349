package fs

import (
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/winkfs/winkfs/fs/tree"
)

// capability is the attribute that the kernel asks for before it writes to or
// executes a file. See the package comment.
const capability = "security.capability"

// GetXAttr answers GETXATTR: the value's length, and the value if there is
// room. No room at all means that only the length is asked for.
func (a *adapter) GetXAttr(_ <-chan struct{}, h *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	if name == capability && !a.suid {
		return 0, fuse.ENODATA
	}
	v, err := a.tree.Getxattr(request(h), node(h), name)
	switch {
	case err == tree.ErrNoAttr:
		return 0, fuse.ENODATA
	case err != nil:
		return 0, a.status("getxattr", h, name, err)
	case len(dest) == 0:
		return uint32(len(v)), fuse.OK
	case len(v) > len(dest):
		return uint32(len(v)), fuse.ERANGE
	}
	return uint32(copy(dest, v)), fuse.OK
}

// ListXAttr answers LISTXATTR: names that each end with a zero byte.
func (a *adapter) ListXAttr(_ <-chan struct{}, h *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	names, err := a.tree.Listxattr(request(h), node(h))
	if err != nil {
		return 0, a.status("listxattr", h, "", err)
	}
	n := 0
	for _, name := range names {
		if name == capability && !a.suid {
			continue
		}
		if end := n + len(name) + 1; end <= len(dest) {
			copy(dest[n:], name)
			dest[end-1] = 0
		}
		n += len(name) + 1
	}
	if len(dest) > 0 && n > len(dest) {
		return uint32(n), fuse.ERANGE
	}
	return uint32(n), fuse.OK
}

// SetXAttr answers SETXATTR.
func (a *adapter) SetXAttr(_ <-chan struct{}, in *fuse.SetXAttrIn, name string, value []byte) fuse.Status {
	if uint64(len(value)) < uint64(in.Size) {
		return fuse.EINVAL
	}
	r := request(&in.InHeader)
	r.KillSGID = in.SetXAttrFlags&fuse.SETXATTR_ACL_KILL_SGID != 0
	err := a.tree.Setxattr(r, node(&in.InHeader), name, value[:in.Size], in.Flags)
	return a.status("setxattr", &in.InHeader, name, err)
}

// RemoveXAttr answers REMOVEXATTR.
func (a *adapter) RemoveXAttr(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return a.status("removexattr", h, name, a.tree.Removexattr(request(h), node(h), name))
}
