package fsx

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// file is the file under test with the descriptors and the mapping that
// operations go through.
type file struct {
	path   string
	max    int64
	direct bool // the file system has O_DIRECT
	rw     int
	app    int    // O_APPEND
	dio    int    // O_DIRECT
	mem    []byte // shared mapping of max bytes
	buf    []byte // aligned, of max bytes
}

func openFile(path string, max int64) (*file, error) {
	f := &file{path: path, max: max}
	var err error
	if f.buf, err = unix.Mmap(-1, 0, int(max), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE); err != nil {
		return nil, err
	}
	return f, f.open()
}

func (f *file) open() (err error) {
	if f.rw, err = unix.Open(f.path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o644); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if f.app, err = unix.Open(f.path, unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC, 0); err != nil {
		return fmt.Errorf("open to append: %w", err)
	}
	f.dio, err = unix.Open(f.path, unix.O_RDWR|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	f.direct = err == nil
	if err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("open with O_DIRECT: %w", err)
	}
	if f.mem, err = unix.Mmap(f.rw, 0, int(f.max), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return fmt.Errorf("mmap: %w", err)
	}
	return nil
}

// close closes all but the buffer.
func (f *file) close() {
	if f.mem != nil {
		unix.Munmap(f.mem)
		f.mem = nil
	}
	for _, fd := range []*int{&f.rw, &f.app, &f.dio} {
		if *fd > 0 {
			unix.Close(*fd)
		}
		*fd = -1
	}
}

// do does one operation on the file and on the model and compares. Remounts
// and dropped caches are the caller's.
func (f *file) do(o op, m *model) error {
	switch o.kind {
	case read:
		return f.read(f.rw, o, m, f.buf[:o.n])
	case directRead:
		if f.direct {
			return f.read(f.dio, o, m, f.buf[:o.n])
		}
	case write:
		return f.write(f.rw, o, m)
	case directWrite:
		if f.direct {
			return f.write(f.dio, o, m)
		}
	case appendTo:
		o.off = m.size()
		return f.write(f.app, o, m)
	case mapRead, mapWrite:
		return f.mapped(o, m)
	case whole:
		return f.whole(m)
	case seek:
		return f.seek(o, m)
	case reopen:
		f.close()
		return f.open()
	default:
		return f.change(o, m)
	}
	return nil
}

func (f *file) read(fd int, o op, m *model, buf []byte) error {
	n, err := unix.Pread(fd, buf, o.off)
	if err != nil {
		return err
	}
	return same(buf[:n], m.at(o.off, o.n), o.off)
}

func (f *file) write(fd int, o op, m *model) error {
	b := f.buf[:copy(f.buf, bytesOf(o))]
	var n int
	var err error
	if fd == f.app {
		n, err = unix.Write(fd, b)
	} else {
		n, err = unix.Pwrite(fd, b, o.off)
	}
	if err == nil && n != len(b) {
		err = io.ErrShortWrite
	}
	m.write(b, o.off)
	return err
}

// mapped reads or writes through the mapping, as far as the file reaches. A
// read looks at the rest of the file's last page, too, which must be zero.
func (f *file) mapped(o op, m *model) error {
	end := min(o.off+o.n, m.size())
	if o.off >= end {
		return nil
	}
	if o.kind == mapRead {
		if err := same(f.mem[o.off:end], m.data[o.off:end], o.off); err != nil || end < m.size() {
			return err
		}
		tail := f.mem[end:min((end+page-1)&^(page-1), f.max)]
		return same(tail, make([]byte, len(tail)), end)
	}
	o.n = end - o.off
	b := bytesOf(o)
	copy(f.mem[o.off:], b)
	m.write(b, o.off)
	if o.flags == 1 {
		return unix.Msync(f.mem[o.off&^(page-1):end], unix.MS_SYNC)
	}
	return nil
}

func (f *file) change(o op, m *model) error {
	switch o.kind {
	case truncate:
		m.truncate(o.off)
		return unix.Ftruncate(f.rw, o.off)
	case truncPath:
		m.truncate(o.off)
		return unix.Truncate(f.path, o.off)
	case fallocate:
		m.fallocate(o)
		return unix.Fallocate(f.rw, uint32(o.flags), o.off, o.n)
	case copyRange:
		return f.copyRange(o, m)
	case fsync:
		if o.flags == 1 {
			return unix.Fdatasync(f.rw)
		}
		return unix.Fsync(f.rw)
	}
	return fmt.Errorf("no such operation: %v", o)
}

func (f *file) copyRange(o op, m *model) error {
	want := bytes.Clone(m.at(o.off, o.n))
	from, to := o.off, o.to
	for left := len(want); left > 0; {
		n, err := unix.CopyFileRange(f.rw, &from, f.rw, &to, left, 0)
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrUnexpectedEOF
		}
		left -= n
	}
	m.write(want, o.to)
	return nil
}

// whole reads the file from its beginning to its end.
func (f *file) whole(m *model) error {
	fd, err := unix.Open(f.path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	got := 0
	for {
		n, err := unix.Pread(fd, f.buf[got:], int64(got))
		if err != nil {
			return err
		}
		if got += n; n == 0 || got == len(f.buf) {
			break
		}
	}
	return same(f.buf[:got], m.data, 0)
}

// seek checks that what lies before the next data is zero, and that data and
// holes follow each other. Stores through the mapping are written back first:
// the kernel asks a FUSE server, which does not know of them yet
// (fuse_lseek flushes nothing).
func (f *file) seek(o op, m *model) error {
	if err := unix.Msync(f.mem, unix.MS_SYNC); err != nil {
		return err
	}
	data, err := unix.Seek(f.rw, o.off, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		rest := m.at(o.off, f.max)
		return same(make([]byte, len(rest)), rest, o.off)
	case err != nil:
		return err
	case o.off >= m.size():
		return fmt.Errorf("SEEK_DATA beyond the end returned %#x", data)
	}
	gap := m.at(o.off, data-o.off)
	if err := same(make([]byte, len(gap)), gap, o.off); err != nil {
		return fmt.Errorf("SEEK_DATA returned %#x: %w", data, err)
	}
	hole, err := unix.Seek(f.rw, data, unix.SEEK_HOLE)
	if err == nil && (hole <= data || hole > m.size()) {
		return fmt.Errorf("SEEK_HOLE from %#x returned %#x, the size is %#x", data, hole, m.size())
	}
	return err
}

// checkSize compares the size by descriptor and by name.
func (f *file) checkSize(m *model) error {
	var a, b unix.Stat_t
	if err := unix.Fstat(f.rw, &a); err != nil {
		return err
	}
	if err := unix.Stat(f.path, &b); err != nil {
		return err
	}
	if a.Size != m.size() || b.Size != m.size() {
		return fmt.Errorf("size is %#x by descriptor and %#x by name, want %#x", a.Size, b.Size, m.size())
	}
	return nil
}

// difference is where bytes first differ.
type difference struct {
	off       int64
	got, want byte
	count     int
}

func (d *difference) Error() string {
	return fmt.Sprintf("%d bytes differ from %#x on: got %#02x, want %#02x", d.count, d.off, d.got, d.want)
}

func same(got, want []byte, off int64) error {
	if bytes.Equal(got, want) {
		return nil
	}
	if len(got) != len(want) {
		return fmt.Errorf("got %#x bytes, want %#x", len(got), len(want))
	}
	var d *difference
	for i := range got {
		if got[i] == want[i] {
			continue
		}
		if d == nil {
			d = &difference{off: off + int64(i), got: got[i], want: want[i]}
		}
		d.count++
	}
	return d
}
