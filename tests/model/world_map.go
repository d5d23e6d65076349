package model

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// mapping is a part of a file in memory. The zero value is none.
type mapping struct {
	mem []byte
	fd  int // its own descriptor of the file, to ask for the size
	rw  bool
}

func (w *World) doCwd(o Op) (string, error) {
	if o.Kind == Chdir {
		return "", unix.Chdir(w.proc(o.Path))
	}
	dir, err := os.Readlink("/proc/self/cwd")
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(w.dir, dir)
	if err != nil || strings.HasPrefix(rel, "..") {
		return "outside", nil
	}
	return rel, nil
}

func (w *World) doMap(o Op) (string, error) {
	m := &w.maps[o.Slot]
	switch o.Kind {
	case Mmap:
		return "", w.mmap(o)
	case Munmap:
		w.unmap(o.Slot)
		return "", nil
	case Msync:
		if m.mem == nil {
			return "", unix.ENOMEM
		}
		return "", unix.Msync(m.mem, unix.MS_SYNC)
	case MapRead:
		return m.read(o)
	}
	return m.write(o)
}

func (w *World) mmap(o Op) error {
	fd, err := unix.FcntlInt(uintptr(w.slots[o.Slot]), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	mem, err := unix.Mmap(fd, 0, int(o.Len), int(o.Mode), o.Flags)
	if err != nil {
		unix.Close(fd)
		return err
	}
	w.unmap(o.Slot)
	w.maps[o.Slot] = mapping{mem: mem, fd: fd, rw: o.Mode&unix.PROT_WRITE != 0}
	return nil
}

func (w *World) unmap(slot int) {
	m := &w.maps[slot]
	if m.mem == nil {
		return
	}
	unix.Munmap(m.mem)
	unix.Close(m.fd)
	*m = mapping{}
}

// read tells what the mapping shows from Off on, or that it is a bus error.
func (m *mapping) read(o Op) (string, error) {
	if o.Off >= int64(len(m.mem)) {
		return "", unix.EFAULT
	}
	part := m.mem[o.Off:min(o.Off+o.Len, int64(len(m.mem)))]
	return faulting(func() string { return fmt.Sprintf("%d %x", len(part), sha256.Sum256(part)) })
}

// write stores bytes into what lies within the file: what is beyond its end in
// the last page is nobody's, and file systems differ in how long it shows.
func (m *mapping) write(o Op) (string, error) {
	if !m.rw || o.Off >= int64(len(m.mem)) {
		return "", unix.EFAULT
	}
	var st unix.Stat_t
	if err := unix.Fstat(m.fd, &st); err != nil {
		return "", err
	}
	end := min(o.Off+o.Len, int64(len(m.mem)), st.Size)
	if o.Off >= end {
		return "beyond the end", nil
	}
	return faulting(func() string { return fmt.Sprint(copy(m.mem[o.Off:end], o.Data())) })
}

var errBus = errors.New("bus error")

// faulting calls fn, which touches mapped memory.
func faulting(fn func() string) (text string, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			err = errBus
		}
	}()
	return fn(), nil
}
