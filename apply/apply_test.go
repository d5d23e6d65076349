package apply

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
)

// bench is a source directory and a state directory.
type bench struct {
	t           *testing.T
	v           variant
	root, state string
	fd          int
}

func newBench(t *testing.T) *bench { return newBenchOf(t, variant{}) }

// variant is what a bench's file systems can do.
type variant struct {
	foreign    bool // the state directory lies on another file system
	noExchange bool
}

var variants = map[string]variant{"plain": {}, "foreign state": {foreign: true}, "no exchange": {noExchange: true}}

// foreignDir returns a directory on another file system than dir.
func foreignDir(t *testing.T, dir string) string {
	t.Helper()
	var a, b unix.Stat_t
	if unix.Stat(dir, &a) != nil || unix.Stat("/dev/shm", &b) != nil || a.Dev == b.Dev {
		harness.Lacking(t, "a second file system at /dev/shm")
	}
	d, err := os.MkdirTemp("/dev/shm", "winkfs-apply")
	if err != nil {
		harness.Lacking(t, "a second file system: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(d) })
	return d
}

func newBenchOf(t *testing.T, v variant) *bench {
	t.Helper()
	dir := t.TempDir()
	state := dir
	if v.foreign {
		state = foreignDir(t, dir)
	}
	b := &bench{t: t, v: v, root: filepath.Join(dir, "source"), state: filepath.Join(state, "state", "apply")}
	must(t, os.Mkdir(b.root, 0o755))
	must(t, os.MkdirAll(b.state, 0o700))
	b.open()
	return b
}

func (b *bench) open() {
	var err error
	b.fd, err = unix.Open(b.root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(b.t, err)
	b.t.Cleanup(func() { unix.Close(b.fd) })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bench) path(p string) string { return filepath.Join(b.root, p) }

// write makes files: "path=contents", "path/" for a directory, "path->target".
func (b *bench) write(files ...string) {
	b.t.Helper()
	for _, f := range files {
		if p, target, ok := strings.Cut(f, "->"); ok {
			must(b.t, os.Symlink(target, b.path(p)))
		} else if p, data, ok := strings.Cut(f, "="); ok {
			must(b.t, os.MkdirAll(filepath.Dir(b.path(p)), 0o755))
			must(b.t, os.WriteFile(b.path(p), []byte(data), 0o644))
		} else {
			must(b.t, os.MkdirAll(b.path(f), 0o755))
		}
	}
}

// base returns the fingerprint of what the source has.
func (b *bench) base(p string) Fingerprint {
	b.t.Helper()
	f, err := (&host{map[uint32]int{1: b.fd}}).look(1, p)
	must(b.t, err)
	return f.fingerprint()
}

func file(data string) Want {
	return Want{Mode: unix.S_IFREG | 0o644, Size: int64(len(data)), Mtime: 1e18, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(data)), nil
	}}
}

func dir() Want                  { return Want{Mode: unix.S_IFDIR | 0o755} }
func symlink(target string) Want { return Want{Mode: unix.S_IFLNK | 0o777, Target: target} }

// item returns a change of what the source has now.
func (b *bench) item(p string, w Want) Item {
	b.t.Helper()
	return Item{Source: 1, Path: p, Base: b.base(p), Want: w}
}

func (b *bench) move(from, to string) Item {
	base := b.base(from)
	return Item{Source: 1, Path: to, Base: base, MoveFrom: from, Want: Want{Mode: base.Mode}}
}

func (b *bench) options() Options {
	return Options{Dir: b.state, Roots: map[uint32]int{1: b.fd}, noExchange: b.v.noExchange}
}

func (b *bench) run(items ...Item) (*Result, error) {
	return Run(context.Background(), items, b.options())
}

// tree describes the source: type, mode, target and contents of everything.
func (b *bench) tree() string { return treeOf(b.t, b.root) }

func treeOf(t *testing.T, root string) string {
	t.Helper()
	var out []string
	must(t, filepath.WalkDir(root, func(p string, e os.DirEntry, err error) error {
		if err != nil || p == root {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		s := fmt.Sprintf("%s %v", p[len(root)+1:], info.Mode())
		switch {
		case info.Mode()&os.ModeSymlink != 0:
			target, _ := os.Readlink(p)
			s += " -> " + target
		case info.Mode().IsRegular():
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			s += fmt.Sprintf(" %q", data)
		}
		out = append(out, s)
		return nil
	}))
	sort.Strings(out)
	return strings.Join(out, "\n")
}

// check compares the tree with the list of write's notation.
func (b *bench) check(files ...string) {
	b.t.Helper()
	w := newBench(b.t)
	w.write(files...)
	if got, want := b.tree(), w.tree(); got != want {
		b.t.Errorf("tree is\n%s\nwant\n%s", got, want)
	}
}

func lists(r *Result) string {
	return fmt.Sprint(r.Created, r.Modified, r.Deleted)
}

func TestApply(t *testing.T) {
	tests := []struct {
		name   string
		before []string
		items  func(b *bench) []Item
		after  []string
		lists  string
	}{
		{"create modify delete", []string{"m=1", "d=2"}, func(b *bench) []Item {
			return []Item{b.item("c", file("new")), b.item("m", file("22")), b.item("d", Want{})}
		}, []string{"c=new", "m=22"}, "[c] [m] [d]"},
		{"new tree", nil, func(b *bench) []Item {
			return []Item{b.item("a/b/c", file("x")), b.item("a/b", dir()), b.item("a", dir()), b.item("a/l", symlink("b/c"))}
		}, []string{"a/b/c=x", "a/l->b/c"}, "[a a/b a/b/c a/l] [] []"},
		{"delete tree", []string{"a/b/c=x", "a/l->b/c", "k=1"}, func(b *bench) []Item {
			return []Item{b.item("a", Want{}), b.item("a/b", Want{}), b.item("a/b/c", Want{}), b.item("a/l", Want{})}
		}, []string{"k=1"}, "[] [] [a a/b a/b/c a/l]"},
		{"directory with more is kept", []string{"a/b/c=x", "a/b/host=y"}, func(b *bench) []Item {
			return []Item{b.item("a", Want{}), b.item("a/b", Want{}), b.item("a/b/c", Want{})}
		}, []string{"a/b/host=y"}, "[] [] [a/b/c]"},
		{"file to directory", []string{"a=1"}, func(b *bench) []Item {
			return []Item{b.item("a", dir()), {Source: 1, Path: "a/x", Want: file("2")}}
		}, []string{"a/x=2"}, "[a/x] [a] []"},
		{"directory to file", []string{"a/x/y=1"}, func(b *bench) []Item {
			return []Item{b.item("a", file("2")), b.item("a/x", Want{}), b.item("a/x/y", Want{})}
		}, []string{"a=2"}, "[] [a] [a/x a/x/y]"},
		{"link to directory", []string{"t/=", "a->t"}, func(b *bench) []Item {
			return []Item{b.item("a", dir()), {Source: 1, Path: "a/x", Want: file("2")}}
		}, []string{"t/", "a/x=2"}, "[a/x] [a] []"},
		{"link retargeted, file to link", []string{"l->a", "f=1"}, func(b *bench) []Item {
			return []Item{b.item("l", symlink("b")), b.item("f", symlink("/c"))}
		}, []string{"l->b", "f->/c"}, "[] [f l] []"},
		{"move directory", []string{"a/b/c=x"}, func(b *bench) []Item { return []Item{b.move("a", "z")} },
			[]string{"z/b/c=x"}, "[z] [] [a]"},
		{"move into new directory and change below", []string{"a/b/c=x", "a/d=1", "a/k=2"}, func(b *bench) []Item {
			return []Item{b.item("n", dir()), b.move("a", "n/z"), {Source: 1, Path: "n/z/b/c", Base: b.base("a/b/c"), Want: file("y")},
				{Source: 1, Path: "n/z/d", Base: b.base("a/d")}, {Source: 1, Path: "n/z/new", Want: file("w")}, b.item("a/k", Want{})}
		}, []string{"n/z/b/c=y", "n/z/k=2", "n/z/new=w"}, "[n n/z n/z/new] [n/z/b/c] [a n/z/d]"},
		{"swap directories", []string{"a/x=1", "b/y=2"}, func(b *bench) []Item { return []Item{b.move("a", "b"), b.move("b", "a")} },
			[]string{"a/y=2", "b/x=1"}, "[] [a b] []"},
		{"move out of a deleted directory", []string{"a/b/c=x"}, func(b *bench) []Item {
			return []Item{b.item("a", Want{}), b.move("a/b", "b")}
		}, []string{"b/c=x"}, "[b] [] [a a/b]"},
		{"move into itself", []string{"a/x=1"}, func(b *bench) []Item {
			return []Item{{Source: 1, Path: "a", Want: dir()}, b.move("a", "a/a")}
		}, []string{"a/a/x=1"}, "[a/a] [a] []"},
		{"move over a deleted one", []string{"a/x=1", "b/y=2"}, func(b *bench) []Item {
			y := b.item("b/y", Want{})
			y.At = "b/y"
			return []Item{b.move("a", "b"), b.item("b", Want{}), y}
		}, []string{"b/x=1"}, "[] [b] [a b/y]"},
		{"nothing", []string{"a=1"}, func(b *bench) []Item { return []Item{b.item("gone", Want{})} }, []string{"a=1"}, "[] [] []"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			for i, f := range tt.before {
				tt.before[i] = strings.TrimSuffix(f, "/=")
			}
			b.write(tt.before...)
			items := tt.items(b)
			res, err := b.run(items...)
			must(t, err)
			if len(res.Conflicts) > 0 || lists(res) != tt.lists {
				t.Errorf("result is %s with %v, want %s", lists(res), res.Conflicts, tt.lists)
			}
			b.check(tt.after...)
		})
	}
}

func TestMetadata(t *testing.T) {
	b := newBench(t)
	b.write("f=1", "g=1", "d/x=1")
	must(t, os.Chmod(b.path("f"), 0o640))
	w := file("2")
	w.Mode = unix.S_IFREG | 0o6775
	w.Xattrs = map[string]string{"user.k": "v", "security.evil": "x"}
	g := Want{Mode: unix.S_IFREG | 0o600, Size: 1, Mtime: 5e17, Xattrs: map[string]string{"user.g": "1"}}
	ro := Want{Mode: unix.S_IFDIR | 0o555, Mtime: 6e17}
	ino := b.base("g").Ino
	res, err := b.run(b.item("f", w), b.item("g", g), b.item("ro", ro), b.item("ro/x", file("y")), b.item("d", Want{Mode: unix.S_IFDIR | 0o700, Mtime: 7e17}))
	must(t, err)
	if lists(res) != "[ro ro/x] [d f g] []" {
		t.Errorf("result is %s", lists(res))
	}
	for _, c := range []struct {
		path  string
		mode  uint32
		mtime int64
	}{{"f", unix.S_IFREG | 0o775, 1e18}, {"g", unix.S_IFREG | 0o600, 5e17}, {"ro", unix.S_IFDIR | 0o555, 6e17}, {"d", unix.S_IFDIR | 0o700, 7e17}} {
		if f := b.base(c.path); f.Mode != c.mode || f.Mtime != c.mtime {
			t.Errorf("%s has mode %o and mtime %d, want %o and %d", c.path, f.Mode, f.Mtime, c.mode, c.mtime)
		}
	}
	if b.base("g").Ino != ino {
		t.Error("a change of attributes replaced the file")
	}
	buf := make([]byte, 99)
	if n, err := unix.Getxattr(b.path("f"), "user.k", buf); err != nil || string(buf[:n]) != "v" {
		t.Errorf("xattr is %q, %v", buf[:max(n, 0)], err)
	}
	if _, err := unix.Getxattr(b.path("f"), "security.evil", buf); err == nil {
		t.Error("a security attribute was applied")
	}
	must(t, os.Chmod(b.path("ro"), 0o755))
}

// TestAccessLists applies POSIX access control lists.
func TestAccessLists(t *testing.T) {
	b := newBench(t)
	b.write("meta=1", "put=1", "gone=1", "kept=1", "d/x=1")
	list := string(accessList(6, 4))
	host := accessList(4, 4)
	for _, p := range []string{"gone", "kept"} {
		if err := unix.Setxattr(b.path(p), aclName, host, 0); err != nil {
			harness.Lacking(t, "access control lists: %v", err)
		}
	}
	with := func(w Want, names ...string) Want {
		w.Xattrs = map[string]string{}
		for _, n := range names {
			w.Xattrs[n] = list
		}
		return w
	}
	same := Want{Mode: unix.S_IFREG | 0o644, Size: 1}
	_, err := b.run(b.item("meta", with(same, aclName)), b.item("put", with(file("2"), aclName)), b.item("gone", same), b.item("kept", file("2")),
		b.item("new", with(file("3"), aclName)), b.item("d", with(dir(), aclName, defaultACLName)), b.item("sub", with(dir(), defaultACLName)))
	must(t, err)
	for p, want := range map[string]string{"meta": list, "put": list, "gone": "", "kept": string(host), "new": list, "d": list, "sub": ""} {
		buf := make([]byte, 200)
		n, err := unix.Getxattr(b.path(p), aclName, buf)
		if got := string(buf[:max(n, 0)]); got != want {
			t.Errorf("%s: access list %x, %v, want %x", p, got, err, want)
		}
	}
	for _, p := range []string{"d", "sub"} {
		if n, err := unix.Getxattr(b.path(p), defaultACLName, make([]byte, 200)); err != nil || n != len(list) {
			t.Errorf("%s: default list %d, %v", p, n, err)
		}
	}
}

// accessList is an access list (linux/posix_acl_xattr.h) that gives user 1234 some
// permissions, with a mask, and else agrees with mode 0644.
func accessList(named, mask byte) []byte {
	b := []byte{2, 0, 0, 0}
	for _, e := range [][3]uint32{{1, 6, ^uint32(0)}, {2, uint32(named), 1234}, {4, 4, ^uint32(0)}, {0x10, uint32(mask), ^uint32(0)}, {0x20, 4, ^uint32(0)}} {
		b = binary.LittleEndian.AppendUint16(b, uint16(e[0]))
		b = binary.LittleEndian.AppendUint16(b, uint16(e[1]))
		b = binary.LittleEndian.AppendUint32(b, e[2])
	}
	return b
}

func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to give files to others")
	}
	b := newBench(t)
	b.write("d/old=1")
	must(t, os.Chown(b.path("d"), 1001, 1002))
	must(t, os.Chown(b.path("d/old"), 1003, 1004))
	_, err := b.run(b.item("d/old", file("2")), b.item("d/new", file("3")), b.item("d/sub", dir()), b.item("d/sub/x", file("4")))
	must(t, err)
	for p, want := range map[string][2]uint32{"d/old": {1003, 1004}, "d/new": {1001, 1002}, "d/sub": {1001, 1002}, "d/sub/x": {1001, 1002}} {
		var st unix.Stat_t
		must(t, unix.Lstat(b.path(p), &st))
		if got := [2]uint32{st.Uid, st.Gid}; got != want {
			t.Errorf("%s belongs to %v, want %v", p, got, want)
		}
	}
}

func TestSparse(t *testing.T) {
	b := newBench(t)
	const size = 64 << 20
	data := make([]byte, size)
	copy(data[10<<20:], "data")
	w := Want{Mode: unix.S_IFREG | 0o644, Size: size, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
	s := w
	s.Open = func() (io.ReadCloser, error) { return holes{bytes.NewReader(data)}, nil }
	_, err := b.run(b.item("a", w), b.item("b", s))
	must(t, err)
	for _, p := range []string{"a", "b"} {
		var st unix.Stat_t
		must(t, unix.Stat(b.path(p), &st))
		got, err := os.ReadFile(b.path(p))
		must(t, err)
		if !bytes.Equal(got, data) || st.Blocks > 2048 {
			t.Errorf("%s has %d blocks and right contents: %v", p, st.Blocks, bytes.Equal(got, data))
		}
	}
}

// holes has data from 10 MiB on for one block.
type holes struct{ *bytes.Reader }

func (h holes) Close() error { return nil }

func (h holes) NextData(off int64) (int64, int64, error) {
	if off > 10<<20 {
		return 0, 0, nil
	}
	return 10 << 20, 10<<20 + 4096, nil
}

func TestHardLinks(t *testing.T) {
	b := newBench(t)
	b.write("a=old")
	outside := filepath.Join(filepath.Dir(b.root), "outside")
	must(t, os.Link(b.path("a"), outside))
	must(t, os.Link(b.path("a"), b.path("m")))
	meta := Want{Mode: unix.S_IFREG | 0o777, Size: 3}
	res, err := b.run(b.item("a", file("new")), b.item("m", meta))
	must(t, err)
	if data, _ := os.ReadFile(outside); string(data) != "old" {
		t.Errorf("the other link has %q", data)
	}
	if st, _ := os.Stat(outside); st.Mode().Perm() != 0o644 {
		t.Errorf("the other link has mode %v", st.Mode())
	}
	if len(res.Notes) != 2 || b.base("m").Mode&0o777 != 0o777 {
		t.Errorf("notes are %v, mode of m is %o", res.Notes, b.base("m").Mode)
	}
	// A later write through the other link does not reach the pre-image.
	must(t, os.WriteFile(outside, []byte("later"), 0o644))
	if data, err := os.ReadFile(filepath.Join(b.state, "1/pre/0")); err != nil || string(data) != "old" {
		t.Errorf("the pre-image is %q, %v", data, err)
	}
}

func TestConflicts(t *testing.T) {
	tests := []struct {
		name   string
		before string
		want   Want
		drift  func(b *bench) // what the host does after the base was taken
		ok     bool
	}{
		{"edited", "f=1", file("2"), func(b *bench) { b.write("f=3") }, false},
		{"edited to the same", "f=1", file("2"), func(b *bench) { b.write("f=2") }, true},
		{"edited with the same size and mtime", "f=1", file("2"), func(b *bench) {
			st, _ := os.Stat(b.path("f"))
			b.write("f=3")
			_ = os.Chtimes(b.path("f"), st.ModTime(), st.ModTime())
		}, false},
		{"deleted", "f=1", file("2"), func(b *bench) { _ = os.Remove(b.path("f")) }, false},
		{"deleted by both", "f=1", Want{}, func(b *bench) { _ = os.Remove(b.path("f")) }, true},
		{"delete of edited", "f=1", Want{}, func(b *bench) { b.write("f=3") }, false},
		{"created by both", "", file("2"), func(b *bench) { b.write("f=3") }, false},
		{"created alike by both", "", file("2"), func(b *bench) { b.write("f=2") }, true},
		{"directory created by both", "", dir(), func(b *bench) { b.write("f/x=1") }, true},
		{"became a FIFO", "f=1", file("2"), func(b *bench) { _ = os.Remove(b.path("f")); _ = unix.Mkfifo(b.path("f"), 0o644) }, false},
		{"became a link", "f=1", file("2"), func(b *bench) { _ = os.Remove(b.path("f")); b.write("f->/etc/passwd") }, false},
		{"became a directory", "f=1", file("2"), func(b *bench) { _ = os.Remove(b.path("f")); b.write("f/x=1") }, false},
		{"mode changed", "f=1", file("2"), func(b *bench) { _ = os.Chmod(b.path("f"), 0o600) }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.write("other=1")
			if tt.before != "" {
				b.write(tt.before)
			}
			items := []Item{b.item("f", tt.want), b.item("other", file("2"))}
			time.Sleep(2 * time.Millisecond) // so that times differ
			tt.drift(b)
			before := b.tree()
			res, err := b.run(items...)
			if tt.ok {
				must(t, err)
				return
			}
			if !errors.Is(err, ErrConflict) || len(res.Conflicts) != 1 || res.Conflicts[0].Path != "f" {
				t.Fatalf("result is %+v, %v", res, err)
			}
			if after := b.tree(); after != before {
				t.Errorf("tree became\n%s\nfrom\n%s", after, before)
			}
		})
	}
}

func TestDigestDecides(t *testing.T) {
	b := newBench(t)
	b.write("f=1")
	it := b.item("f", file("2"))
	sum, err := (&host{map[uint32]int{1: b.fd}}).digest(1, "f", must1(b.look("f")))
	must(t, err)
	it.Base.Digest = sum
	must(t, os.Chtimes(b.path("f"), time.Now(), time.Now())) // touched only
	_, err = b.run(it)
	must(t, err)
	b.check("f=2")
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (b *bench) look(p string) (*fact, error) { return (&host{map[uint32]int{1: b.fd}}).look(1, p) }

func TestGuarded(t *testing.T) {
	b := newBench(t)
	b.write("Makefile=1")
	items := []Item{b.item(".git", dir()), b.item(".git/hooks", dir()), b.item(".git/hooks/x", file("evil")), b.item("ok", file("1")), b.item("bin", dir()), b.item("bin/x", file("1"))}
	o := b.options()
	o.Guard = func(it *Item) (string, bool) { return "git", strings.HasPrefix(it.Path, ".git/") || it.Path == "bin" }
	var asked []string
	o.Confirm = func(it *Item, class string) bool { asked = append(asked, it.Path); return false }
	o.DryRun = true
	before := b.tree()
	res, err := Run(context.Background(), items, o)
	must(t, err)
	if b.tree() != before || lists(res) != "[.git ok] [] []" || len(res.Skipped) != 4 || !slices.Equal(asked, []string{".git/hooks", ".git/hooks/x", "bin"}) {
		t.Fatalf("result is %+v, asked for %v", res, asked)
	}
	o.DryRun, o.Confirm, o.ForceGuarded = false, nil, true
	_, err = Run(context.Background(), items, o)
	must(t, err)
	b.check("Makefile=1", ".git/hooks/x=evil", "ok=1", "bin/x=1")
}

func TestBadItems(t *testing.T) {
	b := newBench(t)
	for _, p := range []string{"", "/a", "a/", "../a", "a/../b", "a//b", ".", "a\x00b", strings.Repeat("x", 256)} {
		if _, err := b.run(Item{Source: 1, Path: p, Want: file("x")}); err == nil {
			t.Errorf("path %q is taken", p)
		}
	}
	if _, err := b.run(Item{Source: 2, Path: "a", Want: file("x")}); err == nil {
		t.Error("an unknown source is taken")
	}
	if _, err := b.run(b.item("a", file("x")), b.item("a", file("y"))); err == nil {
		t.Error("a path is taken twice")
	}
	short := file("x")
	short.Size = 9
	if _, err := b.run(b.item("a", short)); err == nil || b.tree() != "" {
		t.Errorf("contents of another size: %v, tree %q", err, b.tree())
	}
	res, err := b.run(b.item("fifo", Want{Mode: unix.S_IFIFO | 0o644}), b.item("dev", Want{Mode: unix.S_IFCHR | 0o644}))
	if err != nil || len(res.Skipped) != 2 || b.tree() != "" {
		t.Errorf("special files give %+v, %v", res, err)
	}
	if _, err := b.run(b.item("no/x", file("x"))); !errors.Is(err, ErrConflict) {
		t.Errorf("a missing directory gives %v", err)
	}
}
