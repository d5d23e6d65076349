package apply

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// revert undoes the steps that were done, in the other order, and removes what
// was staged. It goes on past an error, so that as much as possible is as before.
func (r *runner) revert() error {
	var errs []error
	if r.in.state == staged {
		for _, s := range slices.Backward(r.in.plan.steps()) {
			if err := r.backward(s); err != nil {
				errs = append(errs, fmt.Errorf("revert %q: %w", s.op.Path, err))
			}
		}
	}
	for _, o := range r.in.plan.Ops {
		if err := r.unstage(o); err != nil {
			errs = append(errs, fmt.Errorf("remove temporary name of %q: %w", o.Path, err))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if err := r.syncTouched(); err != nil {
		return err
	}
	if err := r.in.append(line{State: reverted}); err != nil {
		return err
	}
	return r.forget()
}

// forget removes the record of an apply that has left nothing.
func (r *runner) forget() error {
	r.in.close()
	for _, d := range []string{filepath.Join(r.in.dir, "pre"), r.in.dir} {
		if err := os.RemoveAll(d); err != nil {
			return fmt.Errorf("remove apply directory: %w", err)
		}
	}
	return nil
}

// backward undoes one step if it was done.
func (r *runner) backward(s step) error {
	o := s.op
	switch o.Verb {
	case remove:
		return r.restore(o, o.Now)
	case move:
		if s.out {
			return r.restore(o, o.Now)
		}
		return r.unbring(o, o.Old.Ino)
	case mkdir:
		return r.unbring(o, r.in.made[o.index].Ino)
	case put:
		if o.Old == nil {
			return r.unbring(o, r.in.made[o.index].Ino)
		}
		return r.unexchange(o)
	}
	return r.unsetMeta(o)
}

// restore moves an old file back to its path.
func (r *runner) restore(o *op, path []byte) error {
	temp, err := r.temp(o)
	if err != nil {
		return err
	}
	defer temp.close()
	f, err := temp.look()
	if err != nil || f == nil || f.Ino != o.Old.Ino {
		return err
	}
	at, err := r.host.at(o.Source, string(path))
	if err != nil {
		return err
	}
	defer at.close()
	if err := r.o.step("restore " + at.name); err != nil {
		return err
	}
	return moveTo(temp, at)
}

// unbring moves what was brought back to its temporary name. What somebody has
// replaced since is theirs.
func (r *runner) unbring(o *op, ino uint64) error {
	at, err := r.host.at(o.Source, string(o.Path))
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer at.close()
	f, err := at.look()
	if err != nil || f == nil || f.Ino != ino {
		return err
	}
	temp, err := r.temp(o)
	if err != nil {
		return err
	}
	defer temp.close()
	if err := r.o.step("take back " + at.name); err != nil {
		return err
	}
	return moveTo(at, temp)
}

// missing reports whether a path can't be there because a parent is not.
func missing(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// unexchange gives the old file its place again. If somebody has replaced the
// new one since, theirs stays, and the old file keeps its temporary name.
func (r *runner) unexchange(o *op) error {
	temp, err := r.temp(o)
	if err != nil {
		return err
	}
	defer temp.close()
	old := r.oldAt(temp.dir, o)
	if old.name == "" {
		return nil
	}
	at, err := r.host.at(o.Source, string(o.Path))
	if err != nil {
		return err
	}
	defer at.close()
	f, err := at.look()
	if err != nil {
		return err
	}
	if err := r.o.step("exchange back " + at.name); err != nil {
		return err
	}
	switch {
	case f == nil:
		return moveTo(old, at)
	case f.Ino != r.in.made[o.index].Ino:
		return &drift{string(o.Path), fmt.Sprintf("replaced on the host meanwhile; the file from before lies as %q", old.name)}
	case old.name == temp.name:
		return unix.Renameat2(temp.dir, temp.name, at.dir, at.name, unix.RENAME_EXCHANGE)
	}
	if err := moveTo(at, temp); err != nil {
		return err
	}
	return moveTo(old, at)
}

// unsetMeta gives back the attributes that setMeta changed.
func (r *runner) unsetMeta(o *op) error {
	if o.Old == nil {
		return nil
	}
	at, err := r.host.at(o.Source, string(o.Path))
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer at.close()
	fd, err := openBelow(at.dir, at.name, unix.O_PATH)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer unix.Close(fd)
	f, err := factOf(fd)
	if err != nil || f.Ino != o.Old.Ino || f.kind() == unix.S_IFLNK {
		return err
	}
	if err := r.o.step("restore attributes " + at.name); err != nil {
		return err
	}
	back := &op{Path: o.Path, Xattrs: o.Old.Xattrs}
	if err := r.setXattrs(back, fd, f.Xattrs); err != nil {
		return err
	}
	if f.Mode != o.Old.Mode {
		if err := unix.Chmod(procPath(fd), o.Old.Mode&0o7777); err != nil {
			return fmt.Errorf("set mode: %w", err)
		}
	}
	return setTimes(fd, o.Old.Mtime)
}

// unstage removes what was staged for the op. The old file is never removed,
// and a directory only when it is empty.
func (r *runner) unstage(o *op) error {
	if o.Verb != put && o.Verb != mkdir {
		return nil
	}
	temp, err := r.temp(o)
	if missing(err) {
		r.note(o, fmt.Sprintf("its directory went away meanwhile; %q may be left in it", o.Temp))
		return nil
	}
	if err != nil {
		return err
	}
	defer temp.close()
	f, err := temp.look()
	if err != nil || f == nil || o.Old != nil && f.Ino == o.Old.Ino {
		return err
	}
	if ino := r.in.made[o.index].Ino; ino != 0 && f.Ino != ino || f.kind() != o.Mode&unix.S_IFMT {
		return nil // somebody else's
	}
	flags := 0
	if f.kind() == unix.S_IFDIR {
		flags = unix.AT_REMOVEDIR
	}
	if err := r.o.step("unstage " + temp.name); err != nil {
		return err
	}
	err = unix.Unlinkat(temp.dir, temp.name, flags)
	if errors.Is(err, unix.ENOTEMPTY) {
		return r.leaveDir(o, temp)
	}
	return err
}

// leaveDir gives a directory in which somebody has created something its name
// again, since what is in it is not ours.
func (r *runner) leaveDir(o *op, temp place) error {
	at, err := r.host.at(o.Source, string(o.Path))
	if err != nil {
		return err
	}
	defer at.close()
	r.note(o, "the directory is kept: something was created in it meanwhile")
	return moveTo(temp, at)
}
