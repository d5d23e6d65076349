package posix

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var attributeCases = map[string]func(t *testing.T, dir string){
	"TimesMove":      timesMove,
	"SetTimes":       setTimes,
	"Modes":          modes,
	"Umask":          umask,
	"Denied":         denied,
	"Xattrs":         xattrs,
	"XattrErrors":    xattrErrors,
	"OwnerOfNew":     ownerOfNew,
	"Statfs":         statfs,
	"SetIDCleared":   setIDCleared,
	"SymlinkTimes":   symlinkTimes,
	"LinkCountOfDir": linkCountOfDir,
}

// tick waits until a file system's clock has moved on for certain.
func tick() { time.Sleep(12 * time.Millisecond) }

type times struct{ mtime, ctime int64 }

func timesOf(t testing.TB, path string) times {
	t.Helper()
	st := stat(t, path)
	return times{st.Mtim.Nano(), st.Ctim.Nano()}
}

// timesMove checks which operation moves which time.
func timesMove(t *testing.T, dir string) {
	check(t, os.Mkdir(dir+"/d", 0o755))
	put(t, dir+"/d/f", "x")
	f := create(t, dir+"/d/f")
	tests := []struct {
		name             string
		do               func() error
		path             string
		mtime, ctimeOnly bool
	}{
		{"write", func() error { _, err := f.WriteAt([]byte("y"), 0); return err }, "/d/f", true, false},
		{"truncate", func() error { return f.Truncate(9) }, "/d/f", true, false},
		{"chmod", func() error { return f.Chmod(0o600) }, "/d/f", false, true},
		{"link", func() error { return os.Link(dir+"/d/f", dir+"/l") }, "/d/f", false, true},
		{"setxattr", func() error { return unix.Setxattr(dir+"/d/f", "user.t", nil, 0) }, "/d/f", false, true},
		{"create in a directory", func() error { return os.WriteFile(dir+"/d/new", nil, 0o644) }, "/d", true, false},
		{"rename in a directory", func() error { return os.Rename(dir+"/d/new", dir+"/d/new2") }, "/d", true, false},
		{"unlink in a directory", func() error { return os.Remove(dir + "/d/new2") }, "/d", true, false},
		{"write below a directory", func() error { return os.WriteFile(dir+"/d/f", []byte("z"), 0o644) }, "/d", false, false},
		{"read", func() error { _, err := os.ReadFile(dir + "/d/f"); return err }, "/d/f", false, false},
	}
	for _, tt := range tests {
		before := timesOf(t, dir+tt.path)
		tick()
		check(t, tt.do())
		after := timesOf(t, dir+tt.path)
		equal(t, tt.name+": mtime moves", after.mtime > before.mtime, tt.mtime)
		equal(t, tt.name+": ctime moves", after.ctime > before.ctime, tt.mtime || tt.ctimeOnly)
	}
}

func setTimes(t *testing.T, dir string) {
	put(t, dir+"/f", "")
	for _, ts := range []unix.Timespec{{Sec: 0, Nsec: 0}, {Sec: 1, Nsec: 999999999}, {Sec: 1 << 31, Nsec: 5}, {Sec: -1000, Nsec: 7}} {
		check(t, unix.UtimesNano(dir+"/f", []unix.Timespec{ts, ts}))
		st := stat(t, dir+"/f")
		equal(t, "mtime", st.Mtim, ts)
		equal(t, "atime", st.Atim, ts)
	}
	before := stat(t, dir+"/f")
	omit, now := unix.Timespec{Nsec: unix.UTIME_OMIT}, unix.Timespec{Nsec: unix.UTIME_NOW}
	check(t, unix.UtimesNano(dir+"/f", []unix.Timespec{omit, now}))
	after := stat(t, dir+"/f")
	equal(t, "atime left out", after.Atim, before.Atim)
	if d := time.Since(time.Unix(after.Mtim.Sec, after.Mtim.Nsec)); d < -time.Second || d > time.Minute {
		t.Errorf("mtime now is %v ago", d)
	}
}

func modes(t *testing.T, dir string) {
	put(t, dir+"/f", "")
	for _, mode := range []uint32{0, 0o400, 0o644, 0o755, 0o777} {
		check(t, unix.Chmod(dir+"/f", mode))
		equal(t, "mode", stat(t, dir+"/f").Mode, unix.S_IFREG|mode)
	}
	check(t, os.Mkdir(dir+"/d", 0o755))
	check(t, unix.Chmod(dir+"/d", 0o1777))
	equal(t, "sticky directory", stat(t, dir+"/d").Mode, unix.S_IFDIR|0o1777)
}

func umask(t *testing.T, dir string) {
	defer unix.Umask(unix.Umask(0o027))
	fd, err := unix.Open(dir+"/f", unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o666)
	check(t, err)
	unix.Close(fd)
	check(t, unix.Mkdir(dir+"/d", 0o777))
	equal(t, "file", stat(t, dir+"/f").Mode&0o777, 0o640)
	equal(t, "directory", stat(t, dir+"/d").Mode&0o777, 0o750)
}

// denied checks that modes are enforced for an ordinary user.
func denied(t *testing.T, dir string) {
	if os.Geteuid() == 0 {
		t.Skip("root may do all; the user's pass runs it")
	}
	put(t, dir+"/f", "x")
	check(t, os.Chmod(dir+"/f", 0o400))
	fails(t, "write", openErr(dir+"/f", unix.O_WRONLY), unix.EACCES)
	check(t, os.Chmod(dir+"/f", 0))
	fails(t, "read", openErr(dir+"/f", unix.O_RDONLY), unix.EACCES)
	check(t, os.Mkdir(dir+"/d", 0o755))
	check(t, os.Chmod(dir+"/d", 0o500))
	fails(t, "create", openErr(dir+"/d/x", unix.O_CREAT|unix.O_RDWR), unix.EACCES)
	check(t, os.Chmod(dir+"/d", 0))
	var st unix.Stat_t
	fails(t, "search", unix.Lstat(dir+"/d/x", &st), unix.EACCES)
	check(t, os.Chmod(dir+"/d", 0o700))
	fails(t, "give away", unix.Chown(dir+"/f", 0, -1), unix.EPERM)
}

func xattrs(t *testing.T, dir string) {
	put(t, dir+"/f", "")
	for _, path := range []string{dir + "/f", dir} {
		check(t, unix.Setxattr(path, "user.a", []byte("one"), 0))
		check(t, unix.Setxattr(path, "user.empty", nil, 0))
		check(t, unix.Setxattr(path, "user.a", []byte("two"), unix.XATTR_REPLACE))
		buf := make([]byte, 100)
		n, err := unix.Getxattr(path, "user.a", buf)
		check(t, err)
		equal(t, "value", string(buf[:n]), "two")
		n, err = unix.Getxattr(path, "user.empty", buf)
		check(t, err)
		equal(t, "empty value", n, 0)
		check(t, unix.Removexattr(path, "user.a"))
		n, err = unix.Listxattr(path, buf)
		check(t, err)
		if strings.Contains(string(buf[:n]), "user.a\x00") {
			t.Error("the removed attribute is listed")
		}
	}
}

func xattrErrors(t *testing.T, dir string) {
	path := dir + "/f"
	put(t, path, "")
	check(t, unix.Setxattr(path, "user.a", []byte("value"), unix.XATTR_CREATE))
	fails(t, "create twice", unix.Setxattr(path, "user.a", nil, unix.XATTR_CREATE), unix.EEXIST)
	fails(t, "replace nothing", unix.Setxattr(path, "user.b", nil, unix.XATTR_REPLACE), unix.ENODATA)
	fails(t, "remove nothing", unix.Removexattr(path, "user.b"), unix.ENODATA)
	_, err := unix.Getxattr(path, "user.b", make([]byte, 10))
	fails(t, "get nothing", err, unix.ENODATA)
	_, err = unix.Getxattr(path, "user.a", make([]byte, 2))
	fails(t, "short buffer", err, unix.ERANGE)
	n, err := unix.Getxattr(path, "user.a", nil)
	check(t, err)
	equal(t, "asked for the size", n, 5)
}

func ownerOfNew(t *testing.T, dir string) {
	put(t, dir+"/f", "")
	st := stat(t, dir+"/f")
	equal(t, "owner", int(st.Uid), os.Geteuid())
	equal(t, "group", int(st.Gid), os.Getegid())
}

func statfs(t *testing.T, dir string) {
	var st unix.Statfs_t
	check(t, unix.Statfs(dir, &st))
	if st.Bsize <= 0 || st.Blocks == 0 || st.Bavail > st.Blocks || st.Namelen != 255 {
		t.Errorf("got %+v", st)
	}
}

// setIDCleared accepts a file system that never lets the bits be set.
func setIDCleared(t *testing.T, dir string) {
	put(t, dir+"/f", "x")
	if err := unix.Chmod(dir+"/f", 0o6755); err != nil {
		return
	}
	if os.Geteuid() == 0 {
		return // root's write keeps them
	}
	put(t, dir+"/f", "y")
	equal(t, "bits after a write", stat(t, dir+"/f").Mode&0o6000, 0)
}

func symlinkTimes(t *testing.T, dir string) {
	put(t, dir+"/f", "")
	check(t, os.Symlink("f", dir+"/l"))
	was := stat(t, dir+"/f").Mtim
	want := unix.Timespec{Sec: 1000, Nsec: 1}
	check(t, unix.UtimesNanoAt(unix.AT_FDCWD, dir+"/l", []unix.Timespec{want, want}, unix.AT_SYMLINK_NOFOLLOW))
	equal(t, "of the link", stat(t, dir+"/l").Mtim, want)
	equal(t, "of its target", stat(t, dir+"/f").Mtim, was)
}

// linkCountOfDir accepts 1, which means that subdirectories are not counted.
func linkCountOfDir(t *testing.T, dir string) {
	check(t, os.MkdirAll(dir+"/d/sub", 0o755))
	n := uint64(stat(t, dir+"/d").Nlink)
	if n != 1 && n != 3 {
		t.Errorf("link count of a directory with one below: got %d, want 3 or 1", n)
	}
}
