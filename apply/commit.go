package apply

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// oldSuffix ends the temporary name of an old file where the file system can't
// exchange names.
const oldSuffix = "-old"

// commit carries out all steps, skipping those that are done.
func (r *runner) commit() error {
	for _, s := range r.in.plan.steps() {
		if err := r.ctx.Err(); err != nil {
			return fmt.Errorf("apply: %w", err)
		}
		r.at = string(s.op.Path)
		if err := r.forward(s); err != nil {
			return fmt.Errorf("apply %q: %w", s.op.Path, err)
		}
	}
	return r.syncTouched()
}

// forward does one step.
func (r *runner) forward(s step) error {
	switch s.op.Verb {
	case remove:
		return r.takeAway(s.op, s.op.Now)
	case move:
		if s.out {
			if at, err := r.host.look(s.op.Source, string(s.op.Path)); err == nil && s.op.Old.same(at) {
				return nil
			}
			return r.takeAway(s.op, s.op.Now)
		}
		return r.bring(s.op, s.op.Old.Ino)
	case mkdir:
		return r.bring(s.op, r.in.made[s.op.index].Ino)
	case put:
		if s.op.Old == nil {
			return r.bring(s.op, r.in.made[s.op.index].Ino)
		}
		return r.exchange(s.op)
	}
	return r.setMeta(s.op)
}

// ends returns the op's temporary place and a path's, both open.
func (r *runner) ends(o *op, path []byte) (temp, at place, err error) {
	if temp, err = r.temp(o); err != nil {
		return temp, at, err
	}
	if at, err = r.host.at(o.Source, string(path)); err != nil {
		temp.close()
	}
	return temp, at, err
}

// takeAway moves what is at the path to the temporary name, if it is what
// preflight saw and, as a directory that shall go, empty.
func (r *runner) takeAway(o *op, path []byte) error {
	temp, err := r.temp(o)
	if err != nil {
		return err
	}
	defer temp.close()
	if f, err := temp.look(); err != nil || f != nil {
		if err == nil && f.Ino != o.Old.Ino {
			err = &drift{string(o.Path), "its temporary name is taken"}
		}
		return err
	}
	at, err := r.host.at(o.Source, string(path))
	if err != nil {
		return err
	}
	defer at.close()
	if err := r.o.step("take away " + at.name); err != nil {
		return err
	}
	if err := moveTo(at, temp); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return &drift{string(o.Path), "deleted on the host"}
		}
		return err
	}
	if err := r.expected(o, temp); err != nil {
		return r.putBack(temp, at, err)
	}
	return nil
}

// temp returns the op's temporary place, open.
func (r *runner) temp(o *op) (place, error) {
	dir, err := r.host.dir(o.Source, string(o.TempDir))
	return place{dir, o.Temp}, err
}

// expected checks what was taken away.
func (r *runner) expected(o *op, temp place) error {
	f, err := temp.look()
	if err != nil {
		return err
	}
	if !o.Old.same(f) {
		return &drift{string(o.Path), "changed on the host meanwhile"}
	}
	if o.Verb != remove || f.kind() != unix.S_IFDIR {
		return nil
	}
	fd, err := openBelow(temp.dir, temp.name, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return fmt.Errorf("open directory: %w", err)
	}
	defer unix.Close(fd)
	names, err := listDir(fd)
	if err == nil && len(names) > 0 {
		err = &drift{string(o.Path), "something was created in the directory meanwhile"}
	}
	return err
}

// putBack undoes a rename that took what it should not.
func (r *runner) putBack(from, to place, cause error) error {
	if err := moveTo(from, to); err != nil {
		return fmt.Errorf("%w: %w; put back: %w", ErrStuck, cause, err)
	}
	return cause
}

// bring moves what is staged from the temporary name to the path, where nothing
// may be.
func (r *runner) bring(o *op, ino uint64) error {
	temp, at, err := r.ends(o, o.Path)
	if err != nil {
		return err
	}
	defer temp.close()
	defer at.close()
	f, err := temp.look()
	if err != nil {
		return err
	}
	if f == nil || f.Ino != ino {
		if g, err := at.look(); err == nil && g != nil && g.Ino == ino {
			return nil
		}
		return &drift{string(o.Path), "what was staged for it is gone"}
	}
	if err := r.o.step("bring " + at.name); err != nil {
		return err
	}
	err = moveTo(temp, at)
	if errors.Is(err, unix.EEXIST) {
		return &drift{string(o.Path), "created on the host meanwhile"}
	}
	return err
}

// exchange puts the staged file in the place of the old one, and looks at what
// came out.
func (r *runner) exchange(o *op) error {
	temp, at, err := r.ends(o, o.Path)
	if err != nil {
		return err
	}
	defer temp.close()
	defer at.close()
	ino := r.in.made[o.index].Ino
	f, err := temp.look()
	if err != nil {
		return err
	}
	if f == nil || f.Ino != ino {
		if g, err := at.look(); err == nil && g != nil && g.Ino == ino {
			return nil
		}
		return &drift{string(o.Path), "what was staged for it is gone"}
	}
	if err := r.o.step("exchange " + at.name); err != nil {
		return err
	}
	err = unix.EINVAL
	if !r.o.noExchange {
		err = unix.Renameat2(temp.dir, temp.name, at.dir, at.name, unix.RENAME_EXCHANGE)
	}
	switch {
	case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP):
		return r.swapSlowly(o, temp, at)
	case errors.Is(err, unix.ENOENT):
		return &drift{string(o.Path), "deleted on the host meanwhile"}
	case err != nil:
		return fmt.Errorf("exchange names: %w", err)
	}
	if err := r.expected(o, temp); err != nil {
		if back := unix.Renameat2(temp.dir, temp.name, at.dir, at.name, unix.RENAME_EXCHANGE); back != nil {
			return fmt.Errorf("%w: %w; exchange back: %w", ErrStuck, err, back)
		}
		return err
	}
	return nil
}

// swapSlowly is exchange in two renames.
func (r *runner) swapSlowly(o *op, temp, at place) error {
	aside := place{temp.dir, temp.name + oldSuffix}
	if f, err := aside.look(); err != nil || f == nil {
		if err != nil {
			return err
		}
		if err := moveTo(at, aside); err != nil {
			return err
		}
		if err := r.o.step("bring " + at.name); err != nil {
			return r.putBack(aside, at, err)
		}
	}
	if err := r.expected(o, aside); err != nil {
		return r.putBack(aside, at, err)
	}
	if err := moveTo(temp, at); err != nil {
		return r.putBack(aside, at, err)
	}
	return nil
}

// moveTo renames and never replaces. Where the file system can't promise that,
// it looks first.
func moveTo(from, to place) error {
	err := unix.Renameat2(from.dir, from.name, to.dir, to.name, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) {
		f, lerr := to.look()
		if lerr != nil {
			return lerr
		}
		if f != nil {
			return fmt.Errorf("rename to %q: %w", to.name, unix.EEXIST)
		}
		err = unix.Renameat(from.dir, from.name, to.dir, to.name)
	}
	if err != nil {
		return fmt.Errorf("rename to %q: %w", to.name, err)
	}
	return nil
}

// setMeta sets mode, attributes and time of a file or directory in place.
func (r *runner) setMeta(o *op) error {
	at, err := r.host.at(o.Source, string(o.Path))
	if err != nil {
		return err
	}
	defer at.close()
	fd, err := openBelow(at.dir, at.name, unix.O_PATH)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer unix.Close(fd)
	f, err := factOf(fd)
	if err != nil {
		return err
	}
	if f.kind() != o.Mode&unix.S_IFMT || o.Old != nil && o.Old.Ino != f.Ino {
		return &drift{string(o.Path), "replaced on the host meanwhile"}
	}
	if f.kind() == unix.S_IFLNK {
		return setTimes(fd, o.Mtime)
	}
	if err := r.o.step("set attributes " + at.name); err != nil {
		return err
	}
	if o.Old != nil {
		if err := r.setXattrs(o, fd, f.Xattrs); err != nil {
			return err
		}
	}
	if f.Mode&0o777 != o.Mode&0o777 {
		if err := unix.Chmod(procPath(fd), o.Mode&0o777|f.Mode&unix.S_ISVTX); err != nil {
			return fmt.Errorf("set mode: %w", err)
		}
	}
	return setTimes(fd, o.Mtime)
}

// syncTouched makes the renames durable.
func (r *runner) syncTouched() error {
	seen := make(map[key]bool)
	for _, o := range r.in.plan.Ops {
		dirs := []string{string(o.TempDir)}
		if o.Verb != remove {
			d, _ := splitPath(string(o.Path))
			dirs = append(dirs, d)
		}
		if len(o.Now) > 0 {
			d, _ := splitPath(string(o.Now))
			dirs = append(dirs, d)
		}
		for _, d := range dirs {
			k := key{o.Source, d, false}
			if seen[k] {
				continue
			}
			seen[k] = true
			if err := r.syncDir(o.Source, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// syncDir syncs a directory, if it is still there and may be read.
func (r *runner) syncDir(source uint32, path string) error {
	dir, err := r.host.dir(source, path)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	fd, err := openBelow(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, unix.EACCES) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sync directory %q: %w", path, err)
	}
	defer unix.Close(fd)
	if err := unix.Fsync(fd); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("sync directory %q: %w", path, err)
	}
	return nil
}
