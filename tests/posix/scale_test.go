package posix

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

var scaleCases = map[string]func(t *testing.T, dir string){
	"LargeDirectory":     largeDirectory,
	"EmptyWhileReading":  emptyWhileReading,
	"SeekInLarge":        seekInLarge,
	"DeepTree":           deepTree,
	"LongPaths":          longPaths,
	"EveryByteInNames":   everyByteInNames,
	"ManyLinks":          manyLinks,
	"ManySubdirectories": manySubdirectories,
	"LargeXattrs":        largeXattrs,
	"ExtremeTimes":       extremeTimes,
}

// scale returns how large the cases are: POSIX_SCALE=1 is a tenth of what they
// are about, 10 all of it.
func scale(n int) int {
	if s, err := strconv.Atoi(os.Getenv("POSIX_SCALE")); err == nil && s > 0 {
		return n / 10 * s
	}
	return n / 20
}

// mknodMany makes files with as few calls as possible.
func mknodMany(t testing.TB, dir string, n int) {
	t.Helper()
	fd := openDir(t, dir)
	for i := range n {
		check(t, unix.Mknodat(fd, fmt.Sprintf("f%06d", i), unix.S_IFREG|0o644, 0))
	}
}

// largeDirectory reads 100,000 entries while some of them are removed, renamed
// and added: what stays is told exactly once.
func largeDirectory(t *testing.T, dir string) {
	n := scale(100_000)
	mknodMany(t, dir, n)
	fd := openDir(t, dir)
	seen := map[string]int{}
	change := 0
	for entries := chunk(t, fd, 32<<10); entries != nil; entries = chunk(t, fd, 32<<10) {
		for _, e := range entries {
			seen[e.name]++
		}
		for range 5 {
			i := change * 7 % n
			name := fmt.Sprintf("f%06d", i)
			switch change % 3 {
			case 0:
				unix.Unlinkat(fd, name, 0)
			case 1:
				unix.Renameat(fd, name, fd, "moved"+name)
			case 2:
				check(t, unix.Mknodat(fd, fmt.Sprint("added", change), unix.S_IFREG|0o644, 0))
			}
			change++
		}
	}
	for i := range n {
		name := fmt.Sprintf("f%06d", i)
		touched := i%7 == 0 && i/7 < change || change*7 > n
		if times := seen[name]; times != 1 && !(touched && times == 0) {
			t.Fatalf("%s is told %d times", name, times)
		}
	}
}

// emptyWhileReading removes all that is told, in the way of rm -r, which must
// leave nothing.
func emptyWhileReading(t *testing.T, dir string) {
	check(t, os.Mkdir(dir+"/d", 0o755))
	mknodMany(t, dir+"/d", scale(40_000))
	fd := openDir(t, dir+"/d")
	for entries := chunk(t, fd, 8<<10); entries != nil; entries = chunk(t, fd, 8<<10) {
		for _, e := range entries {
			if e.name != "." && e.name != ".." {
				check(t, unix.Unlinkat(fd, e.name, 0))
			}
		}
	}
	check(t, unix.Rmdir(dir+"/d"))
}

// seekInLarge goes back to remembered places, also after entries went.
func seekInLarge(t *testing.T, dir string) {
	mknodMany(t, dir, scale(20_000))
	fd := openDir(t, dir)
	var all []dirent
	for entries := chunk(t, fd, 32<<10); entries != nil; entries = chunk(t, fd, 32<<10) {
		all = append(all, entries...)
	}
	for i := 10; i < len(all)-1; i += len(all) / 20 {
		next := all[i+1].name
		if i%2 == 0 && all[i].name[0] == 'f' { // the entry at the place itself is gone
			check(t, unix.Unlinkat(fd, all[i].name, 0))
		}
		_, err := unix.Seek(fd, all[i].off, unix.SEEK_SET)
		check(t, err)
		rest := chunk(t, fd, 1024)
		if len(rest) == 0 || rest[0].name != next {
			t.Fatalf("after entry %d: got %v, want %q", i, rest, next)
		}
	}
}

// deepTree makes 5,000 levels, looks at the lowest by a path that no call takes
// at once, moves the top and removes all from below.
func deepTree(t *testing.T, dir string) {
	levels := scale(5000)
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	check(t, err)
	down := func() {
		next, err := unix.Openat(fd, "level", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		check(t, err)
		unix.Close(fd)
		fd = next
	}
	for range levels {
		check(t, unix.Mkdirat(fd, "level", 0o755))
		down()
	}
	file, err := unix.Openat(fd, "file", unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
	check(t, err)
	_, err = unix.Write(file, []byte("deep"))
	check(t, err)
	unix.Close(file)
	check(t, os.Rename(dir+"/level", dir+"/moved"))
	var st unix.Stat_t
	check(t, unix.Fstatat(fd, "file", &st, 0))
	equal(t, "size", st.Size, 4)
	check(t, unix.Unlinkat(fd, "file", 0))
	for i := range levels {
		up, err := unix.Openat(fd, "..", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		check(t, err)
		unix.Close(fd)
		fd = up
		name := "level"
		if i == levels-1 {
			name = "moved"
		}
		if err := unix.Unlinkat(fd, name, unix.AT_REMOVEDIR); err != nil {
			t.Fatalf("level %d from below: %v", i, err)
		}
	}
	unix.Close(fd)
	left, err := os.ReadDir(dir)
	check(t, err)
	equal(t, "names left", len(left), 0)
}

func longPaths(t *testing.T, dir string) {
	name := strings.Repeat("p", 250)
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	check(t, err)
	var up []int
	for range 30 { // 7,500 bytes
		check(t, unix.Mkdirat(fd, name, 0o755))
		next, err := unix.Openat(fd, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		check(t, err)
		up = append(up, fd)
		fd = next
	}
	check(t, unix.Symlinkat("target", fd, "link"))
	file, err := unix.Openat(fd, "file", unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
	check(t, err)
	unix.Close(file)
	check(t, unix.Linkat(fd, "file", up[0], "high", 0))
	check(t, unix.Renameat(up[0], "high", fd, "back"))
	check(t, unix.Fchmodat(fd, "back", 0o600, 0))
	for _, n := range []string{"link", "file", "back"} {
		check(t, unix.Unlinkat(fd, n, 0))
	}
	unix.Close(fd)
	for i := len(up) - 1; i >= 0; i-- {
		check(t, unix.Unlinkat(up[i], name, unix.AT_REMOVEDIR))
		unix.Close(up[i])
	}
}

func everyByteInNames(t *testing.T, dir string) {
	want := map[string]bool{}
	for b := 1; b < 256; b++ {
		if b == '/' {
			continue
		}
		name := "n" + string([]byte{byte(b)})
		if b != '.' {
			want[string([]byte{byte(b)})] = true
		}
		want[name] = true
	}
	for name := range want {
		put(t, dir+"/"+name, name)
	}
	fd := openDir(t, dir)
	n := 0
	for entries := chunk(t, fd, 32<<10); entries != nil; entries = chunk(t, fd, 32<<10) {
		for _, e := range entries {
			if want[e.name] {
				n++
			}
		}
	}
	equal(t, "names", n, len(want))
	for name := range want {
		holds(t, dir+"/"+name, name)
		check(t, os.Rename(dir+"/"+name, dir+"/moved"))
		check(t, os.Remove(dir+"/moved"))
	}
}

func manyLinks(t *testing.T, dir string) {
	put(t, dir+"/f", "x")
	fd := openDir(t, dir)
	n := scale(20_000)
	for i := range n {
		check(t, unix.Linkat(fd, "f", fd, fmt.Sprint("l", i), 0))
	}
	equal(t, "links", uint64(stat(t, dir+"/f").Nlink), uint64(n)+1)
	for i := range n {
		check(t, unix.Unlinkat(fd, fmt.Sprint("l", i), 0))
	}
	equal(t, "links", uint64(stat(t, dir+"/f").Nlink), 1)
}

func manySubdirectories(t *testing.T, dir string) {
	check(t, os.Mkdir(dir+"/d", 0o755))
	n := scale(10_000)
	fd := openDir(t, dir+"/d")
	for i := range n {
		check(t, unix.Mkdirat(fd, fmt.Sprint("s", i), 0o755))
	}
	if links := uint64(stat(t, dir+"/d").Nlink); links != uint64(n)+2 && links != 1 {
		t.Errorf("%d links with %d subdirectories", links, n)
	}
	for i := range n {
		check(t, unix.Unlinkat(fd, fmt.Sprint("s", i), unix.AT_REMOVEDIR))
	}
	equal(t, "links", uint64(stat(t, dir+"/d").Nlink), 2)
}

func largeXattrs(t *testing.T, dir string) {
	put(t, dir+"/f", "")
	for _, n := range []int{1, 255, 1000, 3000} {
		value := allOf("v", n)
		check(t, unix.Setxattr(dir+"/f", "user.large", value, 0))
		buf := make([]byte, 1<<16)
		got, err := unix.Getxattr(dir+"/f", "user.large", buf)
		check(t, err)
		equal(t, "value", string(buf[:got]), string(value))
	}
	for i := range 20 {
		check(t, unix.Setxattr(dir+"/f", fmt.Sprint("user.n", i), []byte("x"), 0))
	}
	fails(t, "too large", unix.Setxattr(dir+"/f", "user.x", make([]byte, 65537), 0), unix.E2BIG)
	err := unix.Setxattr(dir+"/f", "user.x", make([]byte, 65536), 0)
	if err != nil && err != unix.ENOSPC {
		t.Errorf("the largest value: %v", err)
	}
	_, err = unix.Listxattr(dir+"/f", make([]byte, 5))
	fails(t, "list that is too short", err, unix.ERANGE)
}

// extremeTimes stays within what ext4 can keep.
func extremeTimes(t *testing.T, dir string) {
	put(t, dir+"/f", "")
	for _, sec := range []int64{-1<<31 + 1, -1, 0, 1 << 31, 1<<32 + 5, 1<<33 - 1} {
		for _, nsec := range []int64{0, 1, 999_999_999} {
			ts := unix.Timespec{Sec: sec, Nsec: nsec}
			check(t, unix.UtimesNano(dir+"/f", []unix.Timespec{ts, ts}))
			st := stat(t, dir+"/f")
			equal(t, "atime", st.Atim, ts)
			equal(t, "mtime", st.Mtim, ts)
		}
	}
}
