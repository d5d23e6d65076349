package actor

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// thread is one thread of some process, held by descriptors that fail once it
// is gone.
type thread struct {
	dir     int       // its directory in /proc
	name    int       // its process's comm
	tgid    uint32    // its process
	uid     uint32    // with which it acts on files
	spaces  []uint64  // its pid namespace and those above it, as far as we see
	checked time.Time // when dir was last found alive; protected by Resolver.mu
	used    time.Time // when it was last asked for; protected by Resolver.mu
}

// openThread looks a thread up by number.
func openThread(tid uint32) (t *thread, err error) {
	dir, err := unix.Open("/proc/"+strconv.FormatUint(uint64(tid), 10), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open thread %d: %w", tid, err)
	}
	t = &thread{dir: dir, name: -1}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	if err := t.refresh(); err != nil {
		return nil, err
	}
	// As long as the thread is there nobody else can have its process's
	// number, so this is that process if the thread outlives the look.
	name := "/proc/" + strconv.FormatUint(uint64(t.tgid), 10) + "/comm"
	if t.name, err = unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return nil, fmt.Errorf("open comm of %d: %w", t.tgid, err)
	}
	t.spaces = namespaces(dir)
	return t, t.refresh()
}

// refresh reads the thread's ids again. It fails when the thread is gone.
func (t *thread) refresh() error {
	fd, err := unix.Openat(t.dir, "status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open status: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	var buf [2048]byte
	n, err := unix.Read(fd, buf[:])
	if err != nil {
		return fmt.Errorf("read status: %w", err)
	}
	t.tgid, t.uid, err = parseStatus(string(buf[:n]))
	return err
}

// parseStatus takes the process and the file system user id out of
// /proc/TID/status, as proc(5) has it. A name in it can't hold a newline: the
// kernel escapes that.
func parseStatus(text string) (tgid, uid uint32, err error) {
	seen := 0
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case len(f) == 2 && f[0] == "Tgid:":
			tgid, err = number(f[1])
			seen++
		case len(f) == 5 && f[0] == "Uid:":
			uid, err = number(f[4])
			seen++
		}
		if err != nil {
			return 0, 0, err
		}
	}
	if seen != 2 || tgid == 0 {
		return 0, 0, errors.New("parse status: not all there")
	}
	return tgid, uid, nil
}

func number(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("parse status: %w", err)
	}
	return uint32(n), nil
}

// comm reads the process's command name. It fails when the process is gone.
func (t *thread) comm() (string, error) {
	var buf [64]byte
	n, err := unix.Pread(t.name, buf[:], 0)
	if err != nil {
		return "", fmt.Errorf("read comm: %w", err)
	}
	return strings.TrimSuffix(string(buf[:n]), "\n"), nil
}

// namespaces lists the thread's pid namespace and those above it, from the
// inside out, up to ours. Nil when we may not see it.
func namespaces(dir int) []uint64 {
	fd, err := unix.Openat(dir, "ns/pid", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	var spaces []uint64
	for {
		var st unix.Stat_t
		err := unix.Fstat(fd, &st)
		if err != nil {
			break
		}
		spaces = append(spaces, st.Ino)
		parent, err := unix.IoctlRetInt(fd, unix.NS_GET_PARENT)
		if err != nil {
			break // EPERM: the next one is not below ours
		}
		_ = unix.Close(fd)
		fd = parent
	}
	_ = unix.Close(fd)
	return spaces
}

func (t *thread) close() {
	_ = unix.Close(t.dir)
	if t.name >= 0 {
		_ = unix.Close(t.name)
	}
}
