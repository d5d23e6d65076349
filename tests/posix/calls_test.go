package posix

import (
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
)

// matrixPaths are the paths that each call is made with.
func matrixPaths(full bool) []string {
	paths := []string{
		"", ".", "..", "open", "open/", "open/.", "mine", "roots", "noexec", "sticky", "mysticky", "setgid", "setgid2", "empty", "empty/",
		"file", "file/", "file/x", "file0", "rootfile", "groupfile", "worldfile", "program", "twin", "twin2",
		"link", "link/", "dirlink", "dirlink/", "dirlink/mine", "dangling", "dangling/", "loop", "loop/x", "fifo", "socket",
		"none", "none/", "none/x", "long:4095", "long:4096", strings.Repeat("n", 255), strings.Repeat("n", 256), strings.Repeat("n", 256) + "/x",
	}
	for _, d := range []string{"open", "mine", "roots", "noexec", "sticky", "mysticky", "setgid"} {
		paths = append(paths, d+"/new", d+"/mine", d+"/other", d+"/mydir", d+"/otherdir")
	}
	if full {
		paths = append(paths, "setid", "setid2", "setidfifo", "device")
	}
	return paths
}

// open flags that are tried, with the mode 0666.
var matrixOpens = map[string]int{
	"read": unix.O_RDONLY, "write": unix.O_WRONLY, "both": unix.O_RDWR, "truncate": unix.O_WRONLY | unix.O_TRUNC,
	"read truncate": unix.O_RDONLY | unix.O_TRUNC,
	"create":        unix.O_CREAT | unix.O_WRONLY, "create exclusively": unix.O_CREAT | unix.O_EXCL | unix.O_RDWR,
	"create truncate": unix.O_CREAT | unix.O_TRUNC | unix.O_WRONLY, "create read": unix.O_CREAT | unix.O_RDONLY,
	"directory": unix.O_DIRECTORY, "create directory": unix.O_CREAT | unix.O_DIRECTORY, "no follow": unix.O_NOFOLLOW,
	"path": unix.O_PATH, "append": unix.O_WRONLY | unix.O_APPEND, "no atime": unix.O_NOATIME, "temporary": unix.O_TMPFILE | unix.O_RDWR,
}

func openAttempt(flags int) func(a, _ string) error {
	return func(a, _ string) error {
		fd, err := unix.Open(a, flags|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o666)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
}

// withFile calls fn with the file open for writing.
func withFile(a string, fn func(fd int) error) error {
	fd, err := unix.Open(a, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer unix.Close(fd)
	return fn(fd)
}

// matrixOne are the calls with one path.
func matrixOne(full bool) []attempt {
	var all []attempt
	add := func(name string, do func(a string) error) {
		all = append(all, attempt{name: name, do: func(a, _ string) error { return do(a) }})
	}
	for name, flags := range matrixOpens {
		all = append(all, attempt{name: "open to " + name, do: openAttempt(flags)})
	}
	for _, mode := range []uint32{0, 0o755, 0o1777} {
		add(fmt.Sprintf("mkdir %o", mode), func(a string) error { return unix.Mkdir(a, mode) })
	}
	kinds := []uint32{unix.S_IFREG, unix.S_IFIFO, unix.S_IFSOCK, 0, unix.S_IFDIR}
	chmods := []uint32{0, 0o444, 0o644, 0o777, 0o1755}
	if full {
		kinds = append(kinds, unix.S_IFCHR, unix.S_IFBLK)
		chmods = append(chmods, 0o2755, 0o4755, 0o6777, 0o2666)
		add("mknod with set-id bits", func(a string) error { return unix.Mknod(a, unix.S_IFREG|0o6755, 0) })
		add("set trusted xattr", func(a string) error { return unix.Setxattr(a, "trusted.t", []byte("v"), 0) })
		add("set trusted xattr of link", func(a string) error { return unix.Lsetxattr(a, "trusted.t", []byte("v"), 0) })
		add("set capability", func(a string) error {
			return unix.Setxattr(a, "security.capability", []byte("\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), 0)
		})
	}
	for _, kind := range kinds {
		add(fmt.Sprintf("mknod %o", kind), func(a string) error { return unix.Mknod(a, kind|0o644, int(unix.Mkdev(9, 300))) })
	}
	for _, mode := range chmods {
		add(fmt.Sprintf("chmod %o", mode), func(a string) error { return unix.Chmod(a, mode) })
	}
	for _, o := range [][2]int{{-1, -1}, {userID, -1}, {-1, userID}, {-1, groupID}, {0, 0}, {userID, groupID}, {otherID, otherID}} {
		add(fmt.Sprint("chown ", o), func(a string) error { return unix.Chown(a, o[0], o[1]) })
		add(fmt.Sprint("lchown ", o), func(a string) error { return unix.Lchown(a, o[0], o[1]) })
	}
	for _, n := range []int64{-1, 0, 5, 5000} {
		add(fmt.Sprint("truncate ", n), func(a string) error { return unix.Truncate(a, n) })
		add(fmt.Sprint("ftruncate ", n), func(a string) error {
			return withFile(a, func(fd int) error { return unix.Ftruncate(fd, n) })
		})
	}
	now, omit, then := unix.Timespec{Nsec: unix.UTIME_NOW}, unix.Timespec{Nsec: unix.UTIME_OMIT}, unix.Timespec{Sec: -5, Nsec: 999999999}
	bad := unix.Timespec{Nsec: 2000000000}
	for i, ts := range [][]unix.Timespec{nil, {now, now}, {omit, omit}, {now, omit}, {omit, now}, {then, then}, {then, omit}, {then, now}, {bad, now}} {
		for _, flag := range []int{0, unix.AT_SYMLINK_NOFOLLOW} {
			add(fmt.Sprint("utimensat ", i, flag), func(a string) error { return utimensat(a, ts, flag) })
		}
	}
	for _, mode := range []uint32{unix.F_OK, unix.R_OK, unix.W_OK, unix.X_OK, unix.R_OK | unix.W_OK} {
		add(fmt.Sprint("access ", mode), func(a string) error { return unix.Faccessat(unix.AT_FDCWD, a, mode, unix.AT_EACCESS) })
	}
	add("unlink", unix.Unlink)
	add("rmdir", unix.Rmdir)
	add("symlink", func(a string) error { return unix.Symlink("anywhere", a) })
	add("symlink to nothing", func(a string) error { return unix.Symlink("", a) })
	add("symlink to too much", func(a string) error { return unix.Symlink(strings.Repeat("x", 4096), a) })
	add("readlink", func(a string) error { _, err := unix.Readlink(a, make([]byte, 100)); return err })
	add("chdir", func(a string) error {
		fd, err := unix.Open(a, unix.O_PATH|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		return err
	})
	add("list", func(a string) error { _, err := os.ReadDir(a); return bare(err) })
	add("stat", func(a string) error { var st unix.Stat_t; return unix.Stat(a, &st) })
	add("lstat", func(a string) error { var st unix.Stat_t; return unix.Lstat(a, &st) })
	add("read", func(a string) error {
		return withFile(a, func(fd int) error { _, err := unix.Pread(fd, make([]byte, 5), 0); return err })
	})
	add("write", func(a string) error {
		return withFile(a, func(fd int) error { _, err := unix.Pwrite(fd, []byte("written"), 3); return err })
	})
	add("write nothing", func(a string) error {
		return withFile(a, func(fd int) error { _, err := unix.Pwrite(fd, nil, 3); return err })
	})
	for _, m := range []uint32{0, unix.FALLOC_FL_KEEP_SIZE, unix.FALLOC_FL_KEEP_SIZE | unix.FALLOC_FL_PUNCH_HOLE, unix.FALLOC_FL_ZERO_RANGE} {
		add(fmt.Sprint("fallocate ", m), func(a string) error {
			return withFile(a, func(fd int) error { return unix.Fallocate(fd, m, 2, 40) })
		})
	}
	add("fchmod", func(a string) error { return withFile(a, func(fd int) error { return unix.Fchmod(fd, 0o640) }) })
	add("fsync", func(a string) error { return withFile(a, unix.Fsync) })
	for name, flags := range map[string]int{"set": 0, "create": unix.XATTR_CREATE, "replace": unix.XATTR_REPLACE, "wrong": 8} {
		add(name+" xattr", func(a string) error { return unix.Setxattr(a, "user.t", []byte("v"), flags) })
	}
	add("set xattr of link", func(a string) error { return unix.Lsetxattr(a, "user.t", []byte("v"), 0) })
	add("set nameless xattr", func(a string) error { return unix.Setxattr(a, "user.", []byte("v"), 0) })
	add("set xattr without a space", func(a string) error { return unix.Setxattr(a, "plain", []byte("v"), 0) })
	add("set xattr of another space", func(a string) error { return unix.Setxattr(a, "other.t", []byte("v"), 0) })
	add("set long xattr", func(a string) error { return unix.Setxattr(a, "user."+strings.Repeat("n", 251), []byte("v"), 0) })
	add("set longest xattr", func(a string) error { return unix.Setxattr(a, "user."+strings.Repeat("n", 250), []byte("v"), 0) })
	for _, name := range []string{"user.t", "trusted.t", "security.t", "system.posix_acl_access", "none.t"} {
		add("get "+name, func(a string) error { _, err := unix.Getxattr(a, name, make([]byte, 100)); return err })
		add("remove "+name, func(a string) error { return unix.Removexattr(a, name) })
	}
	add("list xattrs", func(a string) error { _, err := unix.Listxattr(a, make([]byte, 1000)); return err })
	return all
}

// bare returns the errno of an error.
func bare(err error) error {
	if e, ok := err.(*os.PathError); ok {
		return e.Err
	}
	return err
}

func utimensat(path string, ts []unix.Timespec, flags int) error {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	var times unsafe.Pointer
	if ts != nil {
		times = unsafe.Pointer(&ts[0])
	}
	at := unix.AT_FDCWD
	_, _, e := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(at), uintptr(unsafe.Pointer(p)), uintptr(times), uintptr(flags), 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

// matrixTwo are the calls with two paths.
func matrixTwo() []attempt {
	all := []attempt{{name: "link", do: func(a, b string) error { return unix.Link(a, b) }}}
	for name, flags := range map[string]uint{"rename": 0, "rename without replacing": unix.RENAME_NOREPLACE, "exchange": unix.RENAME_EXCHANGE,
		"exchange without replacing": unix.RENAME_EXCHANGE | unix.RENAME_NOREPLACE} {
		all = append(all, attempt{name: name, do: func(a, b string) error {
			return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, flags)
		}})
	}
	return all
}

var matrixSources = []string{
	"", "open", "mine", "empty", "empty/", "file", "file/", "rootfile", "worldfile", "twin", "link", "dirlink", "dangling", "loop", "fifo", "none",
	"mine/mine", "open/mydir", "open/otherdir", "open/other", "sticky/mine", "sticky/other", "sticky/mydir", "sticky/otherdir", "mysticky/other", "roots/mine", "noexec/mine", "setgid/mydir",
}

var matrixTargets = []string{
	"", ".", "empty", "empty/", "file", "none", "none/", "none/x", "file/x", "open", "open/mine", "open/mydir", "open/new", "twin2", "link", "dirlink", "dangling", "loop/x",
	"mine/new", "mine/mydir/new", "sticky/new", "sticky/mine", "sticky/other", "sticky/otherdir", "mysticky/other", "mysticky/otherdir", "roots/new", "roots/mine", "noexec/new", "setgid/new",
	"open/mydir/in", strings.Repeat("n", 256),
}

// TestMatrix compares a mount, or POSIX_DIR, with a plain directory. All of it
// takes minutes: one case in matrixShare is run unless POSIX_MATRIX says otherwise.
func TestMatrix(t *testing.T) {
	if dir := os.Getenv("POSIX_DIR"); dir != "" {
		matrix(t, dir, os.Getenv("POSIX_PROFILE") == "full")
		return
	}
	harness.Require(t, "binary", "fuse")
	t.Run("default", func(t *testing.T) { matrix(t, mount(t), false) })
	if os.Geteuid() == 0 {
		t.Run("full", func(t *testing.T) { matrix(t, mount(t, "-o", "profile=posix-full"), true) })
	}
}

const matrixShare = 100

// matrixPart says which part of the calls is made, counted from 0, and of how
// many.
func matrixPart(t *testing.T) (part, of uint32) {
	t.Helper()
	switch value := os.Getenv("POSIX_MATRIX"); value {
	case "":
		return 0, matrixShare
	case "all":
		return 0, 1
	default:
		if n, err := fmt.Sscanf(value, "%d/%d", &part, &of); n != 2 || err != nil || part == 0 || part > of {
			t.Fatalf("POSIX_MATRIX: want all or PART/PARTS, not %q", value)
		}
		return part - 1, of
	}
}

func matrix(t *testing.T, dir string, full bool) {
	p := newPair(t, dir, full)
	part, of := matrixPart(t)
	chosen := func(words ...string) bool {
		h := fnv.New32a()
		h.Write([]byte(strings.Join(words, "\x00")))
		return h.Sum32()%of == part
	}
	n := 0
	for _, c := range callers() {
		for _, at := range matrixOne(full) {
			for _, a := range matrixPaths(full) {
				if chosen(c.name, at.name, a) {
					n++
					p.run(c, at, a, "")
				}
			}
		}
		for _, at := range matrixTwo() {
			for _, a := range matrixSources {
				for _, b := range matrixTargets {
					if chosen(c.name, at.name, a, b) {
						n++
						p.run(c, at, a, b)
					}
				}
			}
		}
	}
	t.Logf("%d calls compared", n)
}
