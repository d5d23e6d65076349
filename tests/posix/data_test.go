package posix

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
)

var dataCases = map[string]func(t *testing.T, dir string){
	"TruncateShowsZeros":       truncateShowsZeros,
	"UnalignedWrites":          unalignedWrites,
	"OpenTruncates":            openTruncates,
	"TwoAppenders":             twoAppenders,
	"ParallelAppend":           parallelAppend,
	"MappedStore":              mappedStore,
	"MappedLoadSeesWrite":      mappedLoadSeesWrite,
	"PrivateMapping":           privateMapping,
	"Holes":                    holes,
	"PunchAndZero":             punchAndZero,
	"AllocateKeepsSize":        allocateKeepsSize,
	"CopyFileRange":            copyFileRange,
	"HighOffset":               highOffset,
	"ReadAtEnd":                readAtEnd,
	"WriteOnReadOnly":          writeOnReadOnly,
	"LargeWrite":               largeWrite,
	"VectorsAndSeek":           vectorsAndSeek,
	"OverwriteManyTimes":       overwriteManyTimes,
	"WriterSeesOtherWriter":    writerSeesOtherWriter,
	"TruncatedWhileAppending":  truncatedWhileAppending,
	"DataSurvivesCloseAndOpen": dataSurvivesCloseAndOpen,
}

func create(t testing.TB, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	check(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func put(t testing.TB, path, data string) {
	t.Helper()
	check(t, os.WriteFile(path, []byte(data), 0o644))
}

// holds checks a file's content.
func holds(t testing.TB, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	check(t, err)
	if string(got) == want {
		return
	}
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	t.Errorf("content: got %d bytes, want %d; first difference at %d", len(got), len(want), at)
}

func truncateShowsZeros(t *testing.T, dir string) {
	path := dir + "/f"
	put(t, path, strings.Repeat("x", 10000))
	check(t, os.Truncate(path, 5000))
	check(t, os.Truncate(path, 9000))
	holds(t, path, strings.Repeat("x", 5000)+strings.Repeat("\x00", 4000))
	check(t, os.Truncate(path, 0))
	check(t, os.Truncate(path, 3))
	holds(t, path, "\x00\x00\x00")
	fails(t, "negative size", unix.Truncate(path, -1), unix.EINVAL)
}

func unalignedWrites(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	want := make([]byte, 40000)
	for i := range 200 {
		off, n := (i*7919)%35000, 1+(i*104729)%5000
		data := bytes.Repeat([]byte{byte(i + 1)}, n)
		copy(want[off:], data)
		_, err := f.WriteAt(data, int64(off))
		check(t, err)
	}
	st, err := f.Stat()
	check(t, err)
	holds(t, dir+"/f", string(want[:st.Size()]))
}

func openTruncates(t *testing.T, dir string) {
	put(t, dir+"/f", "long content")
	put(t, dir+"/f", "short")
	holds(t, dir+"/f", "short")
}

func twoAppenders(t *testing.T, dir string) {
	var fs [2]*os.File
	for i := range fs {
		f, err := os.OpenFile(dir+"/f", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		check(t, err)
		defer f.Close()
		fs[i] = f
	}
	want := ""
	for i := range 50 {
		line := fmt.Sprintf("line %d\n", i)
		_, err := fs[i%2].WriteString(line)
		check(t, err)
		want += line
	}
	holds(t, dir+"/f", want)
}

func parallelAppend(t *testing.T, dir string) {
	const writers, lines = 4, 200
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			f, err := os.OpenFile(dir+"/f", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			for i := range lines {
				fmt.Fprintf(f, "%d:%d\n", w, i)
			}
		})
	}
	wg.Wait()
	data, err := os.ReadFile(dir + "/f")
	check(t, err)
	next := map[string]int{}
	for line := range strings.Lines(string(data)) {
		var w, i int
		fmt.Sscanf(line, "%d:%d", &w, &i)
		key := fmt.Sprint(w)
		equal(t, "order of writer "+key, i, next[key])
		next[key]++
	}
	equal(t, "lines", bytes.Count(data, []byte("\n")), writers*lines)
}

func mapped(t *testing.T, f *os.File, n, flags int) []byte {
	t.Helper()
	p, err := unix.Mmap(int(f.Fd()), 0, n, unix.PROT_READ|unix.PROT_WRITE, flags)
	check(t, err)
	t.Cleanup(func() { unix.Munmap(p) })
	return p
}

func mappedStore(t *testing.T, dir string) {
	put(t, dir+"/f", strings.Repeat("a", 10000))
	p := mapped(t, create(t, dir+"/f"), 10000, unix.MAP_SHARED)
	copy(p[4090:], "stored")
	check(t, unix.Msync(p, unix.MS_SYNC))
	holds(t, dir+"/f", strings.Repeat("a", 4090)+"stored"+strings.Repeat("a", 5904))
}

func mappedLoadSeesWrite(t *testing.T, dir string) {
	put(t, dir+"/f", strings.Repeat("a", 8192))
	f := create(t, dir+"/f")
	p := mapped(t, f, 8192, unix.MAP_SHARED)
	equal(t, "before", p[5000], 'a')
	_, err := f.WriteAt([]byte("b"), 5000)
	check(t, err)
	equal(t, "after", p[5000], 'b')
}

func privateMapping(t *testing.T, dir string) {
	put(t, dir+"/f", strings.Repeat("a", 4096))
	p := mapped(t, create(t, dir+"/f"), 4096, unix.MAP_PRIVATE)
	p[0] = 'z'
	holds(t, dir+"/f", strings.Repeat("a", 4096))
}

// walkHoles walks the data by SEEK_DATA and SEEK_HOLE, returns how much there is and
// checks that the walk never leaves the file.
func walkHoles(t *testing.T, f *os.File, size int64) (data int64) {
	t.Helper()
	for off := int64(0); off < size; {
		at, err := unix.Seek(int(f.Fd()), off, unix.SEEK_DATA)
		if err == unix.ENXIO {
			return data
		}
		check(t, err)
		end, err := unix.Seek(int(f.Fd()), at, unix.SEEK_HOLE)
		check(t, err)
		if end <= at || end > size {
			t.Fatalf("hole at %d after data at %d in a file of %d", end, at, size)
		}
		data += end - at
		off = end
	}
	return data
}

func holes(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	const size = 8 << 20
	for _, off := range []int64{0, 3 << 20, size - 5} {
		_, err := f.WriteAt([]byte("data!"), off)
		check(t, err)
	}
	if data := walkHoles(t, f, size); data < 15 || data > 1<<20 {
		t.Errorf("%d bytes of data in a sparse file", data)
	}
	want := make([]byte, size)
	for _, off := range []int{0, 3 << 20, size - 5} {
		copy(want[off:], "data!")
	}
	holds(t, dir+"/f", string(want))
	_, err := unix.Seek(int(f.Fd()), size, unix.SEEK_DATA)
	fails(t, "SEEK_DATA at the end", err, unix.ENXIO)
}

func punchAndZero(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	want := bytes.Repeat([]byte("x"), 100000)
	_, err := f.Write(want)
	check(t, err)
	fall := func(mode uint32, off, n int64) {
		t.Helper()
		err := unix.Fallocate(int(f.Fd()), mode, off, n)
		if err == unix.EOPNOTSUPP {
			harness.Lacking(t, "a file system with fallocate mode %#x", mode)
		}
		check(t, err)
	}
	fall(unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 5000, 20001)
	clear(want[5000:25001])
	fall(unix.FALLOC_FL_ZERO_RANGE, 50001, 100)
	clear(want[50001:50101])
	fall(unix.FALLOC_FL_ZERO_RANGE, 99990, 20)
	clear(want[99990:])
	want = append(want, make([]byte, 10)...)
	holds(t, dir+"/f", string(want))
	fails(t, "punch without keep size", unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE, 0, 1), unix.EOPNOTSUPP)
}

func allocateKeepsSize(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	check(t, unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, 1<<20))
	equal(t, "size", size(t, f), 0)
	check(t, unix.Fallocate(int(f.Fd()), 0, 100, 1000))
	equal(t, "size", size(t, f), 1100)
	holds(t, dir+"/f", strings.Repeat("\x00", 1100))
	fails(t, "length 0", unix.Fallocate(int(f.Fd()), 0, 0, 0), unix.EINVAL)
}

func size(t testing.TB, f *os.File) int64 {
	t.Helper()
	st, err := f.Stat()
	check(t, err)
	return st.Size()
}

func copyFileRange(t *testing.T, dir string) {
	put(t, dir+"/from", strings.Repeat("0123456789", 3000))
	put(t, dir+"/to", strings.Repeat("x", 100))
	from, to := create(t, dir+"/from"), create(t, dir+"/to")
	offFrom, offTo := int64(5), int64(50)
	n, err := unix.CopyFileRange(int(from.Fd()), &offFrom, int(to.Fd()), &offTo, 10000, 0)
	check(t, err)
	equal(t, "offset", offTo, 50+int64(n))
	holds(t, dir+"/to", strings.Repeat("x", 50)+strings.Repeat("0123456789", 3000)[5:5+n])
	offFrom = 1 << 20
	n, err = unix.CopyFileRange(int(from.Fd()), &offFrom, int(to.Fd()), &offTo, 10, 0)
	check(t, err)
	equal(t, "copied behind the end", n, 0)
}

func highOffset(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	const off = 1 << 40
	_, err := f.WriteAt([]byte("far"), off)
	check(t, err)
	equal(t, "size", size(t, f), off+3)
	buf := make([]byte, 5)
	_, err = f.ReadAt(buf, off-2)
	check(t, err)
	equal(t, "data", string(buf), "\x00\x00far")
}

func readAtEnd(t *testing.T, dir string) {
	put(t, dir+"/f", "abc")
	f := create(t, dir+"/f")
	buf := make([]byte, 10)
	for off, want := range map[int64]int{0: 3, 2: 1, 3: 0, 100: 0} {
		n, err := unix.Pread(int(f.Fd()), buf, off)
		check(t, err)
		equal(t, fmt.Sprintf("bytes at %d", off), n, want)
	}
}

func writeOnReadOnly(t *testing.T, dir string) {
	put(t, dir+"/f", "abc")
	f, err := os.Open(dir + "/f")
	check(t, err)
	defer f.Close()
	_, err = unix.Write(int(f.Fd()), []byte("x"))
	fails(t, "write", err, unix.EBADF)
	fails(t, "ftruncate", unix.Ftruncate(int(f.Fd()), 0), unix.EINVAL)
	holds(t, dir+"/f", "abc")
}

func largeWrite(t *testing.T, dir string) {
	data := strings.Repeat("0123456789abcdef", 300_000)
	f := create(t, dir+"/f")
	n, err := unix.Write(int(f.Fd()), []byte(data))
	check(t, err)
	equal(t, "written", n, len(data))
	holds(t, dir+"/f", data)
}

func vectorsAndSeek(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	n, err := unix.Writev(int(f.Fd()), [][]byte{[]byte("one "), nil, []byte("two "), []byte("three")})
	check(t, err)
	equal(t, "written", n, 13)
	_, err = f.Seek(4, 0)
	check(t, err)
	a, b := make([]byte, 3), make([]byte, 100)
	n, err = unix.Readv(int(f.Fd()), [][]byte{a, b})
	check(t, err)
	equal(t, "read", string(a)+string(b[:n-3]), "two three")
}

func overwriteManyTimes(t *testing.T, dir string) {
	f := create(t, dir+"/f")
	want := make([]byte, 10)
	for i := range 500 {
		data := fmt.Appendf(nil, "%08d", i)
		copy(want[i%3:], data)
		_, err := f.WriteAt(data, int64(i%3))
		check(t, err)
	}
	holds(t, dir+"/f", string(want))
}

func writerSeesOtherWriter(t *testing.T, dir string) {
	a, b := create(t, dir+"/f"), create(t, dir+"/f")
	_, err := a.WriteAt([]byte("aaaa"), 0)
	check(t, err)
	_, err = b.WriteAt([]byte("bb"), 1)
	check(t, err)
	buf := make([]byte, 4)
	_, err = a.ReadAt(buf, 0)
	check(t, err)
	equal(t, "data", string(buf), "abba")
}

func truncatedWhileAppending(t *testing.T, dir string) {
	f, err := os.OpenFile(dir+"/f", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	check(t, err)
	defer f.Close()
	f.WriteString("gone")
	check(t, os.Truncate(dir+"/f", 0))
	f.WriteString("stays")
	holds(t, dir+"/f", "stays")
}

func dataSurvivesCloseAndOpen(t *testing.T, dir string) {
	for i := range 100 {
		put(t, fmt.Sprintf("%s/%d", dir, i), strings.Repeat(fmt.Sprint(i), i*50))
	}
	for i := range 100 {
		holds(t, fmt.Sprintf("%s/%d", dir, i), strings.Repeat(fmt.Sprint(i), i*50))
	}
}
