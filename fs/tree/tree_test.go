package tree

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/lower"
	"github.com/winkfs/winkfs/journal"
)

// rig is a tree over a lower directory, reopened at will.
type rig struct {
	*testing.T
	lowerDir, stateDir string
	store              *journal.Store
	t                  *Tree
	r                  *Request
}

// newRig returns a tree over a directory that holds what files says: a path
// ending in "/" is a directory, "->" a symbolic link, else a file's content.
func newRig(t *testing.T, files map[string]string) *rig {
	t.Helper()
	return newRigWith(t, files, journal.Options{})
}

func newRigWith(t *testing.T, files map[string]string, o journal.Options) *rig {
	t.Helper()
	g := &rig{T: t, lowerDir: t.TempDir(), stateDir: t.TempDir(), r: &Request{TID: uint32(os.Getpid()), UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}}
	for name, content := range files {
		p := filepath.Join(g.lowerDir, name)
		g.must(os.MkdirAll(filepath.Dir(p), 0o755))
		switch {
		case strings.HasSuffix(name, "/"):
			g.must(os.MkdirAll(p, 0o755))
		case strings.HasPrefix(content, "->"):
			g.must(os.Symlink(content[2:], p))
		default:
			g.must(os.WriteFile(p, []byte(content), 0o644))
		}
	}
	s, err := journal.Create(g.stateDir, o)
	g.must(err)
	g.start(s)
	t.Cleanup(func() { g.stop() })
	return g
}

func (g *rig) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

func (g *rig) start(s *journal.Store) {
	g.Helper()
	low := lower.New(64)
	fd, err := unix.Open(g.lowerDir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	g.must(err)
	_, err = low.Add(fd)
	g.must(err)
	g.store = s
	g.t, err = New(Config{Store: s, State: s.State(), Lower: low, Sources: []Source{{}}, StateDir: g.stateDir})
	g.must(err)
}

func (g *rig) stop() {
	g.t.Close()
	if err := g.store.Close(); err != nil {
		g.Errorf("close store: %v", err)
	}
}

// reopen closes everything and opens it again.
func (g *rig) reopen() {
	g.Helper()
	g.stop()
	s, err := journal.Open(g.stateDir, journal.Options{})
	g.must(err)
	g.start(s)
}

// id looks a path up.
func (g *rig) id(path string) journal.NodeID {
	g.Helper()
	id, err := g.find(path)
	if err != nil {
		g.Fatalf("find %q: %v", path, err)
	}
	return id
}

func (g *rig) find(path string) (journal.NodeID, error) {
	id := journal.RootID
	if path == "" {
		return id, nil
	}
	for _, name := range strings.Split(path, "/") {
		s, err := g.t.Lookup(g.r, id, name)
		if err != nil {
			return 0, err
		}
		id = s.ID
	}
	return id, nil
}

// at splits a path into its directory's number and its last name.
func (g *rig) at(path string) (journal.NodeID, string) {
	g.Helper()
	dir, name := filepath.Split(path)
	return g.id(strings.TrimSuffix(dir, "/")), name
}

func (g *rig) write(path, content string) {
	g.Helper()
	id, err := g.find(path)
	if errors.Is(err, ErrNotExist) {
		dir, name := g.at(path)
		var s Stat
		s, err = g.t.Create(g.r, dir, name, 0o644)
		id = s.ID
	}
	g.must(err)
	_, err = g.t.Setattr(g.r, id, SetAttr{Mask: SetSize})
	g.must(err)
	_, err = g.t.Write(g.r, id, []byte(content), 0)
	g.must(err)
}

func (g *rig) rename(from, to string) {
	g.Helper()
	op, on := g.at(from)
	np, nn := g.at(to)
	g.must(g.t.Rename(g.r, op, on, np, nn, 0))
}

func (g *rig) unlink(path string) {
	g.Helper()
	dir, name := g.at(path)
	g.must(g.t.Unlink(g.r, dir, name))
}

// dump describes the whole tree, one line a file.
func (g *rig) dump() string { return g.dumpView(g.t.Snapshot()) }

func (g *rig) dumpView(v *View) string {
	g.Helper()
	root, err := v.Root()
	g.must(err)
	var b strings.Builder
	g.dumpItem(&b, v, root)
	return b.String()
}

func (g *rig) dumpItem(b *strings.Builder, v *View, it Item) {
	g.Helper()
	a := it.Stat.Attr
	fmt.Fprintf(b, "%s %o n%d m%d", it.Path, a.Mode, a.Nlink, a.Mtime)
	switch a.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		data, err := io.ReadAll(it.Open())
		g.must(err)
		fmt.Fprintf(b, " %q", data)
	case unix.S_IFLNK:
		target, err := it.Readlink()
		g.must(err)
		fmt.Fprintf(b, " -> %s", target)
	}
	x, err := it.Xattrs()
	g.must(err)
	fmt.Fprintf(b, " %v\n", x)
	if !it.IsDir() {
		return
	}
	names, err := v.List(it)
	g.must(err)
	for _, n := range names {
		c, err := v.Lookup(it, n)
		g.must(err)
		g.dumpItem(b, v, c)
	}
}

// paths returns the paths of the tree, sorted.
func (g *rig) paths() []string {
	var out []string
	for _, line := range strings.Split(strings.TrimSuffix(g.dump(), "\n"), "\n") {
		if p, _, _ := strings.Cut(line, " "); p != "" && line[0] != ' ' {
			out = append(out, p)
		}
	}
	return out
}

func (g *rig) wantPaths(want ...string) {
	g.Helper()
	if got := g.paths(); !slices.Equal(got, want) {
		g.Errorf("paths = %q, want %q", got, want)
	}
}

func (g *rig) wantContent(path, want string) {
	g.Helper()
	buf := make([]byte, len(want)+100)
	n, err := g.t.Read(g.r, g.id(path), buf, 0)
	if err != nil || string(buf[:n]) != want {
		g.Errorf("%s = %q, %v; want %q", path, buf[:n], err, want)
	}
}

// sum describes the source directory.
func (g *rig) sum() string {
	g.Helper()
	var b strings.Builder
	g.must(filepath.WalkDir(g.lowerDir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		if !d.Type().IsRegular() {
			st.Atim = unix.Timespec{} // walking and readlink(2) move these
		}
		fmt.Fprintln(&b, p, st.Mode, st.Size, st.Mtim, st.Atim, st.Ctim, st.Nlink)
		return nil
	}))
	return b.String()
}

func TestLowerIsNeverChanged(t *testing.T) {
	g := newRig(t, map[string]string{"a": "one", "d/b": "two", "d/e/c": "three", "l": "->a"})
	before := g.sum()
	g.wantContent("a", "one")
	g.write("a", "changed")
	g.write("d/new", "x")
	g.unlink("d/b")
	g.rename("d", "moved")
	g.unlink("l")
	_, err := g.t.Setattr(g.r, g.id("moved/e/c"), SetAttr{Mask: SetMode, Mode: 0o600})
	g.must(err)
	g.must(g.t.Setxattr(g.r, g.id("moved/e/c"), "user.k", []byte("v"), 0))
	g.wantPaths("a", "moved", "moved/e", "moved/e/c", "moved/new")
	if after := g.sum(); after != before {
		t.Errorf("the source changed:\n%s\nto\n%s", before, after)
	}
	want := g.dump()
	g.reopen()
	if got := g.dump(); got != want {
		t.Errorf("after reopening:\n%s\nwant\n%s", got, want)
	}
}

func TestRenameOfLowerDirectoryIsOneRecord(t *testing.T) {
	files := map[string]string{}
	for i := range 50 {
		files[fmt.Sprintf("big/sub%d/file", i)] = "x"
	}
	g := newRig(t, files)
	head := g.store.Head()
	g.rename("big", "other")
	if n := g.store.Head() - head; n != 1 {
		t.Errorf("renaming made %d records, want 1", n)
	}
	g.wantContent("other/sub7/file", "x")
	g.write("other/sub7/file", "y")
	g.reopen()
	g.wantContent("other/sub7/file", "y")
	if _, err := g.find("big"); !errors.Is(err, ErrNotExist) {
		t.Errorf("the old name: %v", err)
	}
}

func TestHardLinksOfTheLowerStayOneFile(t *testing.T) {
	g := newRig(t, map[string]string{"a": "one", "d/": ""})
	g.must(os.Link(filepath.Join(g.lowerDir, "a"), filepath.Join(g.lowerDir, "d/b")))
	if a, b := g.id("a"), g.id("d/b"); a != b {
		t.Fatalf("numbers %d and %d, want one", a, b)
	}
	g.write("d/b", "two")
	g.wantContent("a", "two")
	g.unlink("a")
	s, err := g.t.Getattr(g.r, g.id("d/b"))
	g.must(err)
	if s.Attr.Nlink != 1 {
		t.Errorf("nlink = %d, want 1", s.Attr.Nlink)
	}
	g.reopen()
	g.wantContent("d/b", "two")
	g.wantPaths("d", "d/b")
}

func TestNumbersSurviveCopyUpAndReopening(t *testing.T) {
	g := newRig(t, map[string]string{"d/a": "one"})
	id, dir := g.id("d/a"), g.id("d")
	g.write("d/a", "two")
	g.write("d/new", "n")
	created := g.id("d/new")
	g.reopen()
	if g.id("d/a") != id || g.id("d") != dir || g.id("d/new") != created {
		t.Errorf("numbers changed: %d %d %d", g.id("d/a"), g.id("d"), g.id("d/new"))
	}
}

func TestRemovedDirectoryMadeAgainIsEmpty(t *testing.T) {
	g := newRig(t, map[string]string{"d/a": "one"})
	if err := g.t.Rmdir(g.r, journal.RootID, "d"); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("rmdir of a full directory: %v", err)
	}
	g.unlink("d/a")
	g.must(g.t.Rmdir(g.r, journal.RootID, "d"))
	_, err := g.t.Mkdir(g.r, journal.RootID, "d", 0o755)
	g.must(err)
	g.wantPaths("d")
	g.reopen()
	g.wantPaths("d")
}

func TestUnlinkedFileStaysUsable(t *testing.T) {
	g := newRig(t, map[string]string{"a": "one"})
	id := g.id("a")
	g.unlink("a")
	s, err := g.t.Getattr(g.r, id)
	g.must(err)
	if s.Attr.Nlink != 0 {
		t.Errorf("nlink = %d", s.Attr.Nlink)
	}
	_, err = g.t.Write(g.r, id, []byte("TWO!"), 1)
	g.must(err)
	buf := make([]byte, 10)
	n, err := g.t.Read(g.r, id, buf, 0)
	if err != nil || string(buf[:n]) != "oTWO!" {
		t.Errorf("read %q, %v", buf[:n], err)
	}
	g.wantPaths()
}

func TestExchange(t *testing.T) {
	g := newRig(t, map[string]string{"a": "one", "d/x": "in d"})
	root := journal.RootID
	g.must(g.t.Rename(g.r, root, "a", root, "d", RenameExchange))
	g.wantContent("d", "one")
	g.wantContent("a/x", "in d")
	g.reopen()
	g.wantContent("a/x", "in d")
	if err := g.t.Rename(g.r, root, "d", root, "a", RenameNoReplace); !errors.Is(err, ErrExist) {
		t.Errorf("NOREPLACE: %v", err)
	}
	if err := g.t.Rename(g.r, root, "a", g.id("a"), "below", 0); !errors.Is(err, ErrInvalid) {
		t.Errorf("a directory below itself: %v", err)
	}
}

func TestLargeLowerFileIsNotCopied(t *testing.T) {
	g := newRig(t, map[string]string{"big": ""})
	f, err := os.OpenFile(filepath.Join(g.lowerDir, "big"), os.O_WRONLY, 0)
	g.must(err)
	_, err = f.WriteAt([]byte("end"), 1<<30-3)
	g.must(err)
	g.must(f.Close())
	id := g.id("big")
	_, err = g.t.Write(g.r, id, []byte("mid"), 1<<20)
	g.must(err)
	logBytes, dataBytes, _ := g.store.Sizes()
	if logBytes+dataBytes > 1<<20 {
		t.Errorf("the store grew to %d + %d bytes", logBytes, dataBytes)
	}
	buf := make([]byte, 5)
	for off, want := range map[int64]string{1<<20 - 1: "\x00mid\x00", 1<<30 - 5: "\x00\x00end"} {
		if n, err := g.t.Read(g.r, id, buf, off); err != nil || string(buf[:n]) != want {
			t.Errorf("at %d: %q, %v; want %q", off, buf[:n], err, want)
		}
	}
	if at, err := g.t.Lseek(g.r, id, 0, unix.SEEK_DATA); err != nil || at != 1<<20 {
		t.Errorf("SEEK_DATA = %d, %v", at, err)
	}
}

func TestEveryPointCanBeViewed(t *testing.T) {
	g := newRig(t, map[string]string{"a": "one", "d/b": "two", "d/e/c": "three"})
	points := map[journal.Seq]string{g.store.Head(): g.dump()}
	step := func(fn func()) {
		fn()
		points[g.store.Head()] = g.dump()
	}
	step(func() { g.write("a", "changed") })
	step(func() { g.rename("d/e", "e") })
	step(func() { g.unlink("e/c") })
	step(func() { g.write("d/new", strings.Repeat("x", 40000)) })
	step(func() { g.rename("d/new", "a") })
	step(func() { g.unlink("a") })
	step(func() { g.must(g.t.Setxattr(g.r, g.id("d/b"), "user.k", []byte("v"), 0)) })
	for seq, want := range points {
		v, err := g.t.At(seq)
		g.must(err)
		if got := g.dumpView(v); got != want {
			t.Errorf("at %d:\n%s\nwant\n%s", seq, got, want)
		}
	}
}

func TestChanges(t *testing.T) {
	g := newRig(t, map[string]string{"a": "one", "b": "two", "d/x": "3", "d/y": "4", "keep/z": "5"})
	g.write("a", "ONE")
	g.unlink("b")
	g.rename("d", "moved")
	g.write("keep/new", "n")
	g.write("keep/z", "5") // the same bytes
	base, err := g.t.Base()
	g.must(err)
	list, err := Changes(base, g.t.Snapshot())
	g.must(err)
	var got []string
	for _, c := range list {
		switch {
		case c.Old == nil:
			got = append(got, "A "+c.New.Path)
		case c.New == nil:
			got = append(got, "D "+c.Old.Path)
		case c.Old.Path != c.New.Path:
			got = append(got, "R "+c.Old.Path+" "+c.New.Path)
		default:
			got = append(got, "M "+c.New.Path)
		}
	}
	want := []string{"M a", "D b", "A keep/new", "R d moved", "R d/x moved/x", "R d/y moved/y"}
	if !slices.Equal(got, want) {
		t.Errorf("changes = %q, want %q", got, want)
	}
}

func TestChangesShowEveryNameOfAHardLink(t *testing.T) {
	g := newRig(t, map[string]string{"a": "one", "d/e/": "", "other": "x"})
	g.must(os.Link(filepath.Join(g.lowerDir, "a"), filepath.Join(g.lowerDir, "d/e/b")))
	g.write("a", "two")
	base, err := g.t.Base()
	g.must(err)
	list, err := Changes(base, g.t.Snapshot())
	g.must(err)
	var got []string
	for _, c := range list {
		got = append(got, c.Path())
	}
	if want := []string{"a", "d/e/b"}; !slices.Equal(got, want) {
		t.Errorf("changes = %q, want %q", got, want)
	}
}

func TestChangesShowTheLastNameOfAHardLink(t *testing.T) {
	g := newRig(t, map[string]string{"a": "x", "d/e/": ""})
	g.must(os.Link(filepath.Join(g.lowerDir, "a"), filepath.Join(g.lowerDir, "d/e/b")))
	g.reopen()
	g.write("a", "changed")
	g.unlink("a")
	g.wantContent("d/e/b", "changed")
	base, err := g.t.Base()
	g.must(err)
	changes, err := Changes(base, g.t.Snapshot())
	g.must(err)
	var got []string
	for _, c := range changes {
		got = append(got, c.Path())
	}
	if want := []string{"a", "d/e/b"}; !slices.Equal(got, want) {
		t.Errorf("changes = %q, want %q", got, want)
	}
}

func TestChangesStayWhenTheHostTakesTheirDirectory(t *testing.T) {
	g := newRig(t, map[string]string{"d/e/a": "one", "d/e/b": "two", "outside/a": "safe"})
	g.write("d/e/a", "changed")
	g.must(os.RemoveAll(filepath.Join(g.lowerDir, "d")))
	g.must(os.Symlink("outside", filepath.Join(g.lowerDir, "d")))
	for range 2 {
		g.wantContent("d/e/a", "changed")
		g.wantPaths("d", "d/e", "d/e/a", "outside", "outside/a")
		g.reopen()
	}
	_, err := g.t.Setattr(g.r, g.id("d/e"), SetAttr{Mask: SetMode, Mode: 0o700})
	g.must(err)
	g.write("d/e/new", "x")
	g.wantPaths("d", "d/e", "d/e/a", "d/e/new", "outside", "outside/a")
}

func TestRefusalsAreJournaledOnceInAWhile(t *testing.T) {
	g := newRig(t, map[string]string{"d/": ""})
	head := g.store.Head()
	for range 3 {
		_, err := g.t.Mknod(g.r, g.id("d"), "dev", unix.S_IFCHR|0o600, 0x103)
		var ref *Refusal
		if !errors.As(err, &ref) || !errors.Is(err, ErrNotPermitted) {
			t.Fatalf("making a device: %v", err)
		}
		g.t.Denied(g.r, "mknod", ref)
	}
	var recs []*journal.Record
	g.must(g.store.Records(head+1, 0, func(r *journal.Record) error { recs = append(recs, r); return nil }))
	if len(recs) != 1 || recs[0].Op != journal.OpDenied || recs[0].Path != "d/dev" || recs[0].Note.Refused != "mknod" {
		t.Errorf("records %+v, want one denied mknod of d/dev", recs)
	}
}

func TestReaddirResumesAnywhere(t *testing.T) {
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("f%03d", i)] = ""
	}
	g := newRig(t, files)
	for i := range 100 {
		g.unlink(fmt.Sprintf("f%03d", i*3))
		g.write(fmt.Sprintf("n%03d", i), "")
	}
	var names []string
	cookie := uint64(0)
	for {
		n := 0
		g.must(g.t.Readdir(g.r, journal.RootID, cookie, true, func(d *Dirent) bool {
			if n == 7 {
				return false
			}
			n++
			names = append(names, d.Name)
			if d.Cookie <= cookie {
				t.Fatalf("cookie %d after %d", d.Cookie, cookie)
			}
			cookie = d.Cookie
			return true
		}))
		if n == 0 {
			break
		}
	}
	slices.Sort(names)
	if len(names) != 302 || len(slices.Compact(names)) != 302 {
		t.Errorf("%d names, want 302 different ones", len(names))
	}
}

// emptyLower returns an FS over one empty directory.
func emptyLower(tb testing.TB) *lower.FS {
	tb.Helper()
	fd, err := unix.Open(tb.TempDir(), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		tb.Fatal(err)
	}
	low := lower.New(16)
	if _, err := low.Add(fd); err != nil {
		tb.Fatal(err)
	}
	return low
}

// TestTmpfileInDeletedDirectory follows ext4, which makes no file in a
// directory without links.
func TestTmpfileInDeletedDirectory(t *testing.T) {
	g := newRig(t, map[string]string{"lower/": ""})
	made, err := g.t.Mkdir(g.r, journal.RootID, "made", 0o755)
	g.must(err)
	for name, id := range map[string]journal.NodeID{"made": made.ID, "lower": g.id("lower")} {
		g.must(g.t.Rmdir(g.r, journal.RootID, name))
		if _, err := g.t.Tmpfile(g.r, id, 0o644); !errors.Is(err, ErrNotPermitted) {
			t.Errorf("%s: got %v, want ErrNotPermitted", name, err)
		}
	}
}

// unreadable is a store whose data can't be read.
type unreadable struct{}

func (unreadable) ReadAt(journal.Loc, []byte) error {
	return errors.New("read of bytes that need not be read")
}

// A comparison reads no bytes that both sides have from the same place, be it
// the lower or the journal.
func TestChangesReadNoSharedBytes(t *testing.T) {
	files := []string{"low", "part", "own"}
	g := newRig(t, map[string]string{"low": "lower", "part": "lower, too"})
	g.write("own", "upper")
	_, err := g.t.Write(g.r, g.id("part"), []byte("U"), 0) // the rest is the lower's
	g.must(err)
	view := func() *View { return NewView(g.t.clone(), g.t.lower, g.t.sources, unreadable{}) }
	then := view()
	for _, name := range files {
		for _, mode := range []uint32{0o600, 0o644} { // the same mode in the end
			_, err := g.t.Setattr(g.r, g.id(name), SetAttr{Mask: SetMode, Mode: mode})
			g.must(err)
		}
	}
	now := view()
	list, err := Changes(then, now)
	g.must(err)
	if len(list) > 0 {
		t.Errorf("%d files differ", len(list))
	}
	for _, name := range files {
		a, errA := then.Find(name)
		b, errB := now.Find(name)
		g.must(errors.Join(errA, errB))
		if a.f.up == b.f.up || !samePlaces(a, b) {
			t.Errorf("%s: the bytes are compared", name)
		}
	}
	g.must(os.Rename(filepath.Join(g.lowerDir, "low"), filepath.Join(g.lowerDir, "moved")))
	g.must(os.WriteFile(filepath.Join(g.lowerDir, "low"), []byte("other"), 0o644))
	base, err := g.t.Base()
	g.must(err)
	a, errA := base.Find("low")
	b, errB := now.Find("low")
	if errors.Join(errA, errB) == nil && samePlaces(a, b) {
		t.Error("a replaced file of the lower counts as the same")
	}
}
