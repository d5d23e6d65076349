package fs

import (
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/tree"
)

// GetAttr answers GETATTR.
func (a *adapter) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	id := node(&in.InHeader)
	s, err := a.tree.Getattr(request(&in.InHeader), id)
	if err != nil {
		return a.status("getattr", &in.InHeader, "", err)
	}
	a.dropped(&s)
	out.SetTimeout(a.tree.Ttl(id))
	encodeAttr(&out.Attr, &s)
	return fuse.OK
}

// SetAttr answers SETATTR.
func (a *adapter) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	id, r := node(&in.InHeader), request(&in.InHeader)
	set := decodeSetattr(&in.SetAttrInCommon)
	// Nothing to set is chown(-1, -1), which clears set-id bits, too; the kernel
	// asks for that only where there is an owner to set.
	r.KillPriv = in.Valid&fuse.FATTR_KILL_SUIDGID != 0 || set.Mask == 0
	s, err := a.tree.Setattr(r, id, set)
	if err != nil {
		return a.status("setattr", &in.InHeader, "", err)
	}
	out.SetTimeout(a.tree.Ttl(id))
	encodeAttr(&out.Attr, &s)
	return fuse.OK
}

// setBits maps the plain bits of fuse_setattr_in.valid. The times have a second
// bit that says "now", which comes with the first.
var setBits = []struct {
	fattr uint32
	mask  tree.SetMask
}{
	{fuse.FATTR_MODE, tree.SetMode},
	{fuse.FATTR_UID, tree.SetUID},
	{fuse.FATTR_GID, tree.SetGID},
	{fuse.FATTR_SIZE, tree.SetSize},
	{fuse.FATTR_CTIME, tree.SetCtime},
}

// decodeSetattr reads the fields themselves: the library's getters would
// replace "now" by their own clock.
func decodeSetattr(in *fuse.SetAttrInCommon) tree.SetAttr {
	out := tree.SetAttr{
		Mode: in.Mode & 0o7777, UID: in.Uid, GID: in.Gid, Size: in.Size,
		Atime: join(in.Atime, in.Atimensec),
		Mtime: join(in.Mtime, in.Mtimensec),
		Ctime: join(in.Ctime, in.Ctimensec),
	}
	for _, b := range setBits {
		if in.Valid&b.fattr != 0 {
			out.Mask |= b.mask
		}
	}
	out.Mask |= timeMask(in.Valid, fuse.FATTR_ATIME, fuse.FATTR_ATIME_NOW, tree.SetAtime, tree.SetAtimeNow)
	out.Mask |= timeMask(in.Valid, fuse.FATTR_MTIME, fuse.FATTR_MTIME_NOW, tree.SetMtime, tree.SetMtimeNow)
	return out
}

func timeMask(valid, set, now uint32, setMask, nowMask tree.SetMask) tree.SetMask {
	switch {
	case valid&now != 0:
		return nowMask
	case valid&set != 0:
		return setMask
	}
	return 0
}

// statxMask is what Statx fills in, whatever was asked for.
const statxMask = unix.STATX_BASIC_STATS | unix.STATX_BTIME

// Statx answers STATX, which the kernel sends for the time of birth.
func (a *adapter) Statx(_ <-chan struct{}, in *fuse.StatxIn, out *fuse.StatxOut) fuse.Status {
	id := node(&in.InHeader)
	s, err := a.tree.Getattr(request(&in.InHeader), id)
	if err != nil {
		return a.status("statx", &in.InHeader, "", err)
	}
	a.dropped(&s)
	out.SetTimeout(a.tree.Ttl(id))
	encodeStatx(&out.Statx, &s)
	return fuse.OK
}

func encodeStatx(out *fuse.Statx, s *tree.Stat) {
	at := &s.Attr
	out.Mask, out.Blksize, out.Nlink = statxMask, s.Blksize, at.Nlink
	out.Uid, out.Gid, out.Mode = shown(at.UID, selfUID), shown(at.GID, selfGID), uint16(at.Mode)
	out.Ino, out.Size, out.Blocks = uint64(s.ID), at.Size, s.Blocks
	out.Atime.Sec, out.Atime.Nsec = split(at.Atime)
	out.Btime.Sec, out.Btime.Nsec = split(at.Btime)
	out.Ctime.Sec, out.Ctime.Nsec = split(at.Ctime)
	out.Mtime.Sec, out.Mtime.Nsec = split(at.Mtime)
	out.RdevMajor, out.RdevMinor = unix.Major(uint64(at.Rdev)), unix.Minor(uint64(at.Rdev))
}

// StatFs answers STATFS.
func (a *adapter) StatFs(_ <-chan struct{}, h *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	s, err := a.tree.Statfs(request(h), node(h))
	if err != nil {
		return a.status("statfs", h, "", err)
	}
	out.Blocks, out.Bfree, out.Bavail = s.Blocks, s.Bfree, s.Bavail
	out.Files, out.Ffree = s.Files, s.Ffree
	out.Bsize, out.Frsize, out.NameLen = s.Bsize, s.Frsize, s.Namelen
	return fuse.OK
}

// Access is not asked for: the kernel checks modes itself
// (default_permissions).
func (a *adapter) Access(<-chan struct{}, *fuse.AccessIn) fuse.Status { return fuse.ENOSYS }
