package fs

import (
	"encoding/binary"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// The ioctls by which the kernel asks for a file's attributes in the form of
// XFS (include/uapi/linux/fs.h); x/sys has no names for them. It does so before
// each change of inode flags.
const (
	fsGetXattr  = 0x801c581f // FS_IOC_FSGETXATTR
	fsSetXattr  = 0x401c5820 // FS_IOC_FSSETXATTR
	fsXattrSize = 28         // struct fsxattr; the flags come first
)

// xflags maps the flags of struct fsxattr to inode flags.
var xflags = []struct{ x, flag uint32 }{
	{0x8, 0x10},  // immutable
	{0x10, 0x20}, // append only
	{0x20, 0x8},  // sync
	{0x40, 0x80}, // no atime
	{0x80, 0x40}, // no dump
}

func toXflags(flags uint32) (x uint32) {
	for _, f := range xflags {
		if flags&f.flag != 0 {
			x |= f.x
		}
	}
	return x
}

// fromXflags changes the inode flags that struct fsxattr has, too.
func fromXflags(flags, x uint32) uint32 {
	for _, f := range xflags {
		flags &^= f.flag
		if x&f.x != 0 {
			flags |= f.flag
		}
	}
	return flags
}

// Ioctl answers those that get and set inode flags (ioctl_iflags(2)), which the
// kernel sends however it is asked, after it has checked the caller. ENOTTY to
// all others is what programs expect that ask whether a file is a terminal.
func (a *adapter) Ioctl(_ <-chan struct{}, in *fuse.IoctlIn, payload []byte, out *fuse.IoctlOut, reply []byte) fuse.Status {
	switch {
	case in.Cmd == unix.FS_IOC_GETFLAGS && len(reply) >= 4:
		return a.getFlags(in, reply, func(flags uint32) uint32 { return flags })
	case in.Cmd == fsGetXattr && len(reply) >= fsXattrSize:
		clear(reply)
		return a.getFlags(in, reply, toXflags)
	case in.Cmd == unix.FS_IOC_SETFLAGS && len(payload) >= 4:
		return a.setFlags(in, binary.NativeEndian.Uint32(payload))
	case in.Cmd == fsSetXattr && len(payload) >= fsXattrSize:
		flags, err := a.tree.Getflags(request(&in.InHeader), node(&in.InHeader))
		if err != nil {
			return a.status("setflags", &in.InHeader, "", err)
		}
		return a.setFlags(in, fromXflags(flags, binary.NativeEndian.Uint32(payload)))
	}
	return fuse.Status(unix.ENOTTY)
}

func (a *adapter) getFlags(in *fuse.IoctlIn, reply []byte, form func(uint32) uint32) fuse.Status {
	flags, err := a.tree.Getflags(request(&in.InHeader), node(&in.InHeader))
	if err != nil {
		return a.status("getflags", &in.InHeader, "", err)
	}
	binary.NativeEndian.PutUint32(reply, form(flags))
	return fuse.OK
}

func (a *adapter) setFlags(in *fuse.IoctlIn, flags uint32) fuse.Status {
	return a.status("setflags", &in.InHeader, "", a.tree.Setflags(request(&in.InHeader), node(&in.InHeader), flags))
}
