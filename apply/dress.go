package apply

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// dress gives a staged file its owner, attributes, mode and time. fd is O_PATH.
func (r *runner) dress(o *op, at place, fd int) error {
	if err := r.own(o, at, fd); err != nil {
		return err
	}
	if o.Mode&unix.S_IFMT == unix.S_IFLNK {
		return setTimes(fd, o.Mtime)
	}
	if err := r.setXattrs(o, fd, nil); err != nil {
		return err
	}
	if o.Old != nil && o.Old.ACL != nil && o.Old.kind() == o.Mode&unix.S_IFMT && o.keepsACL() {
		if err := unix.Setxattr(procPath(fd), aclName, o.Old.ACL, 0); err != nil {
			r.note(o, "its access control list could not be kept: "+err.Error())
		}
	}
	perm := o.Mode & 0o777
	if o.Mode&unix.S_IFMT == unix.S_IFDIR {
		perm |= 0o700 // until it is filled
	}
	if err := unix.Chmod(procPath(fd), perm); err != nil {
		return fmt.Errorf("set mode: %w", err)
	}
	return setTimes(fd, o.Mtime)
}

// own keeps the owner of what is replaced. What is new gets, from root, the
// owner of its directory; from anybody else its own.
func (r *runner) own(o *op, at place, fd int) error {
	uid, gid := -1, -1
	switch {
	case o.Old != nil:
		uid, gid = int(o.Old.UID), int(o.Old.GID)
	case os.Geteuid() == 0:
		dir, err := factOf(at.dir)
		if err != nil {
			return err
		}
		uid = int(dir.UID)
		if dir.Mode&unix.S_ISGID == 0 {
			gid = int(dir.GID)
		}
	default:
		return nil
	}
	err := unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH)
	if err != nil && uid >= 0 {
		err = unix.Fchownat(fd, "", -1, gid, unix.AT_EMPTY_PATH)
	}
	if errors.Is(err, unix.EPERM) {
		r.note(o, "its owner could not be kept")
		return nil
	}
	if err != nil {
		return fmt.Errorf("set owner: %w", err)
	}
	return nil
}

// keepsACL reports whether the access list of what is replaced stays.
func (o *op) keepsACL() bool {
	return !o.NoACL && !slices.ContainsFunc(o.Xattrs, func(x xattr) bool { return string(x.Name) == aclName })
}

// setXattrs makes the attributes that are carried those of the op; old are the ones that
// are there. An access list that the host can't have is left out.
func (r *runner) setXattrs(o *op, fd int, old []xattr) error {
	want := make(map[string]bool)
	for _, x := range o.Xattrs {
		want[string(x.Name)] = true
		err := unix.Setxattr(procPath(fd), string(x.Name), x.Value, 0)
		if err != nil && isACL(string(x.Name)) {
			r.note(o, "its access control list could not be set: "+err.Error())
			continue
		}
		if errors.Is(err, unix.ENOTSUP) {
			r.note(o, "the file system has no extended attributes")
			return nil
		}
		if err != nil {
			return fmt.Errorf("set attribute %q: %w", x.Name, err)
		}
	}
	for _, x := range old {
		if name := string(x.Name); !want[name] && Carried(name) {
			if err := unix.Removexattr(procPath(fd), name); err != nil && !errors.Is(err, unix.ENODATA) {
				return fmt.Errorf("remove attribute %q: %w", name, err)
			}
		}
	}
	return nil
}

func (r *runner) note(o *op, text string) {
	r.res.Notes = append(r.res.Notes, Skip{Path: string(o.Path), Reason: text})
}

// setTimes sets the mtime; zero leaves it.
func setTimes(fd int, mtime int64) error {
	if mtime == 0 {
		return nil
	}
	ts := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(mtime)}
	if err := unix.UtimesNanoAt(fd, "", ts, unix.AT_EMPTY_PATH); err != nil {
		return fmt.Errorf("set times: %w", err)
	}
	return nil
}
