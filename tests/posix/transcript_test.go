package posix

import (
	"errors"
	"fmt"
	"maps"
	"os"
	osexec "os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
)

// recorder notes what calls come to. Two directories that behave alike give
// the same notes.
type recorder struct {
	t    *testing.T
	dir  string
	full bool // set-id bits and device nodes can be made
	out  []string
}

func (r *recorder) note(format string, args ...any) {
	r.out = append(r.out, fmt.Sprintf(format, args...))
}

// transcripts are made in an empty directory of a plain file system and of a mount,
// and compared. Most need root, who can be several callers.
var transcripts = map[string]func(r *recorder){
	"sticky":       stickyTypes,
	"set-id write": setIDWrites,
	"chown":        chownTypes,
	"set-gid dir":  setGIDCreate,
	"busy text":    busyTextOps,
	"xattrs":       xattrTypes,
	"events":       eventsOf,
	"failed times": failedTimes,
	"long names":   namesAtLimit,
	"capability":   capabilities,
}

// TestTranscripts compares the transcripts of a mount, or of POSIX_DIR, with
// those of a plain directory.
func TestTranscripts(t *testing.T) {
	if dir := os.Getenv("POSIX_DIR"); dir != "" {
		compareTranscripts(t, dir, os.Getenv("POSIX_PROFILE") == "full")
		return
	}
	harness.Require(t, "binary", "fuse")
	t.Run("default", func(t *testing.T) { compareTranscripts(t, mount(t), false) })
	if os.Geteuid() == 0 {
		t.Run("full", func(t *testing.T) { compareTranscripts(t, mount(t, "-o", "profile=posix-full"), true) })
	}
}

func compareTranscripts(t *testing.T, dir string, full bool) {
	plain := public(t, harness.TempDir(t))
	check(t, os.Chmod(dir, 0o755))
	for _, name := range slices.Sorted(maps.Keys(transcripts)) {
		t.Run(name, func(t *testing.T) {
			var out [2][]string
			for i, d := range []string{plain, dir} {
				own, err := os.MkdirTemp(d, "transcript-")
				check(t, err)
				check(t, os.Chmod(own, 0o777))
				r := &recorder{t: t, dir: own, full: full}
				transcripts[name](r)
				out[i] = r.out
				remove(own)
			}
			n := 0
			for i := range min(len(out[0]), len(out[1])) {
				if out[0][i] != out[1][i] {
					if n++; n <= 15 {
						t.Errorf("line %d:\n plain: %s\n mount: %s", i, out[0][i], out[1][i])
					}
				}
			}
			if len(out[0]) != len(out[1]) {
				t.Errorf("%d lines, want %d", len(out[1]), len(out[0]))
			}
			t.Logf("%d lines", len(out[0]))
		})
	}
}

var (
	someUser  = caller{"user", userID, userID, []int{groupID}}
	otherUser = caller{"other", otherID, otherID, nil}
	rootUser  = caller{"root", 0, 0, nil}
)

// kinds are the types of files, by what makes them.
func (r *recorder) kinds() []string {
	if r.full {
		return []string{"file", "dir", "fifo", "socket", "link", "char", "block"}
	}
	return []string{"file", "dir", "fifo", "socket", "link"}
}

// make makes a file of a kind with an owner.
func (r *recorder) make(kind, path string, uid int) {
	r.t.Helper()
	switch kind {
	case "file":
		check(r.t, os.WriteFile(path, []byte("text"), 0o644))
	case "dir":
		check(r.t, os.Mkdir(path, 0o755))
	case "link":
		check(r.t, os.Symlink("nowhere", path))
	default:
		mode := map[string]uint32{"fifo": unix.S_IFIFO, "socket": unix.S_IFSOCK, "char": unix.S_IFCHR, "block": unix.S_IFBLK}[kind]
		check(r.t, unix.Mknod(path, mode|0o644, int(unix.Mkdev(200, 9))))
	}
	if os.Geteuid() == 0 {
		check(r.t, unix.Lchown(path, uid, uid))
	}
}

func (r *recorder) gone(paths ...string) {
	for _, p := range paths {
		os.RemoveAll(p)
	}
}

// show describes a file.
func show(path string) string {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return outcome(err)
	}
	return fmt.Sprintf("%o %d:%d", st.Mode, st.Uid, st.Gid)
}

// stickyTypes removes and renames each kind of file from, to and within sticky
// directories, for each combination of owners.
func stickyTypes(r *recorder) {
	if os.Geteuid() != 0 {
		return
	}
	from, to := r.dir+"/from", r.dir+"/to"
	owners := []int{userID, 0, otherID}
	for _, dirOwner := range owners {
		for _, d := range []string{from, to} {
			check(r.t, os.Mkdir(d, 0o777))
			check(r.t, unix.Chown(d, dirOwner, dirOwner))
			check(r.t, unix.Chmod(d, 0o1777))
		}
		for _, kind := range r.kinds() {
			for _, owner := range owners {
				what := fmt.Sprint(kind, " of ", owner, " in directory of ", dirOwner)
				for _, over := range slices.Compact([]string{"none", kind, "dir"}) {
					for _, overOwner := range owners {
						r.make(kind, from+"/a", owner)
						if over != "none" {
							r.make(over, to+"/b", overOwner)
						}
						var err error
						someUser.as(func() { err = unix.Rename(from+"/a", to+"/b") })
						r.note("%s, rename over %s of %d: %s %s %s", what, over, overOwner, outcome(err), show(from+"/a"), show(to+"/b"))
						r.gone(from+"/a", to+"/b")
						if over == "none" {
							break
						}
					}
				}
				for name, call := range map[string]func(string) error{"unlink": unix.Unlink, "rmdir": unix.Rmdir,
					"rename": func(p string) error { return unix.Rename(p, p+"2") }} {
					r.make(kind, from+"/a", owner)
					var err error
					someUser.as(func() { err = call(from + "/a") })
					r.note("%s, %s: %s %s", what, name, outcome(err), show(from+"/a"))
					r.gone(from+"/a", from+"/a2")
				}
			}
		}
		r.gone(from, to)
	}
	slices.Sort(r.out)
}

// setIDWrites changes files with set-id bits in all ways and looks at the mode, by
// the descriptor and by the path.
func setIDWrites(r *recorder) {
	if os.Geteuid() != 0 || !r.full {
		return
	}
	put(r.t, r.dir+"/source", strings.Repeat("s", 5000))
	ways := map[string]func(fd int, path string) error{
		"write":         func(fd int, _ string) error { _, err := unix.Write(fd, []byte("w")); return err },
		"write nothing": func(fd int, _ string) error { _, err := unix.Write(fd, nil); return err },
		"pwrite far":    func(fd int, _ string) error { _, err := unix.Pwrite(fd, []byte("w"), 100_000); return err },
		"ftruncate":     func(fd int, _ string) error { return unix.Ftruncate(fd, 2) },
		"same size":     func(fd int, _ string) error { return unix.Ftruncate(fd, 4) },
		"truncate":      func(_ int, path string) error { return unix.Truncate(path, 100) },
		"allocate":      func(fd int, _ string) error { return unix.Fallocate(fd, 0, 0, 9000) },
		"punch": func(fd int, _ string) error {
			return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 2)
		},
		"open to cut": func(_ int, path string) error {
			fd, err := unix.Open(path, unix.O_WRONLY|unix.O_TRUNC|unix.O_CLOEXEC, 0)
			unix.Close(fd)
			return err
		},
		"copy": func(fd int, _ string) error {
			src, err := unix.Open(r.dir+"/source", unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(src)
			_, err = unix.CopyFileRange(src, nil, fd, nil, 4000, 0)
			return err
		},
		"sendfile": func(fd int, _ string) error {
			src, err := unix.Open(r.dir+"/source", unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(src)
			_, err = unix.Sendfile(fd, src, nil, 4000)
			return err
		},
		"direct": func(_ int, path string) error {
			fd, err := unix.Open(path, unix.O_WRONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			_, err = unix.Write(fd, aligned(r.t, 4096))
			return err
		},
		"utimes": func(_ int, path string) error { return utimensat(path, nil, 0) },
		"xattr":  func(_ int, path string) error { return unix.Setxattr(path, "user.x", nil, 0) },
		"link":   func(_ int, path string) error { return unix.Link(path, path+"2") },
	}
	for _, mode := range []uint32{0o4777, 0o2777, 0o6777, 0o2767, 0o6767, 0o4666, 0o2666, 0o777} {
		for _, name := range slices.Sorted(maps.Keys(ways)) {
			for _, c := range []caller{rootUser, someUser, otherUser} {
				path := r.dir + "/f"
				put(r.t, path, "text")
				check(r.t, unix.Chown(path, userID, userID))
				check(r.t, unix.Chmod(path, mode))
				c.as(func() {
					fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
					if err != nil {
						r.note("%o %s by %s: open: %s", mode, name, c.name, outcome(err))
						return
					}
					defer unix.Close(fd)
					err = ways[name](fd, path)
					var st unix.Stat_t
					ferr := unix.Fstat(fd, &st)
					r.note("%o %s by %s: %s, by descriptor %o %s, by path %s", mode, name, c.name, outcome(err), st.Mode, outcome(ferr), show(path))
				})
				r.gone(path, path+"2")
			}
		}
	}
}

// chownTypes changes the owners of each kind of file with several modes.
func chownTypes(r *recorder) {
	if os.Geteuid() != 0 {
		return
	}
	modes := []uint32{0o555, 0o666}
	if r.full {
		modes = append(modes, 0o6555, 0o6455, 0o2444, 0o4111, 0o7777)
	}
	path := r.dir + "/f"
	for _, kind := range r.kinds() {
		for _, mode := range modes {
			for _, c := range []caller{rootUser, someUser, otherUser} {
				for _, o := range [][2]int{{-1, -1}, {userID, groupID}, {-1, groupID}, {userID, -1}, {otherID, -1}, {-1, otherID}, {0, 0}} {
					r.make(kind, path, userID)
					if kind != "link" {
						check(r.t, unix.Chmod(path, mode))
					}
					if c.uid == otherID && o[0] == -1 && o[1] == -1 && mode&0o6000 != 0 {
						r.gone(path)
						continue // see fs/DIFFERENCES.md
					}
					was := timesOf(r.t, path)
					var err error
					c.as(func() { err = unix.Lchown(path, o[0], o[1]) })
					now := timesOf(r.t, path)
					r.note("%s %o by %s to %v: %s %s mtime %t ctime %t", kind, mode, c.name, o, outcome(err), show(path), now.mtime != was.mtime, now.ctime != was.ctime)
					r.gone(path)
				}
			}
		}
	}
}

// setGIDCreate makes files in set-gid directories of one's own group and of
// another's.
func setGIDCreate(r *recorder) {
	if os.Geteuid() != 0 {
		return
	}
	modes := []uint32{0o644, 0o755, 0o1777}
	if r.full {
		modes = append(modes, 0o2755, 0o2745, 0o6777, 0o4755, 0o2644)
	}
	for _, group := range []int{groupID, otherID} {
		dir := fmt.Sprint(r.dir, "/", group)
		check(r.t, os.Mkdir(dir, 0o777))
		check(r.t, unix.Chown(dir, 0, group))
		check(r.t, unix.Chmod(dir, 0o2777))
		ways := map[string]func(mode uint32) error{
			"open": func(mode uint32) error {
				fd, err := unix.Open(dir+"/f", unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_CLOEXEC, mode)
				unix.Close(fd)
				return err
			},
			"temporary": func(mode uint32) error {
				fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, mode)
				if err == nil {
					err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, dir+"/f", unix.AT_SYMLINK_FOLLOW)
					unix.Close(fd)
				}
				return err
			},
			"mkdir":   func(mode uint32) error { return unix.Mkdir(dir+"/f", mode) },
			"mknod":   func(mode uint32) error { return unix.Mknod(dir+"/f", unix.S_IFREG|mode, 0) },
			"mkfifo":  func(mode uint32) error { return unix.Mkfifo(dir+"/f", mode) },
			"symlink": func(uint32) error { return unix.Symlink("x", dir+"/f") },
			"chmod after": func(mode uint32) error {
				fd, err := unix.Open(dir+"/f", unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
				if err == nil {
					err = unix.Fchmod(fd, mode)
					unix.Close(fd)
				}
				return err
			},
		}
		for _, name := range slices.Sorted(maps.Keys(ways)) {
			for _, mode := range modes {
				for _, c := range []caller{rootUser, someUser, otherUser} {
					var err error
					c.as(func() { err = ways[name](mode) })
					r.note("%s %o by %s in directory of %d: %s %s", name, mode, c.name, group, outcome(err), show(dir+"/f"))
					r.gone(dir + "/f")
				}
			}
		}
	}
}

// busyTextOps changes a program while it runs.
func busyTextOps(r *recorder) {
	sleep, err := osexec.LookPath("sleep")
	check(r.t, err)
	data, err := os.ReadFile(sleep)
	check(r.t, err)
	path := r.dir + "/sleep"
	check(r.t, os.WriteFile(path, data, 0o755))
	cmd := osexec.Command(path, "60")
	check(r.t, cmd.Start())
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	for _, flags := range []int{unix.O_WRONLY, unix.O_RDWR, unix.O_WRONLY | unix.O_TRUNC, unix.O_RDONLY | unix.O_TRUNC, unix.O_WRONLY | unix.O_CREAT, unix.O_RDONLY} {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o755)
		if err == nil {
			unix.Close(fd)
		}
		r.note("open %o: %s", flags, outcome(err))
	}
	r.note("truncate: %s", outcome(unix.Truncate(path, 10)))
	r.note("chmod: %s", outcome(unix.Chmod(path, 0o700)))
	r.note("rename: %s", outcome(unix.Rename(path, path+"2")))
	put(r.t, path, "another")
	r.note("rename over: %s", outcome(unix.Rename(path, path+"2")))
	r.note("unlink: %s", outcome(unix.Unlink(path+"2")))
	f := create(r.t, r.dir+"/busy")
	check(r.t, f.Chmod(0o755))
	_, err = f.Write(data)
	check(r.t, err)
	err = syscall.Exec(r.dir+"/busy", []string{"busy", "0"}, nil)
	r.note("execute what is open to write: %s", outcome(err))
}

// xattrTypes sets, gets, lists and removes attributes of each space on each kind
// of file.
func xattrTypes(r *recorder) {
	spaces := []string{"user.x", "user.", "none.x", "", "user." + strings.Repeat("n", 250), "user." + strings.Repeat("n", 251), "system.x"}
	if r.full {
		spaces = append(spaces, "trusted.x", "security.x")
	}
	callers := callers()
	path := r.dir + "/f"
	for _, kind := range r.kinds() {
		for _, name := range spaces {
			for _, c := range callers {
				r.make(kind, path, userID)
				c.as(func() {
					short := fmt.Sprintf("%s %.10s by %s", kind, name, c.name)
					for _, flags := range []int{unix.XATTR_REPLACE, unix.XATTR_CREATE, unix.XATTR_CREATE, unix.XATTR_REPLACE, 0, 99} {
						r.note("%s set %d: %s", short, flags, outcome(unix.Lsetxattr(path, name, []byte(fmt.Sprint("value", flags)), flags)))
					}
					for _, n := range []int{0, 3, 100} {
						buf := make([]byte, n)
						got, err := unix.Lgetxattr(path, name, buf)
						r.note("%s get %d: %d %q %s", short, n, got, buf[:max(0, min(got, n))], outcome(err))
						got, err = unix.Llistxattr(path, buf)
						r.note("%s list %d: %d %s", short, n, got, outcome(err))
					}
					r.note("%s remove: %s", short, outcome(unix.Lremovexattr(path, name)))
					r.note("%s remove: %s", short, outcome(unix.Lremovexattr(path, name)))
				})
				r.gone(path)
			}
		}
	}
	put(r.t, path, "")
	for _, n := range []int{0, 1, 4000, 65536, 65537, 100_000} {
		err := unix.Setxattr(path, "user.big", make([]byte, n), 0)
		if n <= 1 || n > 65536 { // how much fits in between is the file system's
			r.note("value of %d: %s", n, outcome(err))
		}
		unix.Removexattr(path, "user.big")
	}
}

// eventsOf watches a directory and a file in it by inotify.
func eventsOf(r *recorder) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	check(r.t, err)
	defer unix.Close(fd)
	d := r.dir + "/d"
	check(r.t, os.Mkdir(d, 0o755))
	put(r.t, d+"/f", "text")
	check(r.t, os.Mkdir(d+"/sub", 0o755))
	watched := map[int32]string{}
	for _, p := range []string{d, d + "/f", d + "/sub"} {
		wd, err := unix.InotifyAddWatch(fd, p, unix.IN_ALL_EVENTS)
		check(r.t, err)
		watched[int32(wd)] = p[len(r.dir):]
	}
	ops := []struct {
		name string
		do   func() error
	}{
		{"read", func() error { _, err := os.ReadFile(d + "/f"); return err }},
		{"list", func() error { _, err := os.ReadDir(d); return err }},
		{"append", func() error {
			f, err := os.OpenFile(d+"/f", os.O_APPEND|os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteString("x")
				f.Close()
			}
			return err
		}},
		{"open to cut", func() error { return os.WriteFile(d+"/f", nil, 0) }},
		{"truncate", func() error { return os.Truncate(d+"/f", 100) }},
		{"allocate", func() error {
			f, err := os.OpenFile(d+"/f", os.O_WRONLY, 0)
			if err == nil {
				err = unix.Fallocate(int(f.Fd()), 0, 0, 8000)
				f.Close()
			}
			return err
		}},
		{"chmod", func() error { return os.Chmod(d+"/f", 0o600) }},
		{"utimes", func() error { return utimensat(d+"/f", nil, 0) }},
		{"xattr", func() error { return unix.Setxattr(d+"/f", "user.x", nil, 0) }},
		{"link", func() error { return os.Link(d+"/f", d+"/g") }},
		{"unlink", func() error { return os.Remove(d + "/g") }},
		{"create", func() error { return os.WriteFile(d+"/n", []byte("n"), 0o644) }},
		{"mkdir", func() error { return os.Mkdir(d+"/m", 0o755) }},
		{"symlink", func() error { return os.Symlink("x", d+"/s") }},
		{"mkfifo", func() error { return unix.Mkfifo(d+"/p", 0o644) }},
		{"rename", func() error { return os.Rename(d+"/n", d+"/o") }},
		{"rename out", func() error { return os.Rename(d+"/o", d+"/sub/o") }},
		{"rename over", func() error { return os.Rename(d+"/sub/o", d+"/f") }},
		{"exchange", func() error { return rename2(d+"/f", d+"/m", unix.RENAME_EXCHANGE) }},
		{"rename a directory", func() error { return os.Rename(d+"/sub", d+"/sub2") }},
		{"chmod of a directory", func() error { return os.Chmod(d+"/sub2", 0o700) }},
		{"rmdir", func() error { return os.Remove(d + "/sub2") }},
		{"remove", func() error {
			return errors.Join(os.Remove(d+"/f"), os.Remove(d+"/m"), os.Remove(d+"/p"), os.Remove(d+"/s"), os.Remove(d))
		}},
	}
	for _, op := range ops {
		err := op.do()
		r.note("%s: %s: %s", op.name, outcome(err), strings.Join(eventTexts(fd, watched), ", "))
	}
}

// eventTexts reads the events that are there.
func eventTexts(fd int, watched map[int32]string) (all []string) {
	buf := make([]byte, 64<<10)
	n, _ := unix.Read(fd, buf)
	for buf = buf[:max(n, 0)]; len(buf) >= unix.SizeofInotifyEvent; {
		wd := int32(le32(buf))
		mask, size := le32(buf[4:]), le32(buf[12:])
		name := unix.ByteSliceToString(buf[unix.SizeofInotifyEvent : unix.SizeofInotifyEvent+size])
		all = append(all, fmt.Sprintf("%s %q %x", watched[wd], name, mask))
		buf = buf[unix.SizeofInotifyEvent+size:]
	}
	return all
}

func le32(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// failedTimes makes calls that fail, which must not move times.
func failedTimes(r *recorder) {
	if os.Geteuid() != 0 {
		return
	}
	for _, kind := range r.kinds() {
		path := r.dir + "/d/f"
		check(r.t, os.Mkdir(r.dir+"/d", 0o755))
		r.make(kind, path, 0)
		put(r.t, r.dir+"/d/g", "")
		calls := map[string]func() error{
			"chmod":    func() error { return unix.Fchmodat(unix.AT_FDCWD, path, 0o777, 0) },
			"lchown":   func() error { return unix.Lchown(path, userID, userID) },
			"rename":   func() error { return unix.Rename(path, path+"2") },
			"link":     func() error { return unix.Link(path, path+"2") },
			"unlink":   func() error { return unix.Unlink(path) },
			"truncate": func() error { return unix.Truncate(path, 1) },
			"utimes":   func() error { return utimensat(path, nil, unix.AT_SYMLINK_NOFOLLOW) },
			"mkdir":    func() error { return unix.Mkdir(r.dir+"/d/new", 0o755) },
			"exchange": func() error { return rename2(path, r.dir+"/d/g", unix.RENAME_EXCHANGE) },
		}
		for _, name := range slices.Sorted(maps.Keys(calls)) {
			was, dirWas := timesOf(r.t, path), timesOf(r.t, r.dir+"/d")
			var err error
			someUser.as(func() { err = calls[name]() })
			r.note("%s %s: %s moved %t, its directory's %t", kind, name, outcome(err), timesOf(r.t, path) != was, timesOf(r.t, r.dir+"/d") != dirWas)
		}
		r.gone(r.dir + "/d")
	}
}

// namesAtLimit makes each call that takes a name with names of 255 and 256 bytes.
func namesAtLimit(r *recorder) {
	for _, n := range []int{254, 255, 256, 1000} {
		name := strings.Repeat("n", n)
		path, second := r.dir+"/"+name, r.dir+"/"+strings.Repeat("m", n)
		r.note("%d create: %s", n, outcome(openAttempt(unix.O_CREAT|unix.O_WRONLY)(path, "")))
		r.note("%d rename: %s", n, outcome(unix.Rename(path, second)))
		r.note("%d link: %s", n, outcome(unix.Link(second, path)))
		r.note("%d exchange: %s", n, outcome(rename2(second, path, unix.RENAME_EXCHANGE)))
		r.note("%d chmod: %s", n, outcome(unix.Chmod(path, 0o600)))
		r.note("%d unlink: %s %s", n, outcome(unix.Unlink(path)), outcome(unix.Unlink(second)))
		r.note("%d mkdir: %s", n, outcome(unix.Mkdir(path, 0o755)))
		r.note("%d below: %s", n, outcome(unix.Mkdir(path+"/"+name, 0o755)))
		r.note("%d rmdir: %s %s", n, outcome(unix.Rmdir(path+"/"+name)), outcome(unix.Rmdir(path)))
		r.note("%d symlink: %s", n, outcome(unix.Symlink(name, path)))
		r.note("%d lchown: %s", n, outcome(unix.Lchown(path, -1, -1)))
		r.note("%d follow: %s", n, outcome(unix.Chmod(path, 0o600)))
		r.note("%d unlink: %s", n, outcome(unix.Unlink(path)))
		r.note("%d mkfifo: %s", n, outcome(unix.Mkfifo(path, 0o600)))
		r.gone(path)
	}
	for _, n := range []int{4094, 4095, 4096} {
		target := strings.Repeat("./", 3000)[:n]
		err := unix.Symlink(target, r.dir+"/l")
		var st unix.Stat_t
		r.note("target of %d: %s", n, outcome(err))
		if err == nil {
			check(r.t, unix.Lstat(r.dir+"/l", &st))
			buf := make([]byte, 5000)
			got, err := unix.Readlink(r.dir+"/l", buf)
			r.note("size %d read %d %s same %t", st.Size, got, outcome(err), string(buf[:max(got, 0)]) == target)
			r.note("follow: %s", outcome(unix.Access(r.dir+"/l", unix.F_OK)))
			r.gone(r.dir + "/l")
		}
	}
}

// capabilities looks what takes a file's capability away.
func capabilities(r *recorder) {
	if os.Geteuid() != 0 || !r.full {
		return
	}
	path := r.dir + "/f"
	capability := []byte("\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	for _, c := range []caller{rootUser, someUser} {
		for name, call := range map[string]func() error{
			"write":    func() error { return os.WriteFile(path, []byte("w"), 0) },
			"truncate": func() error { return unix.Truncate(path, 0) },
			"chown":    func() error { return unix.Chown(path, userID, groupID) },
			"chmod":    func() error { return unix.Chmod(path, 0o700) },
			"rename":   func() error { return unix.Rename(path, path) },
		} {
			put(r.t, path, "text")
			check(r.t, unix.Chmod(path, 0o777))
			check(r.t, unix.Chown(path, userID, userID))
			check(r.t, unix.Setxattr(path, "security.capability", capability, 0))
			var err error
			c.as(func() { err = call() })
			n, gerr := unix.Getxattr(path, "security.capability", make([]byte, 100))
			r.note("%s by %s: %s, then %d %s", name, c.name, outcome(bare(err)), n, outcome(gerr))
			r.gone(path)
		}
	}
	slices.Sort(r.out)
}
