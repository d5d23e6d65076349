package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lockDir takes the journal's lock, shared for readers. It waits no longer
// than wait.
func lockDir(dir string, shared bool, wait time.Duration) (*os.File, error) {
	f, err := openLock(dir, shared)
	if err != nil {
		return nil, err
	}
	how := unix.LOCK_EX | unix.LOCK_NB
	if shared {
		how = unix.LOCK_SH | unix.LOCK_NB
	}
	for end := time.Now().Add(wait); ; time.Sleep(5 * time.Millisecond) {
		err = unix.Flock(int(f.Fd()), how)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		if !time.Now().Before(end) {
			defer f.Close()
			return nil, &LockedError{Dir: dir, PID: lockHolder(f)}
		}
	}
}

func openLock(dir string, shared bool) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil && shared {
		f, err = os.Open(path) // the disk may be read-only
	}
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	return f, nil
}

// lockHolder returns the pid written in the lock, 0 if there is none.
func lockHolder(f *os.File) int {
	var b [32]byte
	n, _ := f.ReadAt(b[:], 0)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	return pid
}

// signLock writes our pid into the lock, for others to name. It decides
// nothing, so failures do not count.
func signLock(f *os.File) {
	if f.Truncate(0) == nil {
		f.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0)
	}
}

// bootID identifies the running kernel's boot, "" if it can't be found out.
// While it stays the same no power was lost.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Lock takes the lock of the journal in dir for a process that is about to
// remove it. It waits no longer than wait (ErrLocked).
func Lock(dir string, wait time.Duration) (release func(), err error) {
	if _, err := os.Stat(filepath.Join(dir, lockName)); err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	f, err := lockDir(dir, false, wait)
	if err != nil {
		return nil, err
	}
	return func() { f.Close() }, nil
}
