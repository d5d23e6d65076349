package fs

import (
	"errors"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/tree"
)

// sentinels maps the tree's errors, the frequent ones first.
var sentinels = []struct {
	err   error
	errno unix.Errno
}{
	{tree.ErrNotExist, unix.ENOENT},
	{tree.ErrNoAttr, unix.ENODATA},
	{tree.ErrExist, unix.EEXIST},
	{tree.ErrNotEmpty, unix.ENOTEMPTY},
	{tree.ErrNotDir, unix.ENOTDIR},
	{tree.ErrIsDir, unix.EISDIR},
	{tree.ErrInvalid, unix.EINVAL},
	{tree.ErrNotPermitted, unix.EPERM},
	{tree.ErrAccess, unix.EACCES},
	{tree.ErrReadOnly, unix.EROFS},
	{tree.ErrCrossDevice, unix.EXDEV},
	{tree.ErrLoop, unix.ELOOP},
	{tree.ErrNameTooLong, unix.ENAMETOOLONG},
	{tree.ErrTooLarge, unix.EFBIG},
	{tree.ErrQuota, unix.EDQUOT},
	{tree.ErrNoSpace, unix.ENOSPC},
	{tree.ErrRange, unix.ERANGE},
	{tree.ErrNotSupported, unix.EOPNOTSUPP},
	{tree.ErrNoData, unix.ENXIO},
	{tree.ErrStale, unix.ESTALE},
	{tree.ErrMaxLinks, unix.EMLINK},
}

// toErrno returns what the caller of the system call sees for an error: the
// tree's sentinels first, else the system's own errno that is wrapped in it,
// else EIO.
//
// ENOSYS from below becomes EOPNOTSUPP, since the kernel would never send that
// operation again. Numbers outside of what the kernel takes in a reply become
// EIO; it would throw the whole reply away and its client would wait for good.
func toErrno(err error) unix.Errno {
	for i := range sentinels {
		if errors.Is(err, sentinels[i].err) {
			return sentinels[i].errno
		}
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return unix.EIO
	}
	switch {
	case errno == unix.ENOSYS:
		return unix.EOPNOTSUPP
	case errno == 0 || errno >= maxErrno:
		return unix.EIO
	}
	return errno
}

// maxErrno is where the kernel's internal error numbers begin (ERESTARTSYS).
const maxErrno = 512

// refusal reports whether an errno says no, rather than that something is not
// there or went wrong.
func refusal(e unix.Errno) bool {
	switch e {
	case unix.EPERM, unix.EACCES, unix.EROFS, unix.EXDEV, unix.EFBIG, unix.EDQUOT, unix.ENOSPC:
		return true
	}
	return false
}

// status answers a request: nil is OK. EIO and refusals are logged.
func (a *adapter) status(op string, h *fuse.InHeader, name string, err error) fuse.Status {
	if err == nil {
		return fuse.OK
	}
	e := toErrno(err)
	if e == unix.EIO || refusal(e) {
		a.report(op, h, name, e, err)
	}
	var ref *tree.Refusal
	if errors.As(err, &ref) {
		a.tree.Denied(request(h), op, ref)
	}
	return fuse.Status(e)
}
