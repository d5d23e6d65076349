package posix

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
)

// The matrix makes each system call with each kind of path, as each kind of
// caller, in two directories that begin alike, and compares the error and all
// that can be seen afterwards. What is right is what the plain directory does.

// Owners of the matrix's files, beside root. Nobody needs to have them.
const (
	userID  = 4201
	otherID = 4202
	groupID = 4300 // the user's further group
)

// caller is who makes a call. Ordinary users have only themselves.
type caller struct {
	name     string
	uid, gid int
	groups   []int
}

func callers() []caller {
	if os.Geteuid() != 0 {
		return []caller{{"self", os.Geteuid(), os.Getegid(), nil}}
	}
	return []caller{{"root", 0, 0, nil}, {"user", userID, userID, []int{groupID}}}
}

// as runs fn on a thread of its own that has the caller's ids.
func (c caller) as(fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocks: the thread ends with the goroutine
		c.become()
		fn()
	}()
	<-done
}

// become gives the ids to this thread alone: the raw calls, unlike those of the
// syscall package, do not reach the others.
func (c caller) become() {
	if os.Geteuid() != 0 {
		return
	}
	groups := make([]uint32, len(c.groups)+1)
	for i, g := range c.groups {
		groups[i] = uint32(g)
	}
	must := func(_, _ uintptr, e unix.Errno) {
		if e != 0 {
			panic(fmt.Sprintf("become %s: %v", c.name, e))
		}
	}
	must(unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(c.groups)), uintptr(unsafe.Pointer(&groups[0])), 0))
	must(unix.RawSyscall(unix.SYS_SETRESGID, uintptr(c.gid), uintptr(c.gid), uintptr(c.gid)))
	must(unix.RawSyscall(unix.SYS_SETRESUID, uintptr(c.uid), uintptr(c.uid), uintptr(c.uid)))
}

// world is one of the two directories.
type world struct {
	t    testing.TB
	root string
	full bool
	// readable leaves out what its owner may not read: a daemon that is not root
	// has no way to the contents in a lower.
	readable bool
}

// entry is one file of a world's beginning.
type entry struct {
	path     string
	mode     uint32
	uid, gid int
	target   string // of a link; of a regular file, the file that it is a link of
}

// beginning is what each world has at first. Only root's has other owners.
func (w *world) beginning() []entry {
	const u, g = userID, groupID
	all := []entry{
		{"open", unix.S_IFDIR | 0o777, 0, 0, ""},
		{"mine", unix.S_IFDIR | 0o755, u, u, ""},
		{"roots", unix.S_IFDIR | 0o755, 0, 0, ""},
		{"noexec", unix.S_IFDIR | 0o666, u, u, ""},
		{"sticky", unix.S_IFDIR | 0o1777, 0, 0, ""},
		{"mysticky", unix.S_IFDIR | 0o1777, u, u, ""},
		{"setgid", unix.S_IFDIR | 0o2777, 0, g, ""},
		{"setgid2", unix.S_IFDIR | 0o2777, 0, otherID, ""},
		{"empty", unix.S_IFDIR | 0o755, u, u, ""},
		{"file", unix.S_IFREG | 0o644, u, u, ""},
		{"file0", unix.S_IFREG, u, u, ""},
		{"rootfile", unix.S_IFREG | 0o644, 0, 0, ""},
		{"groupfile", unix.S_IFREG | 0o664, 0, g, ""},
		{"worldfile", unix.S_IFREG | 0o666, otherID, otherID, ""},
		{"program", unix.S_IFREG | 0o755, u, g, ""},
		{"twin", unix.S_IFREG | 0o644, u, u, ""},
		{"twin2", unix.S_IFREG, 0, 0, "twin"},
		{"link", unix.S_IFLNK, u, u, "file"},
		{"dirlink", unix.S_IFLNK, u, u, "open"},
		{"dangling", unix.S_IFLNK, 0, 0, "nowhere"},
		{"loop", unix.S_IFLNK, u, u, "loop"},
		{"fifo", unix.S_IFIFO | 0o644, u, u, ""},
		{"socket", unix.S_IFSOCK | 0o755, u, u, ""},
	}
	for _, d := range []string{"open", "mine", "roots", "noexec", "sticky", "mysticky", "setgid"} {
		all = append(all,
			entry{d + "/mine", unix.S_IFREG | 0o644, u, u, ""},
			entry{d + "/other", unix.S_IFREG | 0o644, otherID, otherID, ""},
			entry{d + "/mydir", unix.S_IFDIR | 0o755, u, u, ""},
			entry{d + "/otherdir", unix.S_IFDIR | 0o755, otherID, otherID, ""})
	}
	if w.full {
		all = append(all,
			entry{"setid", unix.S_IFREG | 0o6755, u, g, ""},
			entry{"setid2", unix.S_IFREG | 0o2745, u, u, ""},
			entry{"setidfifo", unix.S_IFIFO | 0o6755, u, u, ""},
			entry{"device", unix.S_IFCHR | 0o666, u, u, ""})
	}
	if w.readable {
		all = slices.DeleteFunc(all, func(e entry) bool { return e.path == "file0" || strings.HasPrefix(e.path, "noexec") })
	}
	return all
}

// build makes the beginning in a directory of the given name.
func (w *world) build(name string) string {
	w.t.Helper()
	dir := filepath.Join(w.root, name)
	check(w.t, os.Mkdir(dir, 0o755))
	w.fill(dir)
	return dir
}

// fill makes the beginning in an empty directory.
func (w *world) fill(dir string) {
	w.t.Helper()
	list := w.beginning()
	for _, e := range list {
		path := dir + "/" + e.path
		switch {
		case e.mode&unix.S_IFMT == unix.S_IFDIR:
			check(w.t, unix.Mkdir(path, 0o755))
		case e.mode&unix.S_IFMT == unix.S_IFLNK:
			check(w.t, unix.Symlink(e.target, path))
		case e.target != "":
			check(w.t, unix.Link(dir+"/"+e.target, path))
			continue
		case e.mode&unix.S_IFMT == unix.S_IFREG:
			check(w.t, os.WriteFile(path, []byte("content of "+e.path), 0o600))
		default:
			check(w.t, unix.Mknod(path, e.mode&unix.S_IFMT|0o600, int(unix.Mkdev(1, 3))))
		}
	}
	w.modes(dir)
}

// modes gives all files the owners and modes that they begin with.
func (w *world) modes(dir string) {
	w.t.Helper()
	list := w.beginning()
	for i := len(list) - 1; i >= 0; i-- { // children first: a parent's mode could shut them out
		e := list[i]
		path := dir + "/" + e.path
		if e.mode&unix.S_IFMT == unix.S_IFREG && e.target != "" {
			continue
		}
		if os.Geteuid() == 0 {
			check(w.t, unix.Lchown(path, e.uid, e.gid))
		}
		if e.mode&unix.S_IFMT != unix.S_IFLNK {
			check(w.t, unix.Chmod(path, e.mode&0o7777))
		}
	}
}

// remove takes everything away, whatever the modes are by now.
func remove(dir string) {
	filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			os.Chmod(path, 0o700)
		}
		return nil
	})
	os.RemoveAll(dir)
}

// seen is what can be seen of a file.
type seen struct {
	text string
	ino  uint64
	times
}

// look takes in all files below dir, which lie on its file system. links says
// whether the link counts of directories matter.
func look(dir string, links bool) map[string]seen {
	all := map[string]seen{}
	var top unix.Stat_t
	unix.Lstat(dir, &top)
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			all[rel] = seen{text: err.Error()}
			return nil
		}
		text := fmt.Sprintf("mode %o owner %d:%d rdev %x", st.Mode, st.Uid, st.Gid, st.Rdev)
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			text += fmt.Sprintf(" size %d", st.Size)
		}
		if links || st.Mode&unix.S_IFMT != unix.S_IFDIR {
			text += fmt.Sprintf(" links %d", st.Nlink)
		}
		if st.Dev != top.Dev {
			text += " on another device"
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			data, err := os.ReadFile(path)
			text += fmt.Sprintf(" %.40q %v", data, err != nil)
		case unix.S_IFLNK:
			target, _ := os.Readlink(path)
			text += fmt.Sprintf(" to %.40q", target)
		}
		text += " " + xattrText(path)
		all[rel] = seen{text, st.Ino, times{st.Mtim.Nano(), st.Ctim.Nano()}}
		return nil
	})
	return all
}

func xattrText(path string) string {
	buf := make([]byte, 4096)
	n, err := unix.Llistxattr(path, buf)
	if err != nil {
		return ""
	}
	names := strings.Split(strings.TrimSuffix(string(buf[:n]), "\x00"), "\x00")
	sort.Strings(names)
	return fmt.Sprint(names)
}

// report tells what a call did: what is there now and which times moved.
func report(before, after map[string]seen) string {
	var out []string
	old := map[uint64]times{} // of the same file, whatever its name was
	for _, b := range before {
		old[b.ino] = b.times
	}
	for path, a := range after {
		b, ok := before[path]
		was, same := old[a.ino]
		what := ""
		switch {
		case !ok:
			what = "new: " + a.text
		case a.text != b.text:
			what = "now: " + a.text
		}
		if ok && a.ino != b.ino {
			what += " another file"
		}
		if ok && same && a.mtime != was.mtime {
			what += " mtime"
		}
		if ok && same && a.ctime != was.ctime {
			what += " ctime"
		}
		if what != "" {
			out = append(out, path+": "+what)
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			out = append(out, path+": gone")
		}
	}
	sort.Strings(out)
	return strings.Join(out, "\n\t")
}

// attempt is one call on one path, or on two.
type attempt struct {
	name string
	do   func(a, b string) error
}

// pair runs attempts in both worlds.
type pair struct {
	t      *testing.T
	worlds [2]*world
	dirs   [2]string
	n      int
	links  bool // link counts of directories matter
	dirty  bool // the last call of a supplied world changed something

	supply *supply // of the second world's beginnings; nil if they are made there
}

func (p *pair) fresh() {
	p.n++
	for i, w := range p.worlds {
		if i == 1 && p.supply != nil {
			p.dirs[i] = p.supply.next()
			continue
		}
		check(p.t, os.Chmod(w.root, 0o777)) // ".." may have been shut
		if p.dirs[i] != "" {
			remove(p.dirs[i])
		}
		p.dirs[i] = w.build(fmt.Sprint("w", p.n))
	}
}

func (p *pair) run(c caller, at attempt, a, b string) {
	var results [2]string
	changed := false
	for i, dir := range p.dirs {
		before := look(dir, p.links)
		var err error
		c.as(func() { err = at.do(under(dir, a), under(dir, b)) })
		did := report(before, look(dir, p.links))
		changed = changed || did != ""
		results[i] = fmt.Sprintf("%v\n\t%s", err, did)
	}
	if results[0] != results[1] {
		p.t.Errorf("%s %s %s %s:\n plain: %s\n mount: %s", c.name, at.name, short(a), short(b), results[0], results[1])
	}
	p.dirty = changed
	if changed && p.supply == nil {
		p.fresh()
	}
}

// under makes a path below dir. Special spellings stay what they are.
func under(dir, path string) string {
	if path == "" {
		return ""
	}
	if n, ok := strings.CutPrefix(path, "long:"); ok { // a path of exactly that many bytes
		want := 0
		fmt.Sscan(n, &want)
		tail := "file"
		for len(dir)+1+len(tail) < want-1 {
			tail = "./" + tail
		}
		if len(dir)+1+len(tail) < want {
			tail = "/" + tail
		}
		return dir + "/" + tail
	}
	return dir + "/" + path
}

func short(path string) string {
	if len(path) > 40 {
		return fmt.Sprintf("%.20s...(%d)", path, len(path))
	}
	return path
}

// newPair makes two worlds: a plain one and one in dir.
func newPair(t *testing.T, dir string, full bool) *pair {
	t.Helper()
	plain := public(t, harness.TempDir(t))
	p := &pair{t: t, links: true}
	for i, root := range []string{plain, dir} {
		check(t, os.Chmod(root, 0o755))
		own, err := os.MkdirTemp(root, "matrix-")
		check(t, err)
		check(t, os.Chmod(own, 0o777))
		t.Cleanup(func() { remove(own) })
		p.worlds[i] = &world{t: t, root: own, full: full}
	}
	p.fresh()
	return p
}
