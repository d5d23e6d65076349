package journal

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Kinds of disk change, as Options.OnWrite is told them.
const (
	KindLogWrite   = "log write"
	KindPackWrite  = "pack write"
	KindHeader     = "header write"
	KindFsync      = "fsync"
	KindTruncate   = "truncate"
	KindCreate     = "create"
	KindRename     = "rename"
	KindRemove     = "remove"
	KindLink       = "link"
	KindBoltCommit = "bbolt commit"
)

// Fault is what a test makes of one disk change: only the first Keep bytes of a
// write reach the file, then Then runs (it may kill the process), and Err is
// what the system call returns.
type Fault struct {
	Keep int
	Then func()
	Err  error
}

// disk makes every change that the journal itself makes to its files, so that
// tests can stop or break each one. Its methods are safe for concurrent use.
type disk struct {
	onWrite func(kind string)
	inject  func(kind string, n int) *Fault
}

// before runs the hooks and returns the fault to play, if any.
func (d *disk) before(kind string, n int) *Fault {
	if d.onWrite != nil {
		d.onWrite(kind)
	}
	if d.inject != nil {
		return d.inject(kind, n)
	}
	return nil
}

// play ends a change that has a fault.
func (f *Fault) play() error {
	if f.Then != nil {
		f.Then()
	}
	return f.Err
}

// write writes all of b at off. On failure any part of b may be in the file.
func (d *disk) write(kind string, f *os.File, b []byte, off int64) error {
	if ft := d.before(kind, len(b)); ft != nil {
		if err := pwrite(f, b[:min(max(ft.Keep, 0), len(b))], off); err != nil {
			return err
		}
		if err := ft.play(); err != nil {
			return fmt.Errorf("write %s: %w", f.Name(), err)
		}
		return pwrite(f, b, off)
	}
	return pwrite(f, b, off)
}

func pwrite(f *os.File, b []byte, off int64) error {
	for len(b) > 0 {
		n, err := unix.Pwrite(int(f.Fd()), b, off)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", f.Name(), err)
		}
		b, off = b[n:], off+int64(n)
	}
	return nil
}

// fsync makes a file's bytes and size durable.
func (d *disk) fsync(f *os.File) error {
	if ft := d.before(KindFsync, 0); ft != nil {
		if err := ft.play(); err != nil {
			return fmt.Errorf("sync %s: %w", f.Name(), err)
		}
	}
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("sync %s: %w", f.Name(), err)
		}
		return nil
	}
}

// syncDir makes the entries of a directory durable.
func (d *disk) syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	defer f.Close()
	if ft := d.before(KindFsync, 0); ft != nil {
		if err := ft.play(); err != nil {
			return fmt.Errorf("sync %s: %w", path, err)
		}
	}
	if err := unix.Fsync(int(f.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}

func (d *disk) truncate(f *os.File, size int64) error {
	if ft := d.before(KindTruncate, 0); ft != nil {
		if err := ft.play(); err != nil {
			return fmt.Errorf("truncate %s: %w", f.Name(), err)
		}
	}
	if err := unix.Ftruncate(int(f.Fd()), size); err != nil {
		return fmt.Errorf("truncate %s: %w", f.Name(), err)
	}
	return nil
}

// create makes a new file and writes its header. Without success there is no
// file.
func (d *disk) create(path string, header []byte) (*os.File, error) {
	if ft := d.before(KindCreate, 0); ft != nil {
		if err := ft.play(); err != nil {
			return nil, fmt.Errorf("create %s: %w", path, err)
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create file of the journal: %w", err)
	}
	if err := d.write(KindHeader, f, header, 0); err != nil {
		f.Close()
		os.Remove(path)
		return nil, err
	}
	return f, nil
}

// rename renames a file and makes its new name durable.
func (d *disk) rename(from, to string) error {
	if err := d.renameOnly(from, to); err != nil {
		return err
	}
	return d.syncDir(filepath.Dir(to))
}

func (d *disk) renameOnly(from, to string) error {
	if ft := d.before(KindRename, 0); ft != nil {
		if err := ft.play(); err != nil {
			return fmt.Errorf("rename %s: %w", from, err)
		}
	}
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("rename file of the journal: %w", err)
	}
	return nil
}

// replace writes a file under another name, makes its bytes durable and gives
// it its name, which is durable after the next syncDir. A failure leaves
// nothing.
func (d *disk) replace(path string, fill func(io.Writer) error) error {
	if ft := d.before(KindCreate, 0); ft != nil {
		if err := ft.play(); err != nil {
			return fmt.Errorf("create %s: %w", path, err)
		}
	}
	f, err := os.OpenFile(path+tmpSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("create file of the journal: %w", err)
	}
	err = d.fill(f, fill)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = d.renameOnly(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// tmpSuffix ends the names of files that are being written.
const tmpSuffix = ".tmp"

func (d *disk) fill(f *os.File, fill func(io.Writer) error) error {
	w := bufio.NewWriterSize(&diskWriter{d: d, f: f}, 256<<10)
	if err := fill(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return d.fsync(f)
}

// diskWriter appends to a file.
type diskWriter struct {
	d   *disk
	f   *os.File
	end int64
}

func (w *diskWriter) Write(p []byte) (int, error) {
	if err := w.d.write(KindPackWrite, w.f, p, w.end); err != nil {
		return 0, err
	}
	w.end += int64(len(p))
	return len(p), nil
}

func (d *disk) remove(path string) error {
	if ft := d.before(KindRemove, 0); ft != nil {
		if err := ft.play(); err != nil {
			return fmt.Errorf("remove %s: %w", path, err)
		}
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove file of the journal: %w", err)
	}
	return nil
}
