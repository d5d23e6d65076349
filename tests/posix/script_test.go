package posix

import (
	"errors"
	"fmt"
	"hash/fnv"

	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
)

// A script is a sequence of calls on files that a lower has, each as it would be
// written in a shell. It is run in a union and in a plain directory with the
// same files; each call must come to the same in both.
//
// In a path, @ stands for the number of the script's own set of files, and ~ for
// what stands behind the path: nothing, a slash, or a slash and a dot. "bin " before
// a step makes it as another user.
type script struct {
	name  string
	steps []string
}

const (
	scriptText  = ":xxx:yyy:zzz"
	scriptText2 = ":aaa:bbb:ccc"
	scriptUser  = 1 // owner of some files
)

// scriptTails are what ~ stands for.
var scriptTails = []string{"", "/", "/."}

// scriptSet makes one set of files in a directory that is called "a".
func scriptSet(t testing.TB, a string, n int) {
	t.Helper()
	path := func(name string) string { return fmt.Sprint(a, "/", name, n) }
	put(t, path("foo"), scriptText)
	put(t, path("rootfile"), scriptText)
	for _, l := range [][2]string{
		{"direct_sym", "../a/foo"}, {"indirect_sym", "direct_sym"}, {"pointless", "no_foo"},
		{"direct_dir_sym", "../a/dir"}, {"indirect_dir_sym", "direct_dir_sym"},
	} {
		check(t, os.Symlink(fmt.Sprint(l[1], n), path(l[0])))
	}
	check(t, os.MkdirAll(path("dir")+"/pop/c", 0o755))
	put(t, path("dir")+"/a", "")
	put(t, path("dir")+"/pop/b", scriptText2)
	check(t, os.Mkdir(path("empty"), 0o755))
	if os.Geteuid() == 0 {
		for _, name := range []string{"foo", "direct_sym", "indirect_sym", "pointless"} {
			check(t, unix.Lchown(path(name), scriptUser, scriptUser))
		}
	}
}

// player runs scripts in one directory.
type player struct {
	a    string // the directory
	tail string
	n    int
}

func (p *player) path(word string) string {
	return p.a + "/" + strings.NewReplacer("@", strconv.Itoa(p.n), "~", p.tail).Replace(word)
}

// step makes one call and says what came of it.
func (p *player) step(text string) (got string) {
	if rest, ok := strings.CutPrefix(text, "bin "); ok {
		if os.Geteuid() != 0 {
			return ""
		}
		caller{name: "bin", uid: scriptUser, gid: scriptUser}.as(func() { got = p.step(rest) })
		return got
	}
	words := strings.Fields(text)
	path, second := p.path(words[1]), ""
	if len(words) > 2 {
		second = words[2]
	}
	switch words[0] {
	case "open":
		return p.open(path, words[2:])
	case "rename":
		return p.identity(path, p.path(second), unix.Rename(path, p.path(second)))
	case "exchange":
		return outcome(unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, p.path(second), unix.RENAME_EXCHANGE))
	case "link":
		return p.identity(path, p.path(second), unix.Linkat(unix.AT_FDCWD, path, unix.AT_FDCWD, p.path(second), 0))
	case "linkfollow":
		return outcome(unix.Linkat(unix.AT_FDCWD, path, unix.AT_FDCWD, p.path(second), unix.AT_SYMLINK_FOLLOW))
	case "symlink":
		return outcome(unix.Symlink(p.path(second)[len(p.a)+1:], path))
	case "readlink":
		buf := make([]byte, 200)
		n, err := unix.Readlink(path, buf)
		return string(buf[:max(n, 0)]) + " " + outcome(err)
	case "mkdir":
		return outcome(unix.Mkdir(path, 0o755))
	case "rmdir":
		return outcome(unix.Rmdir(path))
	case "unlink":
		return outcome(unix.Unlink(path))
	case "mkfifo":
		return outcome(unix.Mkfifo(path, 0o644))
	case "chmod":
		return outcome(unix.Chmod(path, 0o640))
	case "utimes":
		return outcome(utimensat(path, nil, 0))
	case "lutimes":
		return outcome(utimensat(path, nil, unix.AT_SYMLINK_NOFOLLOW))
	case "truncate":
		n, _ := strconv.ParseInt(second, 10, 64)
		return outcome(unix.Truncate(path, n))
	case "list":
		return p.list(path)
	case "stat":
		var st unix.Stat_t
		err := unix.Stat(path, &st)
		return fmt.Sprintf("%o %d:%d %s", st.Mode, st.Uid, st.Gid, outcome(err))
	case "rmtree":
		return outcome(bare(os.RemoveAll(strings.TrimRight(path, "/."))))
	}
	panic("unknown step " + text)
}

func outcome(err error) string {
	var e unix.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &e):
		return unix.ErrnoName(e)
	}
	return err.Error()
}

// open opens the file with the flags, writes what is asked for, and reads
// everything from the beginning.
func (p *player) open(path string, words []string) string {
	flags, data := 0, ""
	for _, w := range words {
		if d, ok := strings.CutPrefix(w, "w="); ok {
			data = d
			continue
		}
		flags |= openWords[w]
	}
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o644)
	if err != nil {
		return outcome(err)
	}
	defer unix.Close(fd)
	out := "ok"
	if data != "" {
		n, err := unix.Write(fd, []byte(data))
		out += fmt.Sprint(" wrote ", n, " ", outcome(err))
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return out + " " + outcome(err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		out += fmt.Sprint(" size ", st.Size)
	}
	buf := make([]byte, 100)
	n, err := unix.Pread(fd, buf, 0)
	return out + fmt.Sprintf(" read %q %s", buf[:max(n, 0)], outcome(err))
}

var openWords = map[string]int{
	"r": unix.O_RDONLY, "w": unix.O_WRONLY, "rw": unix.O_RDWR, "append": unix.O_WRONLY | unix.O_APPEND, "rappend": unix.O_RDWR | unix.O_APPEND,
	"creat": unix.O_CREAT, "excl": unix.O_EXCL, "trunc": unix.O_TRUNC, "dir": unix.O_DIRECTORY, "nofollow": unix.O_NOFOLLOW,
}

// identity says what came of a call that must leave a file's identity.
func (p *player) identity(from, to string, err error) string {
	var a, b unix.Stat_t
	errA, errB := unix.Lstat(strings.TrimRight(from, "/."), &a), unix.Lstat(strings.TrimRight(to, "/."), &b)
	out := fmt.Sprintf("%s then %s %s", outcome(err), outcome(errA), outcome(errB))
	if errA == nil && errB == nil {
		out += fmt.Sprint(" same ", a.Ino == b.Ino && a.Dev == b.Dev)
	}
	return out
}

func (p *player) list(path string) string {
	list, err := os.ReadDir(path)
	var names []string
	for _, e := range list {
		names = append(names, e.Name()+" "+e.Type().String())
	}
	slices.Sort(names)
	return fmt.Sprint(names, " ", outcome(bare(err)))
}

// identity of a file: ext4 gives a number that is free to the next file.
type identity struct {
	ino  uint64
	born unix.StatxTimestamp
}

// identities returns which file each name leads to.
func identities(dir string) map[string]identity {
	all := map[string]identity{}
	filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var st unix.Statx_t
		if err == nil && unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &st) == nil {
			all[path[len(dir):]] = identity{st.Ino, st.Btime}
		}
		return nil
	})
	return all
}

// TestUnionScripts runs all scripts, or, unless POSIX_MATRIX says otherwise, a
// part of them, with one lower and with three.
func TestUnionScripts(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	t.Run("one lower", func(t *testing.T) { unionScripts(t, 1) })
	t.Run("three lowers", func(t *testing.T) {
		dropping(t)
		unionScripts(t, 3)
	})
}

// scriptShare is how many scripts there are to one that is always run.
const scriptShare = 150

type scriptRun struct {
	script
	tail string
}

// chosenScripts returns the scripts that are to be run.
func chosenScripts(t *testing.T) (runs []scriptRun) {
	part, of := matrixPart(t)
	if of == matrixShare {
		of = scriptShare
	}
	for _, s := range allScripts() {
		for _, tail := range scriptTails {
			h := fnv.New32a()
			h.Write([]byte(t.Name() + s.name + tail))
			if h.Sum32()%of == part {
				runs = append(runs, scriptRun{s, tail})
			}
		}
	}
	return runs
}

// scriptBatch is how many scripts are run in one mount.
const scriptBatch = 500

func unionScripts(t *testing.T, lowers int) {
	runs := chosenScripts(t)
	for batch := range slices.Chunk(runs, scriptBatch) {
		playScripts(t, lowers, batch)
	}
	t.Logf("%d scripts", len(runs))
}

func playScripts(t *testing.T, lowers int, runs []scriptRun) {
	s := newStack(t, lowers, false)
	plain := public(t, harness.TempDir(t))
	for _, dir := range append([]string{plain}, s.lowers...) {
		check(t, os.Mkdir(dir+"/a", 0o755))
		for i := range runs {
			scriptSet(t, dir+"/a", 100+i)
		}
	}
	s.spread("a")
	var was []map[string]seen
	for _, low := range s.lowers {
		was = append(was, look(low, true))
	}
	s.mount()
	first, plainWas := identities(s.mnt), identities(plain)
	for i, r := range runs {
		there, here := player{s.mnt + "/a", r.tail, 100 + i}, player{plain + "/a", r.tail, 100 + i}
		for k, step := range r.steps {
			if got, want := there.step(step), here.step(step); got != want {
				t.Errorf("%s, tail %q, step %d, %s:\n got %s\nwant %s", r.name, r.tail, k, step, got, want)
			}
		}
	}
	same(t, "after all scripts", look(s.mnt, lowers == 1), look(plain, lowers == 1), false)
	now, plainNow := identities(s.mnt), identities(plain)
	for path, id := range plainWas {
		if plainNow[path] == id && now[path] != first[path] {
			t.Errorf("%s: inode and time of birth %v, were %v", path, now[path], first[path])
		}
	}
	s.remounted()
	s.umount()
	for i, low := range s.lowers {
		same(t, low, look(low, true), was[i], true)
	}
}
