package posix

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// asyncCases are asynchronous and direct I/O, and what memory calls do to files.
var asyncCases = map[string]func(t *testing.T, dir string){
	"AIO":                asyncIO,
	"AIODirect":          asyncDirect,
	"AIOSparse":          asyncSparse,
	"DirectAppendZeros":  directAppendZeros,
	"DirectCutZeros":     directCutZeros,
	"RemoveByMapping":    removeByMapping,
	"PopulateMapping":    populateMapping,
	"MappingGrows":       mappingGrows,
	"VmspliceToFile":     vmspliceToFile,
	"SpliceFromItself":   spliceFromItself,
	"SmallDirent":        smallDirent,
	"PathDescriptor":     pathDescriptor,
	"Mincore":            mincore,
	"SharedAcrossFork":   twoMappings,
	"ForkedOffset":       sharedOffset,
	"ReadFromDirectory":  readFromDirectory,
	"SyncRange":          syncRange,
	"AdviseAndReadahead": advise,
}

// iocb is struct iocb of linux/aio_abi.h.
type iocb struct {
	data   uint64
	_      uint32 // key
	_      int32  // RWF_ flags
	opcode uint16
	_      int16 // priority
	fd     uint32
	buf    uint64
	n      uint64
	off    int64
	_      uint64
	_      uint32 // flags
	_      uint32 // eventfd
}

type ioEvent struct {
	data, obj uint64
	res, res2 int64
}

const (
	aioRead  = 0
	aioWrite = 1
	aioFsync = 2
)

// aio submits all calls at once and returns their results by the place in the
// list.
func aio(t testing.TB, calls []iocb) []int64 {
	t.Helper()
	var ctx uintptr
	if _, _, e := unix.Syscall(unix.SYS_IO_SETUP, uintptr(len(calls)), uintptr(unsafe.Pointer(&ctx)), 0); e != 0 {
		t.Fatalf("io_setup: %v", e)
	}
	defer unix.Syscall(unix.SYS_IO_DESTROY, ctx, 0, 0)
	list := make([]*iocb, len(calls))
	for i := range calls {
		calls[i].data = uint64(i)
		list[i] = &calls[i]
	}
	for done := 0; done < len(list); {
		n, _, e := unix.Syscall(unix.SYS_IO_SUBMIT, ctx, uintptr(len(list)-done), uintptr(unsafe.Pointer(&list[done])))
		if e != 0 {
			t.Fatalf("io_submit: %v", e)
		}
		done += int(n)
	}
	out := make([]int64, len(calls))
	events := make([]ioEvent, len(calls))
	for left := len(calls); left > 0; {
		n, _, e := unix.Syscall6(unix.SYS_IO_GETEVENTS, ctx, 1, uintptr(left), uintptr(unsafe.Pointer(&events[0])), 0, 0)
		if e == unix.EINTR {
			continue
		}
		if e != 0 {
			t.Fatalf("io_getevents: %v", e)
		}
		for _, ev := range events[:n] {
			out[ev.data] = ev.res
		}
		left -= int(n)
	}
	return out
}

func ioCall(op uint16, fd int, p []byte, off int64) iocb {
	c := iocb{opcode: op, fd: uint32(fd), off: off, n: uint64(len(p))}
	if len(p) > 0 {
		c.buf = uint64(uintptr(unsafe.Pointer(&p[0])))
	}
	return c
}

// asyncBlocks writes blocks out of order by AIO and reads them back.
func asyncBlocks(t *testing.T, path string, flags int) {
	const n, size = 32, 8192
	fd, err := unix.Open(path, flags|unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
	check(t, err)
	defer unix.Close(fd)
	mem := aligned(t, n*size)
	var calls []iocb
	for i := range n {
		k := (i*13 + 5) % n
		p := mem[k*size : (k+1)*size]
		copy(p, bytes.Repeat([]byte{byte('A' + k)}, size))
		calls = append(calls, ioCall(aioWrite, fd, p, int64(k*size)))
	}
	for i, res := range aio(t, calls) {
		equal(t, fmt.Sprint("write ", i), res, size)
	}
	equal(t, "fsync", aio(t, []iocb{ioCall(aioFsync, fd, nil, 0)})[0], 0)
	back := aligned(t, n*size)
	calls = calls[:0]
	for i := range n {
		calls = append(calls, ioCall(aioRead, fd, back[i*size:(i+1)*size], int64(i*size)))
	}
	for i, res := range aio(t, calls) {
		equal(t, fmt.Sprint("read ", i), res, size)
	}
	if !bytes.Equal(mem, back) {
		t.Error("other bytes came back")
	}
	equal(t, "read at the end", aio(t, []iocb{ioCall(aioRead, fd, back[:size], n*size)})[0], 0)
	equal(t, "size", stat(t, path).Size, n*size)
}

func asyncIO(t *testing.T, dir string)     { asyncBlocks(t, dir+"/f", 0) }
func asyncDirect(t *testing.T, dir string) { asyncBlocks(t, dir+"/f", unix.O_DIRECT) }

// asyncSparse fills a sparse file by direct AIO while another reads it: every
// byte is a zero or the written one.
func asyncSparse(t *testing.T, dir string) {
	const n, size = 64, 4096
	f := create(t, dir+"/f")
	check(t, f.Truncate(n*size))
	fd, err := unix.Open(dir+"/f", unix.O_RDWR|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	check(t, err)
	defer unix.Close(fd)
	stop := onlyBytes(t, dir+"/f", 0, 'Z')
	mem := aligned(t, size)
	copy(mem, allOf("Z", size))
	var calls []iocb
	for i := range n {
		calls = append(calls, ioCall(aioWrite, fd, mem, int64((i*29%n)*size)))
	}
	for _, res := range aio(t, calls) {
		equal(t, "written", res, size)
	}
	stop()
	holds(t, dir+"/f", string(allOf("Z", n*size)))
}

// onlyBytes reads the file over and over until stop is called and wants no
// other bytes than those.
func onlyBytes(t *testing.T, path string, allowed ...byte) (stop func()) {
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !done.Load() {
				data, err := os.ReadFile(path)
				if err != nil {
					t.Error(err)
					return
				}
				for i, c := range data {
					if bytes.IndexByte(allowed, c) < 0 {
						t.Errorf("byte %d is %q", i, c)
						return
					}
				}
			}
		})
	}
	return func() { done.Store(true); wg.Wait() }
}

// directAppendZeros appends zeros by direct I/O while others read: a reader
// must not see what was in the memory or on the disk before.
func directAppendZeros(t *testing.T, dir string) {
	put(t, dir+"/old", string(allOf("X", 1<<20)))
	check(t, os.Remove(dir+"/old"))
	put(t, dir+"/f", "")
	stop := onlyBytes(t, dir+"/f", 0)
	fd, err := unix.Open(dir+"/f", unix.O_WRONLY|unix.O_DIRECT|unix.O_APPEND|unix.O_CLOEXEC, 0)
	check(t, err)
	defer unix.Close(fd)
	mem := aligned(t, 64<<10)
	for range 40 {
		n, err := unix.Write(fd, mem)
		check(t, err)
		equal(t, "written", n, len(mem))
	}
	stop()
	equal(t, "size", stat(t, dir+"/f").Size, 40*64<<10)
}

// directCutZeros writes by direct I/O and cuts the file, over and over, while
// others read.
func directCutZeros(t *testing.T, dir string) {
	put(t, dir+"/f", "")
	stop := onlyBytes(t, dir+"/f", 0)
	fd, err := unix.Open(dir+"/f", unix.O_WRONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	check(t, err)
	defer unix.Close(fd)
	mem := aligned(t, 64<<10)
	for i := range 60 {
		_, err := unix.Pwrite(fd, mem, int64(i%7)*(64<<10))
		check(t, err)
		check(t, unix.Ftruncate(fd, int64(i*4099%300_000)))
	}
	stop()
}

// removeByMapping punches a hole by madvise(2).
func removeByMapping(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	_, err := f.Write(allOf("a", 64<<10))
	check(t, err)
	p, err := unix.Mmap(int(f.Fd()), 0, 64<<10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	check(t, err)
	defer unix.Munmap(p)
	p[5000] = 'b'
	check(t, unix.Madvise(p[16384:32768], unix.MADV_REMOVE))
	want := append(allOf("a", 16384), make([]byte, 16384)...)
	want = append(want, allOf("a", 32768)...)
	want[5000] = 'b'
	if !bytes.Equal(p, want) {
		t.Error("the mapping has other bytes")
	}
	holds(t, dir+"/f", string(want))
}

func populateMapping(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	_, err := f.Write(allOf("a", 32<<10))
	check(t, err)
	p, err := unix.Mmap(int(f.Fd()), 0, 32<<10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	check(t, err)
	defer unix.Munmap(p)
	check(t, unix.Madvise(p, unix.MADV_POPULATE_READ))
	check(t, unix.Madvise(p, unix.MADV_POPULATE_WRITE))
	p[9] = 'b'
	check(t, unix.Madvise(p, unix.MADV_DONTNEED))
	equal(t, "after MADV_DONTNEED", p[9], 'b')
	check(t, unix.Msync(p, unix.MS_SYNC|unix.MS_INVALIDATE))
	check(t, unix.Msync(p, unix.MS_ASYNC))
	g := openRead(t, dir+"/f")
	equal(t, "read", readAt(t, g, 8, 3), "aba")
}

// mappingGrows maps beyond the end, then makes the file longer.
func mappingGrows(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	check(t, f.Truncate(4096))
	p, err := unix.Mmap(int(f.Fd()), 0, 16384, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	check(t, err)
	defer unix.Munmap(p)
	p[10] = 'x'
	check(t, f.Truncate(16384))
	p[16000] = 'y'
	check(t, unix.Fallocate(int(f.Fd()), 0, 16384, 4096))
	g := openRead(t, dir+"/f")
	equal(t, "size", size(t, g), 20480)
	equal(t, "first page", readAt(t, g, 9, 3), "\x00x\x00")
	equal(t, "last page", readAt(t, g, 15999, 3), "\x00y\x00")
}

func vmspliceToFile(t *testing.T, dir string) {
	var p [2]int
	check(t, unix.Pipe2(p[:], unix.O_CLOEXEC))
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	data := allOf("v", 10_000)
	n, err := unix.Vmsplice(p[1], []unix.Iovec{{Base: &data[0], Len: uint64(len(data))}}, 0)
	check(t, err)
	equal(t, "spliced into the pipe", n, len(data))
	f := create(t, dir+"/f")
	off := int64(100)
	for left := int64(n); left > 0; {
		k, err := unix.Splice(p[0], nil, int(f.Fd()), &off, int(left), unix.SPLICE_F_MOVE)
		check(t, err)
		left -= k
	}
	holds(t, dir+"/f", string(make([]byte, 100))+string(data))
}

// spliceFromItself splices a file into a pipe and then changes the file: the
// pipe may have either, the file only what was written.
func spliceFromItself(t *testing.T, dir string) {
	put(t, dir+"/f", string(allOf("o", 4096)))
	var p [2]int
	check(t, unix.Pipe2(p[:], unix.O_CLOEXEC))
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	f := openRead(t, dir+"/f")
	off := int64(0)
	_, err := unix.Splice(int(f.Fd()), &off, p[1], nil, 100, 0)
	check(t, err)
	_, err = unix.Write(p[1], []byte("into the pipe"))
	check(t, err)
	holds(t, dir+"/f", string(allOf("o", 4096)))
}

func smallDirent(t *testing.T, dir string) {
	put(t, dir+"/"+string(allOf("n", 255)), "")
	fd := openDir(t, dir)
	var err error
	for range 4 { // "." and ".." fit
		if _, err = unix.Getdents(fd, make([]byte, 40)); err != nil {
			break
		}
	}
	fails(t, "a buffer that is too small", err, unix.EINVAL)
	f := create(t, dir+"/f")
	_, err = unix.Getdents(int(f.Fd()), make([]byte, 400))
	fails(t, "of a file", err, unix.ENOTDIR)
}

func pathDescriptor(t *testing.T, dir string) {
	put(t, dir+"/f", "data")
	fd, err := unix.Open(dir+"/f", unix.O_PATH|unix.O_CLOEXEC, 0)
	check(t, err)
	defer unix.Close(fd)
	_, err = unix.Read(fd, make([]byte, 4))
	fails(t, "read", err, unix.EBADF)
	fails(t, "ftruncate", unix.Ftruncate(fd, 0), unix.EBADF)
	fails(t, "fchmod", unix.Fchmod(fd, 0o600), unix.EBADF)
	again := fmt.Sprintf("/proc/self/fd/%d", fd)
	check(t, os.Rename(dir+"/f", dir+"/g"))
	holds(t, again, "data")
	check(t, unix.Linkat(unix.AT_FDCWD, again, unix.AT_FDCWD, dir+"/h", unix.AT_SYMLINK_FOLLOW))
	check(t, os.Remove(dir+"/g"))
	check(t, os.Remove(dir+"/h"))
	holds(t, again, "data")
	var st unix.Stat_t
	check(t, unix.Fstat(fd, &st))
	equal(t, "links", uint64(st.Nlink), 0)
}

func mincore(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	_, err := f.Write(allOf("a", 8192))
	check(t, err)
	p, err := unix.Mmap(int(f.Fd()), 0, 8192, unix.PROT_READ, unix.MAP_SHARED)
	check(t, err)
	defer unix.Munmap(p)
	_ = p[0] + p[4096]
	var vec [2]byte
	_, _, e := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&p[0])), 8192, uintptr(unsafe.Pointer(&vec[0])))
	equal(t, "mincore", e, 0)
	equal(t, "pages in memory", vec[0]&vec[1]&1, 1)
}

// twoMappings shares stores between two mappings and a descriptor.
func twoMappings(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	check(t, f.Truncate(8192))
	a, err := unix.Mmap(int(f.Fd()), 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	check(t, err)
	g, err := os.OpenFile(dir+"/f", os.O_RDWR, 0)
	check(t, err)
	b, err := unix.Mmap(int(g.Fd()), 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	check(t, err)
	g.Close()
	copy(a[4000:], "over the edge of a page, and then some more bytes so that it is one; ..............................................")
	equal(t, "other mapping", string(b[4000:4013]), "over the edge")
	_, err = f.WriteAt([]byte("OVER"), 4000)
	check(t, err)
	equal(t, "after a write", string(b[4000:4008]), "OVER the")
	check(t, unix.Munmap(a))
	check(t, unix.Munmap(b))
	equal(t, "after unmapping", readAt(t, f, 4000, 8), "OVER the")
}

// sharedOffset checks that descriptors of one open file share its offset.
func sharedOffset(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	check(t, err)
	defer unix.Close(fd)
	for i := range 5 {
		_, err := unix.Write([]int{int(f.Fd()), fd}[i%2], []byte{byte('a' + i)})
		check(t, err)
	}
	holds(t, dir+"/f", "abcde")
}

func readFromDirectory(t *testing.T, dir string) {
	fd := openDir(t, dir)
	_, err := unix.Read(fd, make([]byte, 10))
	fails(t, "read", err, unix.EISDIR)
	_, err = unix.Pread(fd, make([]byte, 10), 0)
	fails(t, "pread", err, unix.EISDIR)
	_, err = unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE)
	fails(t, "mmap", err, unix.ENODEV)
	fails(t, "ftruncate", unix.Ftruncate(fd, 0), unix.EINVAL)
	fails(t, "fallocate", unix.Fallocate(fd, 0, 0, 10), unix.EBADF)
}

func syncRange(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	_, err := f.Write(allOf("a", 100_000))
	check(t, err)
	all := unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	check(t, unix.SyncFileRange(int(f.Fd()), 10, 5000, all))
	fails(t, "negative", unix.SyncFileRange(int(f.Fd()), -1, 10, all), unix.EINVAL)
	fails(t, "flags", unix.SyncFileRange(int(f.Fd()), 0, 10, 8), unix.EINVAL)
}

func advise(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	_, err := f.Write(allOf("a", 100_000))
	check(t, err)
	for _, advice := range []int{unix.FADV_NORMAL, unix.FADV_SEQUENTIAL, unix.FADV_RANDOM, unix.FADV_WILLNEED, unix.FADV_NOREUSE, unix.FADV_DONTNEED} {
		check(t, unix.Fadvise(int(f.Fd()), 0, 100_000, advice))
	}
	fails(t, "fadvise", unix.Fadvise(int(f.Fd()), 0, 10, 99), unix.EINVAL)
	_, _, e := unix.Syscall(unix.SYS_READAHEAD, f.Fd(), 0, 50_000)
	equal(t, "readahead", e, 0)
	holds(t, dir+"/f", string(allOf("a", 100_000)))
}
