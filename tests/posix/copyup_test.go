package posix

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
)

// copyUpCases change a file of the lower, each in a directory "d" of its own that
// lowerTree filled, in ways that union file systems are known to get wrong.
var copyUpCases = map[string]func(t *testing.T, dir string){
	"DescriptorSeesWrite":  descriptorSeesWrite,
	"DescriptorSeesCut":    descriptorSeesCut,
	"SharedMapSeesWrite":   sharedMapSeesWrite,
	"PrivateMapSeesWrite":  privateMapSeesWrite,
	"StoreThroughMap":      storeThroughMap,
	"HardLinksStayOne":     hardLinksStayOne,
	"UnlinkOneName":        unlinkOneName,
	"IdentityStays":        identityStays,
	"HolesStay":            holesStay,
	"RandomWrites":         randomWrites,
	"MoveDirectory":        moveDirectory,
	"OldNameIsFree":        oldNameIsFree,
	"ReplaceDirectory":     replaceDirectory,
	"ReplaceFile":          replaceFile,
	"ExchangeKinds":        exchangeKinds,
	"LinkToLower":          linkToLower,
	"SymlinkTimes":         lowerSymlink,
	"LockAcrossCopyUp":     lockAcrossCopyUp,
	"UnlinkedLowerWorksOn": unlinkedLowerWorksOn,
	"AppendToLower":        appendToLower,
	"CutInTheMiddle":       cutInTheMiddle,
	"ListingAgrees":        listingAgrees,
	"TimesOfParents":       timesOfParents,
}

const lowerBytes = 300_000

// lowerTree fills a directory for one case.
func lowerTree(t testing.TB, dir string) {
	t.Helper()
	d := dir + "/d"
	check(t, os.MkdirAll(d+"/sub/deep", 0o755))
	put(t, d+"/small", "small content")
	put(t, d+"/large", strings.Repeat("large content...", lowerBytes/16))
	put(t, d+"/sub/file", "in sub")
	put(t, d+"/sub/deep/file", "in deep")
	put(t, d+"/one", "linked")
	check(t, os.Link(d+"/one", d+"/two"))
	check(t, os.Link(d+"/one", d+"/sub/three"))
	check(t, os.Symlink("small", d+"/link"))
	check(t, unix.Mkfifo(d+"/fifo", 0o640))
	f := create(t, d+"/sparse")
	for _, off := range []int64{0, 5 << 20, 9<<20 + 77} {
		_, err := f.WriteAt([]byte("island"), off)
		check(t, err)
	}
	check(t, f.Truncate(12<<20))
	check(t, unix.Setxattr(d+"/small", "user.kept", []byte("value"), 0))
	check(t, os.Chmod(d+"/small", 0o640))
	old := unix.Timespec{Sec: 1_000_000_000, Nsec: 123456789}
	for _, name := range []string{"small", "large", "sub/file", "link", "sparse", "fifo"} {
		check(t, unix.UtimesNanoAt(unix.AT_FDCWD, d+"/"+name, []unix.Timespec{old, old}, unix.AT_SYMLINK_NOFOLLOW))
	}
}

// TestCopyUp runs the cases over a lower, then looks whether all is the same
// after the kernel has forgotten it, after a remount and after a crash, and
// whether the lower is what it was, access times included.
func TestCopyUp(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	e := harness.New(t)
	lower := filepath.Join(e.Dir, "lower")
	for name := range copyUpCases {
		lowerTree(t, lower+"/"+name)
	}
	was, before := harness.MustDump(t, lower), accessTimes(t, lower)
	w := e.NewWorkspace("w", lower)
	for name, fn := range copyUpCases {
		t.Run(name, func(t *testing.T) { fn(t, w.Mount+"/"+name+"/d") })
	}
	now := harness.MustDump(t, w.Mount)
	harness.DropCaches()
	harness.Same(t, "after the kernel forgot", harness.MustDump(t, w.Mount), now, 0)
	w.Umount()
	w.Remount()
	harness.Same(t, "after a remount", harness.MustDump(t, w.Mount), now, 0)
	w.Kill()
	w.Remount()
	harness.Same(t, "after a crash", harness.MustDump(t, w.Mount), now, 0)
	after := accessTimes(t, lower)
	for path, at := range before {
		// An ordinary user can't read a link, nor anything in a way, without it.
		if after[path] != at && os.Geteuid() == 0 {
			t.Errorf("access time of the lower's %s moved", path)
		}
	}
	harness.Same(t, "lower", harness.MustDump(t, lower), was, 0)
}

// accessTimes reads no file and no link.
func accessTimes(t testing.TB, dir string) map[string]unix.Timespec {
	t.Helper()
	all := map[string]unix.Timespec{}
	check(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			all[path] = stat(t, path).Atim
		}
		return err
	}))
	return all
}

func openRead(t testing.TB, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	check(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func readAt(t testing.TB, f *os.File, off int64, n int) string {
	t.Helper()
	buf := make([]byte, n)
	got, err := unix.Pread(int(f.Fd()), buf, off)
	check(t, err)
	return string(buf[:got])
}

// writeInto writes by a descriptor that is opened for it.
func writeInto(t testing.TB, path string, off int64, data string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	check(t, err)
	defer f.Close()
	_, err = f.WriteAt([]byte(data), off)
	check(t, err)
}

func descriptorSeesWrite(t *testing.T, dir string) {
	for _, name := range []string{"/small", "/large"} {
		f := openRead(t, dir+name)
		readAt(t, f, 0, 5)
		writeInto(t, dir+name, 2, "XY")
		equal(t, "opened before", readAt(t, f, 1, 4)[1:3], "XY")
		var st unix.Stat_t
		check(t, unix.Fstat(int(f.Fd()), &st))
		equal(t, "inode", st.Ino, stat(t, dir+name).Ino)
		equal(t, "mtime", st.Mtim, stat(t, dir+name).Mtim)
	}
}

func descriptorSeesCut(t *testing.T, dir string) {
	f := openRead(t, dir+"/large")
	put(t, dir+"/large", "short")
	equal(t, "size", size(t, f), 5)
	equal(t, "data", readAt(t, f, 0, 100), "short")
}

func sharedMapSeesWrite(t *testing.T, dir string) {
	f := openRead(t, dir+"/large")
	p, err := unix.Mmap(int(f.Fd()), 0, 8192, unix.PROT_READ, unix.MAP_SHARED)
	check(t, err)
	defer unix.Munmap(p)
	equal(t, "before", string(p[:5]), "large")
	writeInto(t, dir+"/large", 0, "LARGE")
	equal(t, "touched page", string(p[:5]), "LARGE")
	writeInto(t, dir+"/large", 5000, "other")
	equal(t, "other page", string(p[5000:5005]), "other")
}

func privateMapSeesWrite(t *testing.T, dir string) {
	f := openRead(t, dir+"/small")
	p, err := unix.Mmap(int(f.Fd()), 0, 13, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	check(t, err)
	defer unix.Munmap(p)
	writeInto(t, dir+"/small", 0, "SMALL")
	equal(t, "page that was not changed", string(p[:5]), "SMALL")
	p[0] = '!'
	holds(t, dir+"/small", "SMALL content")
}

func storeThroughMap(t *testing.T, dir string) {
	f, err := os.OpenFile(dir+"/large", os.O_RDWR, 0)
	check(t, err)
	p, err := unix.Mmap(int(f.Fd()), 0, lowerBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	check(t, err)
	f.Close()
	copy(p[100_000:], "stored")
	g := openRead(t, dir+"/large")
	equal(t, "at once", readAt(t, g, 100_000, 6), "stored")
	check(t, unix.Msync(p, unix.MS_SYNC))
	check(t, unix.Munmap(p))
	equal(t, "afterwards", readAt(t, g, 99_998, 10)[2:8], "stored")
}

func hardLinksStayOne(t *testing.T, dir string) {
	ino := stat(t, dir+"/two").Ino
	writeInto(t, dir+"/one", 0, "LINKED")
	holds(t, dir+"/two", "LINKED")
	check(t, os.Chmod(dir+"/sub/three", 0o600))
	for _, name := range []string{"/one", "/two", "/sub/three"} {
		st := stat(t, dir+name)
		equal(t, name+": inode", st.Ino, ino)
		equal(t, name+": links", uint64(st.Nlink), 3)
		equal(t, name+": mode", st.Mode&0o777, 0o600)
	}
	holds(t, dir+"/sub/three", "LINKED")
}

func unlinkOneName(t *testing.T, dir string) {
	check(t, os.Remove(dir+"/one"))
	equal(t, "links", uint64(stat(t, dir+"/two").Nlink), 2)
	check(t, os.Rename(dir+"/sub/three", dir+"/moved"))
	check(t, os.Link(dir+"/moved", dir+"/fourth"))
	writeInto(t, dir+"/fourth", 0, "FOURTH")
	holds(t, dir+"/two", "FOURTH")
	equal(t, "links", uint64(stat(t, dir+"/two").Nlink), 3)
}

func identityStays(t *testing.T, dir string) {
	type id struct {
		ino, dev uint64
		mtime    unix.Timespec
		mode     uint32
		size     int64
	}
	get := func(path string) id {
		st := stat(t, path)
		return id{st.Ino, uint64(st.Dev), st.Mtim, st.Mode, st.Size}
	}
	var born, was unix.Statx_t
	path := dir + "/small"
	check(t, unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_BTIME, &was))
	before := get(path)
	check(t, unix.Setxattr(path, "user.more", []byte("x"), 0))
	check(t, os.Link(path, dir+"/again"))
	equal(t, "after an attribute and a link", get(path), before)
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	check(t, err)
	unix.Close(fd)
	equal(t, "after opening to write", get(path), before)
	check(t, unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_BTIME, &born))
	equal(t, "time of birth", born.Btime, was.Btime)
	buf := make([]byte, 20)
	n, err := unix.Getxattr(path, "user.kept", buf)
	check(t, err)
	equal(t, "attribute of the lower", string(buf[:n]), "value")
	check(t, os.Rename(path, dir+"/sub/small"))
	equal(t, "after a move", get(dir+"/sub/small"), before)
}

func holesStay(t *testing.T, dir string) {
	f, err := os.OpenFile(dir+"/sparse", os.O_RDWR, 0)
	check(t, err)
	defer f.Close()
	data, blocks := walkHoles(t, f, 12<<20), stat(t, dir+"/sparse").Blocks
	_, err = f.WriteAt([]byte("!"), 7<<20)
	check(t, err)
	if now := walkHoles(t, f, 12<<20); now < data || now > data+(128<<10) {
		t.Errorf("%d bytes of data after one more was written, %d before", now, data)
	}
	if now := stat(t, dir+"/sparse").Blocks; now > blocks+256 {
		t.Errorf("%d blocks after a byte was written, %d before", now, blocks)
	}
	for _, off := range []int64{0, 5 << 20, 9<<20 + 77} {
		equal(t, "island", readAt(t, f, off, 6), "island")
	}
}

// randomWrites mixes bytes of the lower with written ones, by two descriptors.
func randomWrites(t *testing.T, dir string) {
	want := []byte(strings.Repeat("large content...", lowerBytes/16))
	reader := openRead(t, dir+"/large")
	for i := range 60 {
		off := i * 104_729 % len(want)
		data := bytes.Repeat([]byte{byte('A' + i%26)}, min(1+i*37%9000, len(want)-off))
		copy(want[off:], data)
		writeInto(t, dir+"/large", int64(off), string(data))
		from := max(0, off-500)
		to := min(len(want), off+len(data)+500)
		equal(t, "around the write", readAt(t, reader, int64(from), to-from), string(want[from:to]))
	}
	holds(t, dir+"/large", string(want))
}

func moveDirectory(t *testing.T, dir string) {
	ino, deep := stat(t, dir+"/sub").Ino, stat(t, dir+"/sub/deep/file").Ino
	put(t, dir+"/sub/new", "new")
	check(t, os.Rename(dir+"/sub", dir+"/moved"))
	check(t, os.Mkdir(dir+"/into", 0o755))
	check(t, os.Rename(dir+"/moved/deep", dir+"/into/deep"))
	check(t, os.Rename(dir+"/moved", dir+"/into/sub"))
	equal(t, "inode", stat(t, dir+"/into/sub").Ino, ino)
	equal(t, "inode below", stat(t, dir+"/into/deep/file").Ino, deep)
	holds(t, dir+"/into/sub/file", "in sub")
	holds(t, dir+"/into/deep/file", "in deep")
	holds(t, dir+"/into/sub/new", "new")
	var st unix.Stat_t
	fails(t, "old name", unix.Lstat(dir+"/sub", &st), unix.ENOENT)
	fails(t, "old place of the one below", unix.Lstat(dir+"/into/sub/deep", &st), unix.ENOENT)
}

func oldNameIsFree(t *testing.T, dir string) {
	check(t, os.Rename(dir+"/sub", dir+"/away"))
	check(t, os.Mkdir(dir+"/sub", 0o755))
	left, err := os.ReadDir(dir + "/sub")
	check(t, err)
	equal(t, "names in the new directory", len(left), 0)
	put(t, dir+"/sub/file", "another")
	holds(t, dir+"/away/file", "in sub")
	check(t, os.Rename(dir+"/away/file", dir+"/sub/file"))
	holds(t, dir+"/sub/file", "in sub")
}

func replaceDirectory(t *testing.T, dir string) {
	check(t, os.RemoveAll(dir+"/sub"))
	check(t, os.Mkdir(dir+"/sub", 0o700))
	left, err := os.ReadDir(dir + "/sub")
	check(t, err)
	equal(t, "names", len(left), 0)
	check(t, os.Remove(dir+"/sub"))
	put(t, dir+"/sub", "a file")
	check(t, os.Remove(dir+"/sub"))
	check(t, os.Symlink(".", dir+"/sub"))
	holds(t, dir+"/sub/small", "small content")
}

func replaceFile(t *testing.T, dir string) {
	f := openRead(t, dir+"/small")
	ino := stat(t, dir+"/small").Ino
	put(t, dir+"/tmp", "replaced")
	check(t, os.Rename(dir+"/tmp", dir+"/small"))
	holds(t, dir+"/small", "replaced")
	equal(t, "opened before", readAt(t, f, 0, 100), "small content")
	if stat(t, dir+"/small").Ino == ino {
		t.Error("the new file has the old one's inode number")
	}
}

func exchangeKinds(t *testing.T, dir string) {
	check(t, rename2(dir+"/small", dir+"/sub", unix.RENAME_EXCHANGE))
	holds(t, dir+"/sub", "small content")
	holds(t, dir+"/small/deep/file", "in deep")
	check(t, rename2(dir+"/small/deep", dir+"/large", unix.RENAME_EXCHANGE))
	holds(t, dir+"/large/file", "in deep")
	equal(t, "size", stat(t, dir+"/small/deep").Size, lowerBytes)
}

func linkToLower(t *testing.T, dir string) {
	for _, name := range []string{"/small", "/link", "/fifo"} {
		before := stat(t, dir+name)
		check(t, unix.Link(dir+name, dir+"/sub"+name))
		st := stat(t, dir+"/sub"+name)
		equal(t, name+": inode", st.Ino, before.Ino)
		equal(t, name+": links", uint64(st.Nlink), 2)
		equal(t, name+": mode", st.Mode, before.Mode)
		equal(t, name+": mtime", st.Mtim, before.Mtim)
		check(t, os.Remove(dir+name))
		equal(t, name+": links", uint64(stat(t, dir+"/sub"+name).Nlink), 1)
	}
}

func lowerSymlink(t *testing.T, dir string) {
	ino := stat(t, dir+"/link").Ino
	want := unix.Timespec{Sec: 7, Nsec: 8}
	check(t, unix.UtimesNanoAt(unix.AT_FDCWD, dir+"/link", []unix.Timespec{want, want}, unix.AT_SYMLINK_NOFOLLOW))
	equal(t, "mtime", stat(t, dir+"/link").Mtim, want)
	check(t, os.Rename(dir+"/link", dir+"/link2"))
	target, err := os.Readlink(dir + "/link2")
	check(t, err)
	equal(t, "target", target, "small")
	equal(t, "inode", stat(t, dir+"/link2").Ino, ino)
}

func lockAcrossCopyUp(t *testing.T, dir string) {
	a := openRead(t, dir+"/small")
	check(t, unix.Flock(int(a.Fd()), unix.LOCK_EX))
	b, err := os.OpenFile(dir+"/small", os.O_RDWR, 0)
	check(t, err)
	defer b.Close()
	_, err = b.WriteAt([]byte("S"), 0)
	check(t, err)
	fails(t, "after copy-up", unix.Flock(int(b.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EAGAIN)
}

func unlinkedLowerWorksOn(t *testing.T, dir string) {
	for _, name := range []string{"/small", "/large"} {
		f, err := os.OpenFile(dir+name, os.O_RDWR, 0)
		check(t, err)
		defer f.Close()
		was := readAt(t, f, 0, 13)
		check(t, os.Remove(dir+name))
		equal(t, "after unlink", readAt(t, f, 0, 13), was)
		_, err = f.WriteAt([]byte("#"), 1)
		check(t, err)
		equal(t, "after a write", readAt(t, f, 0, 13), was[:1]+"#"+was[2:])
		var st unix.Stat_t
		check(t, unix.Fstat(int(f.Fd()), &st))
		equal(t, "links", uint64(st.Nlink), 0)
	}
}

func appendToLower(t *testing.T, dir string) {
	f, err := os.OpenFile(dir+"/small", os.O_WRONLY|os.O_APPEND, 0)
	check(t, err)
	defer f.Close()
	_, err = f.WriteString(" and more")
	check(t, err)
	holds(t, dir+"/small", "small content and more")
	big, err := os.OpenFile(dir+"/large", os.O_WRONLY|os.O_APPEND, 0)
	check(t, err)
	defer big.Close()
	_, err = big.WriteString("end")
	check(t, err)
	g := openRead(t, dir+"/large")
	equal(t, "tail", readAt(t, g, lowerBytes-3, 10), "...end")
}

func cutInTheMiddle(t *testing.T, dir string) {
	for _, name := range []string{"/large", "/small"} {
		n := stat(t, dir+name).Size
		check(t, os.Truncate(dir+name, 7))
		check(t, os.Truncate(dir+name, n))
		f := openRead(t, dir+name)
		equal(t, name, readAt(t, f, 0, 13)[7:], "\x00\x00\x00\x00\x00\x00")
		equal(t, name+": end", readAt(t, f, n-3, 10), "\x00\x00\x00")
	}
}

// listingAgrees compares what a listing says of inodes before and after copy-up.
func listingAgrees(t *testing.T, dir string) {
	numbers := func() map[string]uint64 {
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		check(t, err)
		defer unix.Close(fd)
		all := map[string]uint64{}
		for entries := chunk(t, fd, 32<<10); entries != nil; entries = chunk(t, fd, 32<<10) {
			for _, e := range entries {
				if e.name != ".." {
					all[e.name] = e.ino
				}
			}
		}
		return all
	}
	before := numbers()
	for name := range before {
		if name != "." && name != "link" {
			check(t, os.Chmod(dir+"/"+name, 0o700))
		}
	}
	after := numbers()
	for name, ino := range before {
		equal(t, name+": d_ino", after[name], ino)
		equal(t, name+": st_ino", stat(t, dir+"/"+name).Ino, ino)
	}
}

// timesOfParents checks that copy-up of a file moves no directory's times.
func timesOfParents(t *testing.T, dir string) {
	before := []times{timesOf(t, dir), timesOf(t, dir+"/sub"), timesOf(t, dir+"/sub/deep")}
	tick()
	writeInto(t, dir+"/sub/deep/file", 0, "IN")
	check(t, os.Chmod(dir+"/sub/deep/file", 0o600))
	after := []times{timesOf(t, dir), timesOf(t, dir+"/sub"), timesOf(t, dir+"/sub/deep")}
	for i := range before {
		equal(t, "times of a directory above", after[i], before[i])
	}
}
