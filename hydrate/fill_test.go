package hydrate

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
)

// fillDirs makes two directories for Fill.
func fillDirs(t *testing.T) (from, to string) {
	t.Helper()
	dir := t.TempDir()
	from, to = dir+"/from", dir+"/to"
	for _, d := range []string{from, to} {
		must(t, os.Mkdir(d, 0o755))
	}
	return from, to
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, data string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(data), 0o644))
}

// listing lists all paths below a directory, with the contents of files.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var out []string
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		text := path[len(dir)+1:]
		switch {
		case d.Type().IsRegular():
			b, err := os.ReadFile(path)
			must(t, err)
			text += "=" + string(b)
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			must(t, err)
			text += "->" + target
		}
		out = append(out, text)
		return nil
	}))
	return strings.Join(out, " ")
}

func TestFillMerges(t *testing.T) {
	from, to := fillDirs(t)
	for _, name := range []string{"same", "kept", "d/kept", "d/same", "wasdir/x", "opaque/below"} {
		write(t, to+"/"+name, "lower")
	}
	write(t, to+"/wasfile", "lower")
	for _, name := range []string{"same", "d/same", "d/new", "wasdir", "wasfile/y", "opaque/own", "skipped/z"} {
		write(t, from+"/"+name, "upper")
	}
	must(t, os.Symlink("/etc/passwd", from+"/link"))
	must(t, unix.Setxattr(from+"/opaque", "user.overlay.opaque", []byte("y"), 0))
	if err := Fill(to, from, func(name string) bool { return name == "skipped" }); err != nil {
		t.Fatal(err)
	}
	want := "d d/kept=lower d/new=upper d/same=upper kept=lower link->/etc/passwd opaque opaque/own=upper same=upper wasdir=upper wasfile wasfile/y=upper"
	if got := listing(t, to); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFillKeepsFiles(t *testing.T) {
	from, to := fillDirs(t)
	f, err := os.Create(from + "/sparse")
	must(t, err)
	_, err = f.WriteAt([]byte("island"), 1<<20)
	must(t, err)
	must(t, f.Truncate(4<<20))
	f.Close()
	must(t, os.Link(from+"/sparse", from+"/sparse2"))
	must(t, unix.Setxattr(from+"/sparse", "user.x", []byte("value"), 0))
	must(t, unix.Setxattr(from+"/sparse", "user.overlay.origin", []byte("of overlayfs"), 0))
	must(t, os.Chmod(from+"/sparse", 0o604))
	must(t, os.Mkdir(from+"/d", 0o750))
	write(t, from+"/d/f", "x")
	old := []unix.Timespec{{Sec: 5, Nsec: 6}, {Sec: 7, Nsec: 8}}
	for _, name := range []string{"/sparse", "/d"} {
		must(t, unix.UtimesNanoAt(unix.AT_FDCWD, from+name, old, 0))
	}
	must(t, unix.Mkfifo(from+"/fifo", 0o640))
	must(t, Fill(to, from, nil))
	for _, name := range []string{"/sparse", "/sparse2", "/d", "/fifo"} {
		var a, b unix.Stat_t
		must(t, unix.Lstat(from+name, &a))
		must(t, unix.Lstat(to+name, &b))
		if a.Mode != b.Mode || a.Uid != b.Uid || a.Gid != b.Gid || a.Size != b.Size && name != "/d" || a.Mtim != b.Mtim || a.Nlink != b.Nlink {
			t.Errorf("%s: got %+v, want %+v", name, b, a)
		}
		if name == "/sparse" && b.Blocks > 64 {
			t.Errorf("%d blocks of a file with six bytes", b.Blocks)
		}
	}
	names, err := xattrNames(mustOpen(t, to), "sparse")
	if err != nil || len(names) != 1 || names[0] != "user.x" {
		t.Errorf("attributes %v, %v", names, err)
	}
}

func mustOpen(t *testing.T, dir string) int {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func TestFillWhiteouts(t *testing.T) {
	harness.RequireRoot(t) // whiteouts are devices
	from, to := fillDirs(t)
	write(t, to+"/d/gone/x", "lower")
	write(t, to+"/gone", "lower")
	write(t, to+"/kept", "lower")
	must(t, os.Mkdir(from+"/d", 0o755))
	for _, name := range []string{"/gone", "/d/gone", "/never"} {
		must(t, unix.Mknod(from+name, unix.S_IFCHR, 0))
	}
	must(t, Fill(to, from, nil))
	if got := listing(t, to); got != "d kept=lower" {
		t.Errorf("got %s", got)
	}
}

// TestFillRefuses wants an error, never a wrong file.
func TestFillRefuses(t *testing.T) {
	for _, mark := range []string{"redirect", "metacopy"} {
		from, to := fillDirs(t)
		write(t, from+"/f", "")
		must(t, unix.Setxattr(from+"/f", "user.overlay."+mark, []byte("x"), 0))
		if err := Fill(to, from, nil); !errors.Is(err, ErrOverlayFeature) {
			t.Errorf("%s: got %v", mark, err)
		}
	}
	from, to := fillDirs(t)
	must(t, os.Symlink(t.TempDir(), to+"/d"))
	write(t, from+"/d/f", "upper")
	must(t, Fill(to, from, nil))
	if fi, err := os.Lstat(to + "/d"); err != nil || !fi.IsDir() {
		t.Errorf("a link was followed: %v, %v", fi, err)
	}
}
