package posix

import (
	"fmt"
	"io"
	"net"
	"os"
	osexec "os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

var specialCases = map[string]func(t *testing.T, dir string){
	"Fifo":          fifo,
	"Socket":        socket,
	"ExecuteFile":   executeFile,
	"BusyText":      busyText,
	"RecordLocks":   recordLocks,
	"ProcessLocks":  locksOfProcesses,
	"FileLocks":     fileLocks,
	"NoDeviceNodes": noDeviceNodes,
}

func fifo(t *testing.T, dir string) {
	check(t, unix.Mkfifo(dir+"/p", 0o600))
	done := make(chan error, 1)
	go func() { done <- os.WriteFile(dir+"/p", []byte("through"), 0) }()
	f, err := os.Open(dir + "/p")
	check(t, err)
	defer f.Close()
	data, err := io.ReadAll(f)
	check(t, err)
	check(t, <-done)
	equal(t, "data", string(data), "through")
}

func socket(t *testing.T, dir string) {
	// A short path: socket addresses hold 108 bytes.
	t.Chdir(dir)
	l, err := net.Listen("unix", "s")
	check(t, err)
	defer l.Close()
	equal(t, "type", stat(t, dir+"/s").Mode&unix.S_IFMT, unix.S_IFSOCK)
	go func() {
		if c, err := l.Accept(); err == nil {
			io.WriteString(c, "hello")
			c.Close()
		}
	}()
	c, err := net.Dial("unix", "s")
	check(t, err)
	defer c.Close()
	data, err := io.ReadAll(c)
	check(t, err)
	equal(t, "data", string(data), "hello")
}

func program(t *testing.T, dir string) string {
	t.Helper()
	path, err := osexec.LookPath("true")
	check(t, err)
	data, err := os.ReadFile(path)
	check(t, err)
	check(t, os.WriteFile(dir+"/true", data, 0o755))
	return dir + "/true"
}

func executeFile(t *testing.T, dir string) {
	check(t, osexec.Command(program(t, dir)).Run())
	check(t, os.WriteFile(dir+"/script", []byte("#!/bin/sh\nexit 7\n"), 0o755))
	err := osexec.Command(dir + "/script").Run()
	if exit, ok := err.(*osexec.ExitError); !ok || exit.ExitCode() != 7 {
		t.Errorf("script: got %v, want exit status 7", err)
	}
}

func busyText(t *testing.T, dir string) {
	path := program(t, dir)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	check(t, err)
	err = unix.Access(path, unix.X_OK)
	check(t, err)
	if err := osexec.Command(path).Run(); err == nil {
		t.Error("a file that is open for writing can be executed")
	}
	f.Close()
	check(t, osexec.Command(path).Run())
}

func recordLocks(t *testing.T, dir string) {
	a, b := create(t, dir+"/f"), create(t, dir+"/f")
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: 10, Len: 10}
	check(t, unix.FcntlFlock(a.Fd(), unix.F_OFD_SETLK, &lock))
	lock.Start = 15
	fails(t, "overlap", unix.FcntlFlock(b.Fd(), unix.F_OFD_SETLK, &lock), unix.EAGAIN)
	lock.Start = 20
	check(t, unix.FcntlFlock(b.Fd(), unix.F_OFD_SETLK, &lock))
}

// lockHolder, set in the environment, makes this binary try to lock the file
// that it names and print what came of it.
const lockHolder = "WINKFS_TEST_LOCK"

// locksOfProcesses locks from two processes.
func locksOfProcesses(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	lock := unix.Flock_t{Type: unix.F_WRLCK, Len: 10}
	check(t, unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lock))
	cmd := osexec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), lockHolder+"="+dir+"/f")
	out, err := cmd.Output()
	check(t, err)
	equal(t, "another process", string(out), unix.EAGAIN.Error())
}

// tryLock is what the other process does.
func tryLock(path string) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		lock := unix.Flock_t{Type: unix.F_RDLCK, Start: 5, Len: 1}
		err = unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lock)
	}
	fmt.Print(err)
}

func fileLocks(t *testing.T, dir string) {
	a, b := create(t, dir+"/f"), create(t, dir+"/f")
	check(t, unix.Flock(int(a.Fd()), unix.LOCK_EX))
	fails(t, "second", unix.Flock(int(b.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EAGAIN)
	check(t, unix.Flock(int(a.Fd()), unix.LOCK_UN))
	check(t, unix.Flock(int(b.Fd()), unix.LOCK_EX|unix.LOCK_NB))
}

// noDeviceNodes checks an ordinary user; that winkfs refuses root too is
// tested with its own rules.
func noDeviceNodes(t *testing.T, dir string) {
	if os.Geteuid() == 0 {
		t.Skip("root may make them on a plain directory")
	}
	fails(t, "mknod", unix.Mknod(dir+"/d", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))), unix.EPERM)
}
