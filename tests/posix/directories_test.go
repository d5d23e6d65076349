package posix

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

var directoryCases = map[string]func(t *testing.T, dir string){
	"ListWhileUnlinking": listWhileUnlinking,
	"ListWhileCreating":  listWhileCreating,
	"SeekInListing":      seekInListing,
	"InodesInListing":    inodesInListing,
	"DeletedDirectory":   deletedDirectory,
	"Parents":            parents,
	"ParallelChurn":      parallelChurn,
	"SyncDirectory":      syncDirectory,
	"NegativeThenMade":   negativeThenMade,
}

// dirent is an entry as getdents64 gives it.
type dirent struct {
	ino  uint64
	off  int64
	typ  uint8
	name string
}

// chunk reads the next entries from a directory's descriptor; nil at the end.
func chunk(t testing.TB, fd, size int) []dirent {
	t.Helper()
	buf := make([]byte, size)
	n, err := unix.Getdents(fd, buf)
	check(t, err)
	var all []dirent
	for buf = buf[:n]; len(buf) > 0; {
		d := (*unix.Dirent)(unsafe.Pointer(&buf[0]))
		name := buf[19:d.Reclen]
		all = append(all, dirent{d.Ino, d.Off, d.Type, unix.ByteSliceToString(name)})
		buf = buf[d.Reclen:]
	}
	return all
}

func openDir(t testing.TB, dir string) int {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	check(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func fill(t testing.TB, dir string, n int) {
	t.Helper()
	for i := range n {
		put(t, fmt.Sprintf("%s/f%05d", dir, i), "")
	}
}

// listWhileUnlinking removes each second entry while it reads: what stays must
// be told exactly once.
func listWhileUnlinking(t *testing.T, dir string) {
	const n = 2000
	fill(t, dir, n)
	fd := openDir(t, dir)
	seen := map[string]int{}
	for entries := chunk(t, fd, 4096); entries != nil; entries = chunk(t, fd, 4096) {
		for _, d := range entries {
			seen[d.name]++
			if len(seen)%2 == 0 && d.name[0] != '.' {
				check(t, os.Remove(dir+"/"+d.name))
			}
		}
	}
	equal(t, "names", len(seen), n+2)
	for name, times := range seen {
		equal(t, "times that "+name+" is told", times, 1)
	}
}

// listWhileCreating adds entries while it reads: what was there before must be
// told exactly once.
func listWhileCreating(t *testing.T, dir string) {
	const n = 1000
	fill(t, dir, n)
	fd := openDir(t, dir)
	seen := map[string]int{}
	made := 0
	for entries := chunk(t, fd, 4096); entries != nil; entries = chunk(t, fd, 4096) {
		for _, d := range entries {
			seen[d.name]++
		}
		if made < 500 {
			put(t, fmt.Sprintf("%s/new%d", dir, made), "")
			made++
		}
	}
	for i := range n {
		name := fmt.Sprintf("f%05d", i)
		equal(t, "times that "+name+" is told", seen[name], 1)
	}
}

func seekInListing(t *testing.T, dir string) {
	fill(t, dir, 300)
	fd := openDir(t, dir)
	var all []dirent
	for entries := chunk(t, fd, 1024); entries != nil; entries = chunk(t, fd, 1024) {
		all = append(all, entries...)
	}
	for _, at := range []int{0, 1, 2, 150, 299, 300} {
		_, err := unix.Seek(fd, all[at].off, unix.SEEK_SET)
		check(t, err)
		rest := chunk(t, fd, 1024)
		if len(rest) == 0 || rest[0].name != all[at+1].name {
			t.Errorf("after the entry %d: got %v, want %q", at, rest, all[at+1].name)
		}
	}
	_, err := unix.Seek(fd, 0, unix.SEEK_SET)
	check(t, err)
	equal(t, "after rewinding", chunk(t, fd, 1024)[0].name, all[0].name)
}

func inodesInListing(t *testing.T, dir string) {
	fill(t, dir, 20)
	check(t, os.Mkdir(dir+"/d", 0o755))
	check(t, os.Symlink("x", dir+"/l"))
	fd := openDir(t, dir)
	for _, d := range chunk(t, fd, 32<<10) {
		if d.name == ".." {
			continue
		}
		st := stat(t, dir+"/"+d.name)
		equal(t, "inode of "+d.name, d.ino, st.Ino)
		equal(t, "type of "+d.name, uint32(d.typ)<<12, st.Mode&unix.S_IFMT)
	}
}

func deletedDirectory(t *testing.T, dir string) {
	check(t, os.Mkdir(dir+"/d", 0o755))
	fd := openDir(t, dir+"/d")
	check(t, os.Remove(dir+"/d"))
	buf := make([]byte, 4096)
	if n, err := unix.Getdents(fd, buf); err != unix.ENOENT {
		_, _, names := unix.ParseDirent(buf[:max(n, 0)], -1, nil)
		equal(t, "names in a deleted directory", len(names), 0)
	}
	_, err := unix.Openat(fd, "f", unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
	fails(t, "create in it", err, unix.ENOENT)
	fails(t, "mkdir in it", unix.Mkdirat(fd, "d", 0o755), unix.ENOENT)
}

func parents(t *testing.T, dir string) {
	check(t, os.MkdirAll(dir+"/a/b", 0o755))
	check(t, os.Mkdir(dir+"/c", 0o755))
	check(t, os.Rename(dir+"/a/b", dir+"/c/b"))
	equal(t, "parent after the move", stat(t, dir+"/c/b/..").Ino, stat(t, dir+"/c").Ino)
}

func parallelChurn(t *testing.T, dir string) {
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 100 {
				name := fmt.Sprintf("%s/%d-%d", dir, w, i%7)
				if err := os.WriteFile(name, []byte("x"), 0o644); err != nil {
					t.Error(err)
					return
				}
				if err := os.Rename(name, name+".moved"); err != nil {
					t.Error(err)
				}
				os.ReadDir(dir)
				if err := os.Remove(name + ".moved"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	left, err := os.ReadDir(dir)
	check(t, err)
	equal(t, "names left", len(left), 0)
}

func syncDirectory(t *testing.T, dir string) {
	put(t, dir+"/f", "x")
	check(t, unix.Fsync(openDir(t, dir)))
	check(t, unix.Fdatasync(openDir(t, dir)))
	check(t, create(t, dir+"/f").Sync())
}

// negativeThenMade asks for a name before it is made, so that the kernel knows
// that it does not exist.
func negativeThenMade(t *testing.T, dir string) {
	for i := range 20 {
		name := fmt.Sprintf("%s/n%d", dir, i)
		var st unix.Stat_t
		fails(t, "before", unix.Lstat(name, &st), unix.ENOENT)
		fails(t, "before", unix.Lstat(name, &st), unix.ENOENT)
		put(t, dir+"/other", "x")
		check(t, os.Rename(dir+"/other", name))
		check(t, unix.Lstat(name, &st))
		fails(t, "moved away", unix.Lstat(dir+"/other", &st), unix.ENOENT)
	}
}
