package lower

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
)

// newFS returns an FS over a fresh directory that fill has filled.
func newFS(t *testing.T, max int, fill func(dir string)) (*FS, *Dir, string) {
	t.Helper()
	dir := t.TempDir()
	fill(dir)
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := New(max)
	t.Cleanup(f.Close)
	root, err := f.Add(fd)
	if err != nil {
		t.Fatal(err)
	}
	return f, root, dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestReadThroughDescriptors(t *testing.T) {
	f, root, _ := newFS(t, 2, func(dir string) {
		must(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, "a/b/file"), []byte("hello"), 0o644))
		must(t, os.Symlink("file", filepath.Join(dir, "a/b/link")))
		must(t, os.WriteFile(filepath.Join(dir, "x"), nil, 0o644))
	})
	list, err := root.ReadDir()
	must(t, err)
	var names []string
	for _, e := range list {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"a", "x"}) {
		t.Errorf("ReadDir = %q", names)
	}
	dir, name := f.Locate(1, "a/b/file")
	if got := dir.PathOf(name); got != "a/b/file" {
		t.Errorf("PathOf = %q", got)
	}
	buf := make([]byte, 10)
	n, err := File{Dir: dir, Name: name}.ReadAt(buf, 1)
	if err != nil || string(buf[:n]) != "ello" {
		t.Errorf("ReadAt = %q, %v", buf[:n], err)
	}
	target, err := File{Dir: dir, Name: "link"}.Readlink()
	if err != nil || target != "file" {
		t.Errorf("Readlink = %q, %v", target, err)
	}
	if _, err := dir.Stat("missing"); !errors.Is(err, unix.ENOENT) {
		t.Errorf("Stat of a missing name: %v", err)
	}
}

func TestPlantedLinksAreNotFollowed(t *testing.T) {
	f, root, dir := newFS(t, 8, func(dir string) {
		must(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
		must(t, os.Symlink("/etc", filepath.Join(dir, "etc")))
		must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "passwd")))
	})
	if _, err := root.Child("etc", 0).ReadDir(); err == nil {
		t.Error("a symbolic link was read as a directory")
	}
	if _, err := (File{Dir: root, Name: "passwd"}).ReadAt(make([]byte, 1), 0); err == nil {
		t.Error("a symbolic link was read as a file")
	}
	st, err := root.Stat("d")
	must(t, err)
	d := root.Child("d", st.Ino)
	must(t, os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "old")))
	must(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	if _, err := d.ReadDir(); !errors.Is(err, ErrStale) {
		t.Errorf("reading a replaced directory: %v, want ErrStale", err)
	}
	_ = f
}

func TestDescriptorsAreBounded(t *testing.T) {
	const files = 50
	_, root, _ := newFS(t, 4, func(dir string) {
		for i := range files {
			must(t, os.WriteFile(filepath.Join(dir, string(rune('A'+i))), []byte{byte(i)}, 0o644))
		}
	})
	for i := range files {
		buf := make([]byte, 1)
		if _, err := (File{Dir: root, Name: string(rune('A' + i))}).ReadAt(buf, 0); err != nil || buf[0] != byte(i) {
			t.Fatalf("file %d: %d, %v", i, buf[0], err)
		}
	}
	root.fs.ahead.close()
	if n := root.fs.cache.count; n > 4 {
		t.Errorf("%d descriptors open, want at most 4", n)
	}
}

// TestReplacedFileIsNeverRead replaces a file under its name, by one with another
// inode number and by one that may get the same.
func TestReplacedFileIsNeverRead(t *testing.T) {
	_, root, dir := newFS(t, 8, func(dir string) { must(t, os.WriteFile(dir+"/f", []byte("old"), 0o644)) })
	find := func() File {
		st, err := root.Stat("f")
		must(t, err)
		return File{Dir: root, Name: "f", Ino: st.Ino, Btime: st.Btime}
	}
	read := func(f File) (string, error) {
		buf := make([]byte, 8)
		n, err := f.ReadAt(buf, 0)
		return string(buf[:n]), err
	}
	old := find()
	if got, err := read(old); got != "old" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	must(t, os.WriteFile(dir+"/g", []byte("new"), 0o644))
	must(t, os.Rename(dir+"/g", dir+"/f"))
	if got, err := read(find()); got != "new" || err != nil {
		t.Errorf("new file, with the old one's descriptor cached: got %q, %v", got, err)
	}
	if got, err := read(old); got != "old" || err != nil {
		t.Errorf("old file, by its descriptor: got %q, %v", got, err)
	}
	root.Drop("f")
	if got, err := read(old); !errors.Is(err, ErrStale) {
		t.Errorf("old file: got %q, %v, want ErrStale", got, err)
	}
	last := find()
	must(t, os.Remove(dir+"/f"))
	must(t, os.WriteFile(dir+"/f", []byte("third"), 0o644))
	if got, err := read(last); !errors.Is(err, ErrStale) {
		t.Errorf("deleted file: got %q, %v, want ErrStale", got, err)
	}
	if _, err := last.Stat(); !errors.Is(err, ErrStale) {
		t.Errorf("stat of a deleted file: %v, want ErrStale", err)
	}
}

func TestKept(t *testing.T) {
	_, root, dir := newFS(t, 2, func(dir string) {
		must(t, os.WriteFile(dir+"/f", []byte("text"), 0o644))
		must(t, os.Mkdir(dir+"/d", 0o755))
		must(t, os.WriteFile(dir+"/d/g", nil, 0o644))
	})
	st, err := root.Stat("f")
	must(t, err)
	f := File{Dir: root, Name: "f", Ino: st.Ino}
	buf := make([]byte, 4)
	_, err = f.ReadAt(buf, 0)
	must(t, err)
	if root.Detach("f", st.Ino) != nil {
		t.Error("took the descriptor of the file that is there")
	}
	must(t, os.Remove(dir+"/f"))
	f.Kept = root.Detach("f", 0)
	if f.Kept == nil {
		t.Fatal("the descriptor was not cached")
	}
	if st, err := f.Stat(); err != nil || st.Nlink != 0 {
		t.Errorf("stat: %d links, %v", st.Nlink, err)
	}
	if n, err := f.ReadAt(buf, 0); n != 4 || err != nil {
		t.Errorf("read: %d, %v", n, err)
	}
	f.Kept.Close()
	f.Kept.Close()
	if _, err := f.Stat(); !errors.Is(err, ErrStale) {
		t.Errorf("after Close: %v, want ErrStale", err)
	}
}

func TestMovedDirectory(t *testing.T) {
	_, root, dir := newFS(t, 1, func(dir string) {
		must(t, os.MkdirAll(dir+"/a/b", 0o755))
		must(t, os.WriteFile(dir+"/a/b/f", []byte("text"), 0o644))
	})
	a := root.Child("a", 0)
	b := a.Child("b", 0)
	must(t, os.Rename(dir+"/a", dir+"/z"))
	if !a.Move(root.Child("z", 0)) {
		t.Fatal("not moved")
	}
	if got, want := b.PathOf("f"), "z/b/f"; got != want {
		t.Errorf("path: got %q, want %q", got, want)
	}
	if _, err := b.Stat("f"); err != nil {
		t.Error(err)
	}
	if a.Move(b.Child("a", 0)) {
		t.Error("moved below itself")
	}
	if root.Move(b) {
		t.Error("moved a root")
	}
}

// TestAccessTimesStay reads everything of a source and looks at it afterwards.
func TestAccessTimesStay(t *testing.T) {
	// To copy mounts: an ordinary user can't read a link without moving its time.
	harness.RequireRoot(t)
	dir := t.TempDir()
	must(t, os.Mkdir(dir+"/d", 0o755))
	must(t, os.WriteFile(dir+"/d/file", []byte("x"), 0o644))
	must(t, os.Symlink("file", dir+"/d/link"))
	old := unix.Timespec{Sec: 1000} // older than mtime, so that relatime would move it
	for _, path := range []string{"", "/d", "/d/file", "/d/link"} {
		must(t, unix.UtimesNanoAt(unix.AT_FDCWD, dir+path, []unix.Timespec{old, {Sec: 2000}}, unix.AT_SYMLINK_NOFOLLOW))
	}
	fd, err := OpenSource(dir)
	must(t, err)
	f := New(8)
	t.Cleanup(f.Close)
	root, err := f.Add(fd)
	must(t, err)
	_, err = root.ReadDir()
	must(t, err)
	d := root.Child("d", 0)
	_, err = d.ReadDir()
	must(t, err)
	_, err = File{Dir: d, Name: "link"}.Readlink()
	must(t, err)
	_, err = File{Dir: d, Name: "file"}.ReadAt(make([]byte, 1), 0)
	must(t, err)
	for _, path := range []string{"", "/d", "/d/file", "/d/link"} {
		var st unix.Stat_t
		must(t, unix.Lstat(dir+path, &st))
		if st.Atim != old {
			t.Errorf("access time of %q moved to %d", path, st.Atim.Sec)
		}
	}
	if err := unix.Mkdirat(root.rootFD, "made", 0o755); err != unix.EROFS {
		t.Errorf("mkdir in the source: %v, want EROFS", err)
	}
}

// The source's descriptor is on a copy of its mount, where that is allowed: its
// place on the host is still the same.
func TestIsAt(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "src")
	must(t, os.Mkdir(dir, 0o755))
	fd, err := OpenSource(dir)
	must(t, err)
	fs := New(4)
	t.Cleanup(fs.Close)
	root, err := fs.Add(fd)
	must(t, err)
	if at, err := root.IsAt(dir); err != nil || !at {
		t.Errorf("at its place: %v, %v", at, err)
	}
	must(t, os.Rename(dir, dir+".old"))
	if _, err := root.IsAt(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("moved away: %v", err)
	}
	must(t, os.Mkdir(dir, 0o755))
	if at, err := root.IsAt(dir); err != nil || at {
		t.Errorf("replaced: %v, %v", at, err)
	}
}
