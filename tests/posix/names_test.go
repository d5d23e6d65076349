package posix

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

var nameCases = map[string]func(t *testing.T, dir string){
	"UnlinkedFileWorksOn":    unlinkedFileWorksOn,
	"TmpfileLinked":          tmpfileLinked,
	"TmpfileExclusive":       tmpfileExclusive,
	"RenameReplacesOpenFile": renameReplacesOpenFile,
	"RenameFlags":            renameFlags,
	"RenameDirectories":      renameDirectories,
	"RenameSameFile":         renameSameFile,
	"HardLinks":              hardLinks,
	"HardLinkErrors":         hardLinkErrors,
	"Exclusive":              exclusive,
	"OpenFlags":              openFlags,
	"LongNames":              longNames,
	"OddNames":               oddNames,
	"DeepPath":               deepPath,
	"Symlinks":               symlinks,
	"UnlinkErrors":           unlinkErrors,
	"ReuseName":              reuseName,
	"InodeStays":             inodeStays,
}

func stat(t testing.TB, path string) unix.Stat_t {
	t.Helper()
	var st unix.Stat_t
	check(t, unix.Lstat(path, &st))
	return st
}

func unlinkedFileWorksOn(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	f.WriteString("before")
	check(t, os.Remove(dir+"/f"))
	_, err := f.WriteAt([]byte("after"), 6)
	check(t, err)
	check(t, f.Chmod(0o600))
	check(t, f.Truncate(8))
	var st unix.Stat_t
	check(t, unix.Fstat(int(f.Fd()), &st))
	equal(t, "link count", uint64(st.Nlink), 0)
	equal(t, "mode", st.Mode, unix.S_IFREG|0o600)
	buf := make([]byte, 20)
	n, err := unix.Pread(int(f.Fd()), buf, 0)
	check(t, err)
	equal(t, "content", string(buf[:n]), "beforeaf")
	fails(t, "stat", unix.Lstat(dir+"/f", &st), unix.ENOENT)
}

func tmpfile(t *testing.T, dir string, flags int) int {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC|flags, 0o640)
	check(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func tmpfileLinked(t *testing.T, dir string) {
	fd := tmpfile(t, dir, 0)
	_, err := unix.Write(fd, []byte("content"))
	check(t, err)
	left, err := os.ReadDir(dir)
	check(t, err)
	equal(t, "names before", len(left), 0)
	check(t, unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, dir+"/f", unix.AT_SYMLINK_FOLLOW))
	holds(t, dir+"/f", "content")
	st := stat(t, dir+"/f")
	equal(t, "mode", st.Mode, unix.S_IFREG|0o640)
	equal(t, "link count", uint64(st.Nlink), 1)
}

func tmpfileExclusive(t *testing.T, dir string) {
	fd := tmpfile(t, dir, unix.O_EXCL)
	err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, dir+"/f", unix.AT_SYMLINK_FOLLOW)
	fails(t, "link", err, unix.ENOENT)
}

func renameReplacesOpenFile(t *testing.T, dir string) {
	put(t, dir+"/new", "new")
	old := create(t, dir+"/old")
	old.WriteString("old")
	check(t, os.Rename(dir+"/new", dir+"/old"))
	holds(t, dir+"/old", "new")
	buf := make([]byte, 3)
	_, err := old.ReadAt(buf, 0)
	check(t, err)
	equal(t, "content of the replaced file", string(buf), "old")
	var st unix.Stat_t
	fails(t, "old name", unix.Lstat(dir+"/new", &st), unix.ENOENT)
}

func rename2(from, to string, flags uint) error {
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, flags)
}

func renameFlags(t *testing.T, dir string) {
	put(t, dir+"/a", "a")
	check(t, os.Mkdir(dir+"/d", 0o755))
	put(t, dir+"/d/in", "in")
	fails(t, "no replace", rename2(dir+"/a", dir+"/d", unix.RENAME_NOREPLACE), unix.EEXIST)
	check(t, rename2(dir+"/a", dir+"/b", unix.RENAME_NOREPLACE))
	check(t, rename2(dir+"/b", dir+"/d", unix.RENAME_EXCHANGE))
	holds(t, dir+"/d", "a")
	holds(t, dir+"/b/in", "in")
	fails(t, "exchange with nothing", rename2(dir+"/b", dir+"/none", unix.RENAME_EXCHANGE), unix.ENOENT)
	fails(t, "both flags", rename2(dir+"/b", dir+"/d", unix.RENAME_EXCHANGE|unix.RENAME_NOREPLACE), unix.EINVAL)
	fails(t, "exchange with a descendant", rename2(dir+"/b", dir+"/b/in", unix.RENAME_EXCHANGE), unix.EINVAL)
}

func renameDirectories(t *testing.T, dir string) {
	for _, d := range []string{"/a", "/a/b", "/a/b/c", "/empty", "/full", "/full/x"} {
		check(t, os.Mkdir(dir+d, 0o755))
	}
	put(t, dir+"/file", "f")
	fails(t, "into itself", unix.Rename(dir+"/a", dir+"/a/b/x"), unix.EINVAL)
	fails(t, "over a full directory", unix.Rename(dir+"/a", dir+"/full"), unix.ENOTEMPTY)
	fails(t, "over an ancestor", unix.Rename(dir+"/a/b/c", dir+"/a"), unix.ENOTEMPTY)
	fails(t, "over a file", unix.Rename(dir+"/a", dir+"/file"), unix.ENOTDIR)
	fails(t, "file over a directory", unix.Rename(dir+"/file", dir+"/empty"), unix.EISDIR)
	check(t, unix.Rename(dir+"/a", dir+"/empty"))
	check(t, unix.Rename(dir+"/empty/b", dir+"/full/x"))
	st := stat(t, dir+"/full/x/c")
	equal(t, "type", st.Mode&unix.S_IFMT, unix.S_IFDIR)
}

func renameSameFile(t *testing.T, dir string) {
	put(t, dir+"/a", "x")
	check(t, os.Link(dir+"/a", dir+"/b"))
	check(t, unix.Rename(dir+"/a", dir+"/b"))
	equal(t, "both names stay", uint64(stat(t, dir+"/a").Nlink), 2)
	check(t, unix.Rename(dir+"/a", dir+"/a"))
}

func hardLinks(t *testing.T, dir string) {
	put(t, dir+"/a", "one")
	check(t, os.Mkdir(dir+"/d", 0o755))
	check(t, os.Link(dir+"/a", dir+"/d/b"))
	put(t, dir+"/d/b", "two")
	check(t, os.Chmod(dir+"/d/b", 0o600))
	holds(t, dir+"/a", "two")
	a, b := stat(t, dir+"/a"), stat(t, dir+"/d/b")
	equal(t, "inode", a.Ino, b.Ino)
	equal(t, "mode", a.Mode, b.Mode)
	equal(t, "link count", uint64(a.Nlink), 2)
	check(t, os.Remove(dir+"/a"))
	equal(t, "link count", uint64(stat(t, dir+"/d/b").Nlink), 1)
	holds(t, dir+"/d/b", "two")
}

func hardLinkErrors(t *testing.T, dir string) {
	put(t, dir+"/a", "")
	check(t, os.Mkdir(dir+"/d", 0o755))
	fails(t, "of a directory", unix.Link(dir+"/d", dir+"/x"), unix.EPERM)
	fails(t, "to what exists", unix.Link(dir+"/a", dir+"/d"), unix.EEXIST)
	fails(t, "of nothing", unix.Link(dir+"/none", dir+"/x"), unix.ENOENT)
	check(t, os.Symlink("nowhere", dir+"/l"))
	check(t, unix.Link(dir+"/l", dir+"/l2"))
	equal(t, "type", stat(t, dir+"/l2").Mode&unix.S_IFMT, unix.S_IFLNK)
}

func openErr(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o644)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func exclusive(t *testing.T, dir string) {
	const excl = unix.O_CREAT | unix.O_EXCL | unix.O_RDWR
	check(t, openErr(dir+"/a", excl))
	fails(t, "file", openErr(dir+"/a", excl), unix.EEXIST)
	check(t, os.Symlink("nowhere", dir+"/l"))
	fails(t, "dangling link", openErr(dir+"/l", excl), unix.EEXIST)
	check(t, openErr(dir+"/l", unix.O_CREAT|unix.O_RDWR))
	equal(t, "made through the link", stat(t, dir+"/nowhere").Size, 0)
}

func openFlags(t *testing.T, dir string) {
	put(t, dir+"/f", "")
	check(t, os.Symlink("f", dir+"/l"))
	fails(t, "directory flag on a file", openErr(dir+"/f", unix.O_DIRECTORY), unix.ENOTDIR)
	fails(t, "write a directory", openErr(dir, unix.O_WRONLY), unix.EISDIR)
	fails(t, "no follow", openErr(dir+"/l", unix.O_NOFOLLOW), unix.ELOOP)
	fails(t, "below a file", openErr(dir+"/f/x", unix.O_RDONLY), unix.ENOTDIR)
	fails(t, "nothing", openErr(dir+"/none", unix.O_RDONLY), unix.ENOENT)
	check(t, openErr(dir+"/l", unix.O_PATH|unix.O_NOFOLLOW))
}

func longNames(t *testing.T, dir string) {
	long := strings.Repeat("n", 255)
	put(t, dir+"/"+long, "x")
	check(t, os.Rename(dir+"/"+long, dir+"/"+strings.Repeat("m", 255)))
	fails(t, "create", openErr(dir+"/"+long+"n", unix.O_CREAT|unix.O_RDWR), unix.ENAMETOOLONG)
	fails(t, "mkdir", unix.Mkdir(dir+"/"+long+"n", 0o755), unix.ENAMETOOLONG)
	fails(t, "rename", unix.Rename(dir+"/"+strings.Repeat("m", 255), dir+"/"+long+"n"), unix.ENAMETOOLONG)
}

func oddNames(t *testing.T, dir string) {
	names := []string{"new\nline", "\xff\xfe", "tab\t", "...", "-rf", " ", "\x1b[31m", "a\\b", "ünï", "'\"`$", ".wh.x", ".git2", "con"}
	for _, n := range names {
		put(t, dir+"/"+n, n)
	}
	entries, err := os.ReadDir(dir)
	check(t, err)
	equal(t, "names", len(entries), len(names))
	for _, n := range names {
		holds(t, dir+"/"+n, n)
		check(t, os.Remove(dir+"/"+n))
	}
}

func deepPath(t *testing.T, dir string) {
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	check(t, err)
	for range 200 {
		check(t, unix.Mkdirat(fd, "level", 0o755))
		next, err := unix.Openat(fd, "level", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		check(t, err)
		unix.Close(fd)
		fd = next
	}
	unix.Close(fd)
	path := dir + strings.Repeat("/level", 200)
	put(t, path+"/f", "deep")
	holds(t, path+"/f", "deep")
	check(t, os.RemoveAll(dir+"/level"))
}

func symlinks(t *testing.T, dir string) {
	target := strings.Repeat("t/", 2000)
	check(t, os.Symlink(target, dir+"/long"))
	got, err := os.Readlink(dir + "/long")
	check(t, err)
	equal(t, "target", got, target)
	equal(t, "size", stat(t, dir+"/long").Size, int64(len(target)))
	check(t, os.Symlink("loop", dir+"/loop"))
	fails(t, "loop", openErr(dir+"/loop", unix.O_RDONLY), unix.ELOOP)
	fails(t, "exists", unix.Symlink("x", dir+"/loop"), unix.EEXIST)
	put(t, dir+"/f", "")
	_, err = unix.Readlink(dir+"/f", make([]byte, 10))
	fails(t, "readlink of a file", err, unix.EINVAL)
}

func unlinkErrors(t *testing.T, dir string) {
	check(t, os.Mkdir(dir+"/d", 0o755))
	put(t, dir+"/d/f", "")
	fails(t, "unlink a directory", unix.Unlink(dir+"/d"), unix.EISDIR)
	fails(t, "rmdir a full one", unix.Rmdir(dir+"/d"), unix.ENOTEMPTY)
	fails(t, "rmdir a file", unix.Rmdir(dir+"/d/f"), unix.ENOTDIR)
	fails(t, "unlink nothing", unix.Unlink(dir+"/none"), unix.ENOENT)
	fails(t, "rmdir dot", unix.Rmdir(dir+"/d/."), unix.EINVAL)
}

func reuseName(t *testing.T, dir string) {
	path := dir + "/x"
	for i := range 20 {
		switch i % 3 {
		case 0:
			put(t, path, fmt.Sprint(i))
			holds(t, path, fmt.Sprint(i))
		case 1:
			check(t, os.Mkdir(path, 0o755))
			put(t, path+"/in", "in")
			check(t, os.Remove(path+"/in"))
		case 2:
			check(t, os.Symlink("t", path))
		}
		check(t, os.Remove(path))
		var st unix.Stat_t
		fails(t, "removed", unix.Lstat(path, &st), unix.ENOENT)
	}
}

func inodeStays(t *testing.T, dir string) {
	put(t, dir+"/a", "x")
	ino := stat(t, dir+"/a").Ino
	check(t, os.Chmod(dir+"/a", 0o600))
	put(t, dir+"/a", "y")
	check(t, os.Rename(dir+"/a", dir+"/b"))
	equal(t, "inode", stat(t, dir+"/b").Ino, ino)
	put(t, dir+"/a", "other")
	if stat(t, dir+"/a").Ino == ino {
		t.Error("two files have one inode number")
	}
}
