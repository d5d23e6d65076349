package posix

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
)

var ioCases = map[string]func(t *testing.T, dir string){
	"DirectIO":           directIO,
	"Splice":             spliceThrough,
	"Sendfile":           sendfile,
	"WriteFlags":         writeFlags,
	"SyncFlags":          syncFlags,
	"StoreBeyondCut":     storeBeyondCut,
	"MapAfterTruncate":   mapAfterTruncate,
	"MapsOfTwoFiles":     mapsOfTwoFiles,
	"CopyWithinFile":     copyWithinFile,
	"CopyErrors":         copyErrors,
	"AllocateModes":      allocateModes,
	"SeekEdges":          seekEdges,
	"Leases":             leases,
	"OFDLocks":           ofdLocks,
	"LockRanges":         lockRanges,
	"Watches":            watches,
	"Handles":            handles,
	"BirthTime":          birthTime,
	"FileSizeLimit":      fileSizeLimit,
	"SparseBlocks":       sparseBlocks,
	"AppendFromMany":     appendFromMany,
	"ScriptInterpreters": scriptInterpreters,
	"InodeFlags":         inodeFlags,
}

func allOf(c string, n int) []byte { return bytes.Repeat([]byte(c), n) }

// aligned returns memory that O_DIRECT takes.
func aligned(t testing.TB, n int) []byte {
	t.Helper()
	p, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	check(t, err)
	t.Cleanup(func() { unix.Munmap(p) })
	return p
}

func directIO(t *testing.T, dir string) {
	put(t, dir+"/f", strings.Repeat("a", 16384))
	fd, err := unix.Open(dir+"/f", unix.O_RDWR|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err == unix.EINVAL {
		harness.Lacking(t, "a file system with direct I/O")
	}
	check(t, err)
	defer unix.Close(fd)
	buf := aligned(t, 4096)
	copy(buf, allOf("d", 4096))
	n, err := unix.Pwrite(fd, buf, 4096)
	check(t, err)
	equal(t, "written", n, 4096)
	holds(t, dir+"/f", strings.Repeat("a", 4096)+strings.Repeat("d", 4096)+strings.Repeat("a", 8192))
	writeInto(t, dir+"/f", 8192, "cached")
	n, err = unix.Pread(fd, buf, 8192)
	check(t, err)
	equal(t, "read", string(buf[:8]), "cachedaa")
	equal(t, "bytes", n, 4096)
	n, err = unix.Pread(fd, buf, 16384)
	check(t, err)
	equal(t, "at the end", n, 0)
	p := mapped(t, create(t, dir+"/f"), 16384, unix.MAP_SHARED)
	equal(t, "mapped", p[5000], 'd')
	copy(buf, allOf("e", 4096))
	_, err = unix.Pwrite(fd, buf, 4096)
	check(t, err)
	equal(t, "mapped, after a direct write", p[5000], 'e')
}

func spliceThrough(t *testing.T, dir string) {
	put(t, dir+"/from", strings.Repeat("spliced!", 1000))
	from, to := openRead(t, dir+"/from"), create(t, dir+"/to")
	var p [2]int
	check(t, unix.Pipe2(p[:], unix.O_CLOEXEC))
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	for off := int64(0); off < 8000; {
		n, err := unix.Splice(int(from.Fd()), &off, p[1], nil, 4096, 0)
		check(t, err)
		for n > 0 {
			m, err := unix.Splice(p[0], nil, int(to.Fd()), nil, int(n), 0)
			check(t, err)
			n -= m
		}
	}
	holds(t, dir+"/to", strings.Repeat("spliced!", 1000))
}

func sendfile(t *testing.T, dir string) {
	put(t, dir+"/from", strings.Repeat("0123456789", 2000))
	from, to := openRead(t, dir+"/from"), create(t, dir+"/to")
	off := int64(5)
	n, err := unix.Sendfile(int(to.Fd()), int(from.Fd()), &off, 10000)
	check(t, err)
	equal(t, "sent", n, 10000)
	holds(t, dir+"/to", strings.Repeat("5678901234", 1000))
}

func writeFlags(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	write := func(data string, off int64, flags int) error {
		_, err := unix.Pwritev2(int(f.Fd()), [][]byte{[]byte(data)}, off, flags)
		return err
	}
	check(t, write("begin", 0, 0))
	check(t, write("end", 0, unix.RWF_APPEND))
	check(t, write("S", 1, unix.RWF_SYNC))
	check(t, write("D", 2, unix.RWF_DSYNC))
	check(t, write("H", 3, unix.RWF_HIPRI))
	holds(t, dir+"/f", "bSDHnend")
	check(t, write("more", -1, 0)) // at the position, which nothing has moved
	holds(t, dir+"/f", "moreneend"[:5]+"end")
	fails(t, "unknown flag", write("x", 0, 1<<20), unix.EOPNOTSUPP)
	buf := make([]byte, 3)
	n, err := unix.Preadv2(int(f.Fd()), [][]byte{buf}, 1, 0)
	check(t, err)
	equal(t, "read", string(buf[:n]), "ore")
}

func syncFlags(t *testing.T, dir string) {
	for _, flag := range []int{unix.O_SYNC, unix.O_DSYNC} {
		fd, err := unix.Open(dir+"/f", unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC|flag, 0o644)
		check(t, err)
		_, err = unix.Write(fd, []byte("durable"))
		check(t, err)
		check(t, unix.SyncFileRange(fd, 0, 7, unix.SYNC_FILE_RANGE_WRITE))
		check(t, unix.Fdatasync(fd))
		check(t, unix.Syncfs(fd))
		check(t, unix.Fadvise(fd, 0, 7, unix.FADV_DONTNEED))
		unix.Close(fd)
	}
	holds(t, dir+"/f", "durable")
}

// storeBeyondCut stores into what lies behind a file's end in its last page:
// nobody else sees it, and growing the file shows zeros.
func storeBeyondCut(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	check(t, f.Truncate(100))
	p := mapped(t, f, 4096, unix.MAP_SHARED)
	copy(p[50:], "inside")
	copy(p[200:], "beyond")
	check(t, unix.Msync(p, unix.MS_SYNC))
	equal(t, "size", size(t, f), 100)
	check(t, f.Truncate(4096))
	buf := make([]byte, 4096)
	_, err := f.ReadAt(buf, 0)
	check(t, err)
	equal(t, "inside", string(buf[50:56]), "inside")
	equal(t, "beyond", string(buf[200:206]), "\x00\x00\x00\x00\x00\x00")
}

// mapAfterTruncate checks that pages that were cut off are zeros when the file
// grows again.
func mapAfterTruncate(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	_, err := f.Write(allOf("x", 12288))
	check(t, err)
	p := mapped(t, f, 12288, unix.MAP_SHARED)
	equal(t, "before", p[9000], 'x')
	check(t, f.Truncate(5000))
	check(t, f.Truncate(12288))
	equal(t, "kept", p[4999], 'x')
	equal(t, "cut within a page", p[5000], 0)
	equal(t, "cut page", p[9000], 0)
	p[9000] = 'y'
	buf := make([]byte, 1)
	_, err = f.ReadAt(buf, 9000)
	check(t, err)
	equal(t, "stored", buf[0], 'y')
}

func mapsOfTwoFiles(t *testing.T, dir string) {
	a, b := create(t, dir+"/a"), create(t, dir+"/b")
	check(t, a.Truncate(8192))
	check(t, b.Truncate(8192))
	p, q := mapped(t, a, 8192, unix.MAP_SHARED), mapped(t, a, 8192, unix.MAP_SHARED)
	r := mapped(t, b, 8192, unix.MAP_SHARED)
	p[5000] = 1
	equal(t, "same file", q[5000], 1)
	equal(t, "another file", r[5000], 0)
	// write(2) from a mapping of the same file
	_, err := a.WriteAt(p[4096:8192], 0)
	check(t, err)
	equal(t, "written from its own map", q[904], 1)
}

func copyWithinFile(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	_, err := f.WriteString("0123456789")
	check(t, err)
	from, to := int64(0), int64(10)
	n, err := unix.CopyFileRange(int(f.Fd()), &from, int(f.Fd()), &to, 10, 0)
	check(t, err)
	equal(t, "copied", n, 10)
	holds(t, dir+"/f", "01234567890123456789")
	from, to = 2, 5
	_, err = unix.CopyFileRange(int(f.Fd()), &from, int(f.Fd()), &to, 10, 0)
	fails(t, "overlapping", err, unix.EINVAL)
	from, to = 5, 50
	_, err = unix.CopyFileRange(int(f.Fd()), &from, int(f.Fd()), &to, 5, 0)
	check(t, err)
	holds(t, dir+"/f", "01234567890123456789"+strings.Repeat("\x00", 30)+"56789")
}

func copyErrors(t *testing.T, dir string) {
	put(t, dir+"/f", "data")
	f, d := create(t, dir+"/f"), openDir(t, dir)
	ro := openRead(t, dir+"/f")
	app, err := os.OpenFile(dir+"/a", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	check(t, err)
	defer app.Close()
	try := func(in, out int, flags int) error {
		_, err := unix.CopyFileRange(in, nil, out, nil, 4, flags)
		return err
	}
	fails(t, "from a directory", try(d, int(f.Fd()), 0), unix.EISDIR)
	fails(t, "to a read-only descriptor", try(int(f.Fd()), int(ro.Fd()), 0), unix.EBADF)
	fails(t, "to an appending descriptor", try(int(f.Fd()), int(app.Fd()), 0), unix.EBADF)
	fails(t, "flags", try(int(f.Fd()), int(f.Fd()), 1), unix.EINVAL)
}

func allocateModes(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	fd := int(f.Fd())
	_, err := f.Write(allOf("x", 20000))
	check(t, err)
	fall := func(mode uint32, off, n int64) error { return unix.Fallocate(fd, mode, off, n) }
	check(t, fall(unix.FALLOC_FL_KEEP_SIZE, 10000, 100000))
	equal(t, "size kept", size(t, f), 20000)
	check(t, fall(unix.FALLOC_FL_ZERO_RANGE|unix.FALLOC_FL_KEEP_SIZE, 15000, 100000))
	equal(t, "size kept by zeroing", size(t, f), 20000)
	check(t, fall(unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 4096, 8192))
	check(t, fall(0, 0, 30000))
	equal(t, "size", size(t, f), 30000)
	want := append(allOf("x", 4096), make([]byte, 8192)...)
	want = append(want, allOf("x", 15000-4096-8192)...)
	holds(t, dir+"/f", string(append(want, make([]byte, 15000)...)))
	at, err := unix.Seek(fd, 0, unix.SEEK_HOLE)
	check(t, err)
	if at < 4096 || at > 30000 {
		t.Errorf("hole at %d", at)
	}
	fails(t, "negative offset", fall(0, -1, 5), unix.EINVAL)
	fails(t, "no length", fall(0, 0, 0), unix.EINVAL)
	fails(t, "beyond any size", fall(0, 1<<62, 1<<62), unix.EFBIG)
	fails(t, "both modes", fall(unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_ZERO_RANGE|unix.FALLOC_FL_KEEP_SIZE, 0, 5), unix.EOPNOTSUPP)
	ro := openRead(t, dir+"/f")
	fails(t, "read-only descriptor", unix.Fallocate(int(ro.Fd()), 0, 0, 5), unix.EBADF)
	fails(t, "directory", unix.Fallocate(openDir(t, dir), 0, 0, 5), unix.EBADF)
	var p [2]int
	check(t, unix.Pipe2(p[:], unix.O_CLOEXEC))
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	fails(t, "pipe", unix.Fallocate(p[1], 0, 0, 5), unix.ESPIPE)
}

func seekEdges(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	fd := int(f.Fd())
	_, err := unix.Seek(fd, 0, unix.SEEK_DATA)
	fails(t, "data in an empty file", err, unix.ENXIO)
	_, err = unix.Seek(fd, 0, unix.SEEK_HOLE)
	fails(t, "hole in an empty file", err, unix.ENXIO)
	check(t, f.Truncate(1<<20))
	at, err := unix.Seek(fd, 5, unix.SEEK_HOLE)
	check(t, err)
	equal(t, "hole in a hole", at, 5)
	_, err = unix.Seek(fd, 5, unix.SEEK_DATA)
	fails(t, "data in a hole", err, unix.ENXIO)
	_, err = f.WriteAt([]byte("x"), 1<<20-1)
	check(t, err)
	at, err = unix.Seek(fd, 1<<20-1, unix.SEEK_HOLE)
	check(t, err)
	equal(t, "hole behind the last byte", at, 1<<20)
	at, err = unix.Seek(fd, 1<<20-1, unix.SEEK_DATA)
	check(t, err)
	equal(t, "the last byte", at, 1<<20-1)
	_, err = unix.Seek(fd, -1, unix.SEEK_DATA)
	fails(t, "negative", err, unix.ENXIO)
	_, err = unix.Seek(fd, -1, unix.SEEK_SET)
	fails(t, "before the begin", err, unix.EINVAL)
	_, err = unix.Seek(fd, 0, 99)
	fails(t, "unknown whence", err, unix.EINVAL)
	at, err = unix.Seek(fd, 10, unix.SEEK_END)
	check(t, err)
	equal(t, "behind the end", at, 1<<20+10)
}

func leases(t *testing.T, dir string) {
	put(t, dir+"/f", "")
	a := openRead(t, dir+"/f")
	set := func(f *os.File, typ int) error {
		_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, typ)
		return err
	}
	err := set(a, unix.F_RDLCK)
	check(t, err)
	got, err := unix.FcntlInt(a.Fd(), unix.F_GETLEASE, 0)
	check(t, err)
	equal(t, "lease", got, unix.F_RDLCK)
	check(t, set(a, unix.F_UNLCK))
	w := create(t, dir+"/f")
	fails(t, "read lease beside a writer", set(a, unix.F_RDLCK), unix.EAGAIN)
	fails(t, "write lease beside a reader", set(w, unix.F_WRLCK), unix.EAGAIN)
}

func ofdLocks(t *testing.T, dir string) {
	a, b := create(t, dir+"/f"), create(t, dir+"/f")
	lock := func(f *os.File, cmd int, typ int16, start, n int64) (unix.Flock_t, error) {
		l := unix.Flock_t{Type: typ, Start: start, Len: n}
		return l, unix.FcntlFlock(f.Fd(), cmd, &l)
	}
	_, err := lock(a, unix.F_OFD_SETLK, unix.F_RDLCK, 0, 0)
	check(t, err)
	_, err = lock(b, unix.F_OFD_SETLK, unix.F_RDLCK, 5, 5)
	check(t, err)
	_, err = lock(b, unix.F_OFD_SETLK, unix.F_WRLCK, 100, 5)
	fails(t, "write lock in a read lock", err, unix.EAGAIN)
	l, err := lock(b, unix.F_OFD_GETLK, unix.F_WRLCK, 100, 5)
	check(t, err)
	equal(t, "who is in the way", l.Type, unix.F_RDLCK)
	done := make(chan error)
	go func() {
		_, err := lock(b, unix.F_OFD_SETLKW, unix.F_WRLCK, 100, 5)
		done <- err
	}()
	time.Sleep(20 * time.Millisecond)
	select {
	case <-done:
		t.Error("a lock that must wait does not")
	default:
	}
	a.Close() // lets all its locks go
	check(t, <-done)
}

func lockRanges(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	for _, l := range []unix.Flock_t{
		{Type: unix.F_WRLCK, Start: 10, Len: -5}, {Type: unix.F_WRLCK, Whence: unix.SEEK_END, Start: 0, Len: 10},
		{Type: unix.F_UNLCK, Start: 0, Len: 0}, {Type: unix.F_WRLCK, Start: 1 << 62, Len: 0},
	} {
		check(t, unix.FcntlFlock(f.Fd(), unix.F_SETLK, &l))
	}
	bad := unix.Flock_t{Type: unix.F_WRLCK, Start: -1, Len: 1}
	fails(t, "before the begin", unix.FcntlFlock(f.Fd(), unix.F_SETLK, &bad), unix.EINVAL)
	ro := openRead(t, dir+"/f")
	w := unix.Flock_t{Type: unix.F_WRLCK, Len: 1}
	fails(t, "write lock on a read-only descriptor", unix.FcntlFlock(ro.Fd(), unix.F_SETLK, &w), unix.EBADF)
}

// watches checks that inotify tells of what is done through the same mount.
func watches(t *testing.T, dir string) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	check(t, err)
	defer unix.Close(fd)
	_, err = unix.InotifyAddWatch(fd, dir, unix.IN_ALL_EVENTS&^unix.IN_ACCESS&^unix.IN_OPEN&^unix.IN_CLOSE_NOWRITE)
	check(t, err)
	put(t, dir+"/f", "x")
	check(t, os.Rename(dir+"/f", dir+"/g"))
	check(t, os.Chmod(dir+"/g", 0o600))
	check(t, os.Mkdir(dir+"/d", 0o755))
	check(t, os.Remove(dir+"/g"))
	buf := make([]byte, 4096)
	n, err := unix.Read(fd, buf)
	check(t, err)
	var got []string
	for b := buf[:n]; len(b) > 0; {
		e := (*unix.InotifyEvent)(unsafe.Pointer(&b[0]))
		name := unix.ByteSliceToString(b[unix.SizeofInotifyEvent : unix.SizeofInotifyEvent+int(e.Len)])
		got = append(got, fmt.Sprintf("%#x %s", e.Mask, name))
		b = b[unix.SizeofInotifyEvent+int(e.Len):]
	}
	want := []string{"0x100 f", "0x2 f", "0x8 f", "0x40 f", "0x80 g", "0x4 g", "0x40000100 d", "0x200 g"}
	if strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("events %q, want %q", got, want)
	}
}

// handles opens a file that is in use by its handle.
func handles(t *testing.T, dir string) {
	put(t, dir+"/f", "content")
	f := openRead(t, dir+"/f")
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, dir+"/f", 0)
	check(t, err)
	if os.Geteuid() != 0 {
		return // opening by handle is for root
	}
	mnt := openDir(t, dir)
	fd, err := unix.OpenByHandleAt(mnt, h, unix.O_RDONLY|unix.O_CLOEXEC)
	check(t, err)
	defer unix.Close(fd)
	var a, b unix.Stat_t
	check(t, unix.Fstat(fd, &a))
	check(t, unix.Fstat(int(f.Fd()), &b))
	equal(t, "inode", a.Ino, b.Ino)
}

func birthTime(t *testing.T, dir string) {
	begin := time.Now().Add(-20 * time.Millisecond).UnixNano()
	put(t, dir+"/f", "x")
	get := func(path string) int64 {
		var st unix.Statx_t
		check(t, unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st))
		if st.Mask&unix.STATX_BTIME == 0 {
			harness.Lacking(t, "a file system with times of birth")
		}
		return st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	born := get(dir + "/f")
	if born < begin || born > time.Now().UnixNano() {
		t.Errorf("born at %d, not between %d and now", born, begin)
	}
	tick()
	put(t, dir+"/f", "y")
	check(t, os.Chtimes(dir+"/f", time.Unix(1, 0), time.Unix(2, 0)))
	check(t, os.Rename(dir+"/f", dir+"/g"))
	equal(t, "after changes", get(dir+"/g"), born)
}

// fileSizeLimit runs a shell that may not make files of more than 4 KiB.
func fileSizeLimit(t *testing.T, dir string) {
	sh := osexec.Command("sh", "-c", `trap "" XFSZ; ulimit -f 8; head -c 10000 /dev/zero > "$0"; exit 0`, dir+"/f")
	check(t, sh.Run())
	equal(t, "size", stat(t, dir+"/f").Size, 4096)
}

func sparseBlocks(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	check(t, f.Truncate(100<<20))
	if n := stat(t, dir+"/f").Blocks; n > 16 {
		t.Errorf("%d blocks in a hole", n)
	}
	_, err := f.WriteAt(allOf("x", 1<<20), 50<<20)
	check(t, err)
	check(t, f.Sync())
	if n := stat(t, dir+"/f").Blocks; n < 2048 || n > 2200 {
		t.Errorf("%d blocks with 1 MiB of data", n)
	}
	check(t, unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 50<<20, 1<<20))
	check(t, f.Sync())
	if n := stat(t, dir+"/f").Blocks; n > 64 {
		t.Errorf("%d blocks after the data was punched out", n)
	}
}

func appendFromMany(t *testing.T, dir string) {
	const writers, lines, length = 8, 100, 700
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			fd, err := unix.Open(dir+"/f", unix.O_CREAT|unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC, 0o644)
			if err != nil {
				t.Error(err)
				return
			}
			defer unix.Close(fd)
			for range lines {
				if _, err := unix.Write(fd, append(allOf(string(rune('a'+w)), length-1), '\n')); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	data, err := os.ReadFile(dir + "/f")
	check(t, err)
	equal(t, "size", len(data), writers*lines*length)
	for line := range bytes.Lines(data) {
		if len(line) != length || bytes.Count(line, line[:1]) != length-1 {
			t.Fatal("writes are mixed up")
		}
	}
}

func scriptInterpreters(t *testing.T, dir string) {
	run := func(path string) error {
		err := osexec.Command(path).Run()
		var exit *osexec.ExitError
		if errors.As(err, &exit) {
			return fmt.Errorf("exit %d", exit.ExitCode())
		}
		var e unix.Errno
		if errors.As(err, &e) {
			return e
		}
		return err
	}
	write := func(name, text string, mode os.FileMode) string {
		check(t, os.WriteFile(dir+"/"+name, []byte(text), mode))
		check(t, os.Chmod(dir+"/"+name, mode))
		return dir + "/" + name
	}
	shell := write("shell", "#!/bin/sh\nexit 3\n", 0o755)
	equal(t, "script", fmt.Sprint(run(shell)), "exit 3")
	inner := write("inner", "#!"+shell+"\n", 0o755)
	equal(t, "script of a script", fmt.Sprint(run(inner)), "exit 3")
	fails(t, "no interpreter", run(write("none", "#!"+dir+"/nothing\n", 0o755)), unix.ENOENT)
	fails(t, "no program", run(write("text", "\x00\x01\x02", 0o755)), unix.ENOEXEC)
	fails(t, "no permission", run(write("plain", "#!/bin/sh\n", 0o644)), unix.EACCES)
	fails(t, "directory", run(dir), unix.EACCES)
}

// Inode flags (ioctl_iflags(2)).
const (
	flagImmutable = 0x10
	flagAppend    = 0x20
	flagNoDump    = 0x40
)

func inodeFlags(t *testing.T, dir string) {
	put(t, dir+"/f", "x")
	for _, fd := range []int{int(openRead(t, dir+"/f").Fd()), openDir(t, dir)} {
		flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
		check(t, err)
		equal(t, "immutable or append only", flags&(flagImmutable|flagAppend), 0)
		check(t, unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags|flagNoDump))
		now, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
		check(t, err)
		equal(t, "flags", now, flags|flagNoDump)
		check(t, unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags))
	}
	fd := int(openRead(t, dir+"/f").Fd())
	flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	check(t, err)
	if err := unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags|flagImmutable); err != nil {
		fails(t, "immutable", err, unix.EPERM) // an ordinary user, or not in this profile
		return
	}
	check(t, unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags))
	fixedFiles(t, dir)
}

// fixedFiles checks what can't be done to immutable and append-only files.
func fixedFiles(t *testing.T, dir string) {
	set := func(path string, flag int) {
		t.Helper()
		fd := int(openRead(t, path).Fd())
		flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
		check(t, err)
		check(t, unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags&^(flagImmutable|flagAppend)|flag))
	}
	t.Cleanup(func() { // or they could not be removed
		for _, path := range []string{"/fixed16", "/fixed32", "/dir16", "/dir32"} {
			if _, err := os.Stat(dir + path); err == nil {
				set(dir+path, 0)
			}
		}
	})
	for _, flag := range []int{flagImmutable, flagAppend} {
		path := fmt.Sprintf("%s/fixed%d", dir, flag)
		put(t, path, "begin ")
		put(t, path+".other", "")
		w, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		check(t, err)
		defer w.Close()
		set(path, flag)
		_, err = unix.Write(int(w.Fd()), []byte("end"))
		fails(t, "append", err, map[int]error{flagImmutable: unix.EPERM}[flag])
		fails(t, "truncate", unix.Truncate(path, 1), unix.EPERM)
		fails(t, "unlink", unix.Unlink(path), unix.EPERM)
		fails(t, "rename", unix.Rename(path, path+".new"), unix.EPERM)
		fails(t, "rename over", unix.Rename(path+".other", path), unix.EPERM)
		fails(t, "link", unix.Link(path, path+".new"), unix.EPERM)
		fails(t, "chmod", unix.Chmod(path, 0o600), unix.EPERM)
		fails(t, "chown", unix.Chown(path, 1, 1), unix.EPERM)
		fails(t, "utimes", unix.UtimesNano(path, []unix.Timespec{{Sec: 1}, {Sec: 1}}), unix.EPERM)
		fails(t, "setxattr", unix.Setxattr(path, "user.t", nil, 0), unix.EPERM)
		set(path, 0)
		check(t, unix.Unlink(path))
		d := fmt.Sprintf("%s/dir%d", dir, flag)
		check(t, os.Mkdir(d, 0o755))
		put(t, d+"/in", "")
		set(d, flag)
		fails(t, "create in it", openErr(d+"/new", unix.O_CREAT|unix.O_RDWR), map[int]error{flagImmutable: unix.EPERM}[flag])
		fails(t, "unlink in it", unix.Unlink(d+"/in"), unix.EPERM)
		fails(t, "rename in it", unix.Rename(d+"/in", d+"/in2"), unix.EPERM)
		fails(t, "remove it", unix.Rmdir(d), unix.EPERM)
		put(t, d+"/in", "its files can be written")
		set(d, 0)
	}
}
