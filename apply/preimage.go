package apply

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// preImage copies the file that the op replaces or removes into the state
// directory and reports true, unless the inode itself can move there after the
// commit.
func (r *runner) preImage(i int, o *op) (bool, error) {
	if o.Old.Nlink == 1 && !r.foreign[o.Source] {
		return false, nil
	}
	src, err := r.host.openRegular(o.Source, string(o.Now), o.Old)
	if err != nil {
		return false, err
	}
	defer src.Close()
	if err := r.savePre(i, src); err != nil {
		return false, err
	}
	after, err := factOf(int(src.Fd()))
	if err != nil {
		return false, err
	}
	if !o.Old.same(after) {
		return false, &drift{string(o.Path), "changed on the host while it was read"}
	}
	return true, nil
}

func (r *runner) savePre(i int, src *os.File) error {
	if err := r.o.step("copy pre-image"); err != nil {
		return err
	}
	name := filepath.Join(r.in.dir, r.in.pre(i))
	dst, err := os.OpenFile(name+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("save pre-image: %w", err)
	}
	defer dst.Close()
	if err := copyFile(dst, src); err != nil {
		return fmt.Errorf("save pre-image: %w", err)
	}
	if err := dst.Sync(); err != nil {
		return fmt.Errorf("save pre-image: %w", err)
	}
	if err := os.Rename(name+".part", name); err != nil {
		return fmt.Errorf("save pre-image: %w", err)
	}
	return nil
}

// probeForeign finds out for each source whether its files can be renamed into
// the state directory. Any doubt means copying.
func (r *runner) probeForeign() {
	r.foreign = make(map[uint32]bool)
	var pre unix.Stat_t
	err := unix.Stat(filepath.Join(r.in.dir, "pre"), &pre)
	for source, root := range r.host.roots {
		var st unix.Stat_t
		if err != nil || unix.Fstat(root, &st) != nil || st.Dev != pre.Dev {
			r.foreign[source] = true
		}
	}
}

// keepOld moves an old file from its temporary name to its pre-image, or drops
// it when a copy was made. It may be repeated.
func (r *runner) keepOld(i int, o *op) error {
	dir, err := r.host.dir(o.Source, string(o.TempDir))
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	at := r.oldAt(dir, o)
	if at.name == "" {
		return nil
	}
	if o.Old.kind() == unix.S_IFDIR {
		return r.dropDir(o, at)
	}
	if !r.in.made[i].Copied && o.Old.kind() == unix.S_IFREG {
		moved, err := r.movePre(i, o, at)
		if moved || err != nil {
			return err
		}
	}
	if err := r.o.step("unlink old " + at.name); err != nil {
		return err
	}
	if err := unix.Unlinkat(at.dir, at.name, 0); err != nil {
		return fmt.Errorf("unlink old file: %w", err)
	}
	return nil
}

// oldAt returns the temporary name under which the op's old file lies; an empty
// name means that it is not there any more.
func (r *runner) oldAt(dir int, o *op) place {
	for _, name := range []string{o.Temp, o.Temp + oldSuffix} {
		at := place{dir, name}
		if f, err := at.look(); err == nil && f != nil && f.Ino == o.Old.Ino {
			return at
		}
	}
	return place{}
}

// movePre renames the old file into the state directory. Over a mount border it
// copies and leaves the unlinking to the caller.
func (r *runner) movePre(i int, o *op, at place) (bool, error) {
	if err := r.o.step("keep old " + at.name); err != nil {
		return false, err
	}
	err := unix.Renameat(at.dir, at.name, unix.AT_FDCWD, filepath.Join(r.in.dir, r.in.pre(i)))
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, unix.EXDEV) && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
		return false, fmt.Errorf("keep old file: %w", err)
	}
	now, err := at.look()
	if err != nil || now == nil {
		return false, fmt.Errorf("keep old file: %w", err)
	}
	src, err := at.openRegular(string(o.Path), now)
	if err != nil {
		return false, err
	}
	defer src.Close()
	return false, r.savePre(i, src)
}

// dropDir removes a directory that was empty when it was taken away. One that
// somebody has put a file in since goes back to its place.
func (r *runner) dropDir(o *op, at place) error {
	if err := r.o.step("remove directory " + at.name); err != nil {
		return err
	}
	err := unix.Unlinkat(at.dir, at.name, unix.AT_REMOVEDIR)
	if err == nil {
		return nil
	}
	if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("remove directory %q: %w", o.Path, err)
	}
	to, err := r.host.at(o.Source, string(o.Now))
	if err == nil {
		defer to.close()
		err = moveTo(at, to)
	}
	text := "the directory was put back: something was created in it meanwhile"
	if err != nil {
		text = fmt.Sprintf("something was created in it meanwhile; it lies as %q now", at.name)
	}
	r.note(o, text)
	return nil
}
