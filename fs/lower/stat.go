package lower

import "golang.org/x/sys/unix"

// statMask is what Stat asks statx(2) for.
const statMask = unix.STATX_BASIC_STATS | unix.STATX_BTIME | unix.STATX_MNT_ID

// Stat is what statx(2) says of a lower file; an owner that can't be known is
// NoID. Times are nanoseconds since 1970.
type Stat struct {
	Ino                        uint64
	Mode                       uint32
	UID, GID, Nlink, Rdev      uint32
	Size, Blocks               uint64
	Blksize                    uint32
	Atime, Mtime, Ctime, Btime int64
	// Mounted says that the host mounted another file system there: the
	// attributes are those of its root, and nothing below is shown.
	Mounted bool
}

func (d *Dir) convert(s *unix.Statx_t) Stat {
	return Stat{
		Ino: s.Ino, Mode: uint32(s.Mode), UID: d.fs.known(s.Uid), GID: d.fs.known(s.Gid), Nlink: s.Nlink,
		Rdev: uint32(unix.Mkdev(s.Rdev_major, s.Rdev_minor)),
		Size: s.Size, Blocks: s.Blocks, Blksize: s.Blksize,
		Atime: nanos(s.Atime), Mtime: nanos(s.Mtime), Ctime: nanos(s.Ctime), Btime: nanos(s.Btime),
		Mounted: s.Mnt_id != d.root.mnt,
	}
}

func nanos(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }
