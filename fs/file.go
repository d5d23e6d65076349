package fs

import (
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// Open (unless openings are audited), OpenDir and Flush are not implemented on
// purpose: the kernel then does without, and without RELEASE.

// Open answers OPEN. No handle is needed: the file is served by its node.
func (a *adapter) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if !a.auditOpens {
		return fuse.ENOSYS
	}
	err := a.tree.Open(request(&in.InHeader), node(&in.InHeader), access(in.Flags))
	if err != nil {
		return a.status("open", &in.InHeader, "", err)
	}
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE | fuse.FOPEN_NOFLUSH
	return fuse.OK
}

// execFlag is __FMODE_EXEC (linux/fs.h): the file is opened by execve(2).
const execFlag = 0x20

// access returns what the flags of open(2) ask for.
func access(flags uint32) tree.Access {
	switch {
	case flags&execFlag != 0:
		return tree.AccessExec
	case flags&unix.O_ACCMODE == unix.O_WRONLY:
		return tree.AccessWrite
	case flags&unix.O_ACCMODE == unix.O_RDWR:
		return tree.AccessReadWrite
	}
	return tree.AccessRead
}

// OpenDir answers ENOSYS.
func (a *adapter) OpenDir(<-chan struct{}, *fuse.OpenIn, *fuse.OpenOut) fuse.Status {
	return fuse.ENOSYS
}

// Flush answers ENOSYS.
func (a *adapter) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.ENOSYS }

// Release has nothing to let go of. It comes only where openings are audited.
func (a *adapter) Release(<-chan struct{}, *fuse.ReleaseIn) {}

// ReleaseDir never comes.
func (a *adapter) ReleaseDir(*fuse.ReleaseIn) {}

// inPlace is the result of a READ whose bytes are where the reply has them.
type inPlace int

func (n *inPlace) Bytes(buf []byte) ([]byte, fuse.Status) { return buf[:*n], fuse.OK }
func (n *inPlace) Size() int                              { return int(*n) }
func (n *inPlace) Done()                                  {}
func (n *inPlace) Readv(dst [][]byte) (int, fuse.Status)  { return int(*n), fuse.OK }

// Read answers READ, into the reply itself.
func (a *adapter) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	n, err := a.tree.Read(request(&in.InHeader), node(&in.InHeader), buf, int64(in.Offset))
	if err != nil {
		return nil, a.status("read", &in.InHeader, "", err)
	}
	res := inPlace(n)
	return &res, fuse.OK
}

// Writev answers WRITE. The loop reads a request into one piece of memory.
func (a *adapter) Writev(cancel <-chan struct{}, in *fuse.WriteIn, data [][]byte) (uint32, fuse.Status) {
	if len(data) != 1 {
		return 0, fuse.EIO
	}
	return a.Write(cancel, in, data[0])
}

// Write answers WRITE. What was written before an error counts; the error comes
// again at the next write. When a write from a mapping is refused, the kernel
// must drop the page, or everybody goes on seeing the refused bytes.
func (a *adapter) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	id, r := node(&in.InHeader), request(&in.InHeader)
	r.WriteBack = in.WriteFlags&fuse.WRITE_CACHE != 0
	r.KillPriv = in.WriteFlags&fuse.WRITE_KILL_SUIDGID != 0
	n, err := a.tree.Write(r, id, data, int64(in.Offset))
	if q := a.notify.Load(); q != nil && err != nil && r.WriteBack {
		q.Inode(id)
	}
	if n > 0 {
		return uint32(n), fuse.OK
	}
	return 0, a.status("write", &in.InHeader, "", err)
}

// fdatasync is FUSE_FSYNC_FDATASYNC.
const fdatasync = 1

// Fsync answers FSYNC.
func (a *adapter) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	err := a.tree.Fsync(request(&in.InHeader), node(&in.InHeader), in.FsyncFlags&fdatasync != 0)
	return a.status("fsync", &in.InHeader, "", err)
}

// FsyncDir answers FSYNCDIR.
func (a *adapter) FsyncDir(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return a.Fsync(cancel, in)
}

// Fallocate answers FALLOCATE.
func (a *adapter) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	err := a.tree.Fallocate(request(&in.InHeader), node(&in.InHeader), in.Mode, int64(in.Offset), int64(in.Length))
	return a.status("fallocate", &in.InHeader, "", err)
}

// Lseek answers LSEEK, which comes for SEEK_DATA and SEEK_HOLE.
func (a *adapter) Lseek(_ <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	off, err := a.tree.Lseek(request(&in.InHeader), node(&in.InHeader), int64(in.Offset), int(in.Whence))
	if err != nil {
		return a.status("lseek", &in.InHeader, "", err)
	}
	out.Offset = uint64(off)
	return fuse.OK
}

// maxCopy bounds one COPY_FILE_RANGE, whose answer has 32 bits. The caller
// comes again for the rest.
const maxCopy = 1 << 30

// CopyFileRange answers COPY_FILE_RANGE. No flags are defined.
func (a *adapter) CopyFileRange(_ <-chan struct{}, in *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	if in.Flags != 0 {
		return 0, fuse.EINVAL
	}
	n, err := a.tree.CopyFileRange(request(&in.InHeader), node(&in.InHeader), int64(in.OffIn),
		journal.NodeID(in.NodeIdOut), int64(in.OffOut), int64(min(in.Len, maxCopy)))
	return uint32(n), a.status("copy_file_range", &in.InHeader, "", err)
}

// Locks are the kernel's own: the capabilities are not asked for, so none of
// these come.

// GetLk answers ENOSYS.
func (a *adapter) GetLk(<-chan struct{}, *fuse.LkIn, *fuse.LkOut) fuse.Status { return fuse.ENOSYS }

// SetLk answers ENOSYS.
func (a *adapter) SetLk(<-chan struct{}, *fuse.LkIn) fuse.Status { return fuse.ENOSYS }

// SetLkw answers ENOSYS.
func (a *adapter) SetLkw(<-chan struct{}, *fuse.LkIn) fuse.Status { return fuse.ENOSYS }
