package coherence

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// state is one kind of what the kernel may have cached. hold makes it, for the
// source and for the mount alike, and returns a look at it.
type state struct {
	name string
	hold func(dir string) (look func() string, release func(), err error)
}

var states = []state{
	{"attributes and negative entries", plain(attributes)},
	{"attributes of directories not read", plain(directoriesOnly)},
	{"pages", plain(contents)},
	{"listings", plain(listings)},
	{"everything", plain(func(dir string) string { return attributes(dir) + contents(dir) + listings(dir) })},
	{"nothing", func(dir string) (func() string, func(), error) {
		return func() string { return attributes(dir) + contents(dir) + listings(dir) }, func() {}, nil
	}},
	{"descriptors", holdFiles(descriptor)},
	{"mappings", holdFiles(mapping)},
	{"working directory", holdDirectories},
}

// plain is a state that looking makes.
func plain(look func(dir string) string) func(string) (func() string, func(), error) {
	return func(dir string) (func() string, func(), error) {
		look(dir)
		return func() string { return look(dir) }, func() {}, nil
	}
}

func attributes(dir string) string { return each(dir, universe, attr) }

func directoriesOnly(dir string) string {
	return each(dir, []string{"sub", "sub/deep", "empty", "other", "new", "other/sub"}, attr)
}

func contents(dir string) string { return each(dir, universe, content) }

func listings(dir string) string { return each(dir, universe, listing) }

func each(dir string, names []string, look func(path string) string) string {
	var b strings.Builder
	for _, name := range names {
		if s := look(dir + "/" + name); s != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, s)
		}
	}
	return b.String()
}

func attr(path string) string {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err.Error()
	}
	return show(&st)
}

// show says what stat(2) gave, but for the time of access.
func show(st *unix.Stat_t) string {
	return fmt.Sprintf("ino %d mode %o links %d size %d mtime %d ctime %d", st.Ino, st.Mode, st.Nlink, st.Size, st.Mtim.Nano(), st.Ctim.Nano())
}

func content(path string) string {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err.Error()
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		b, err := os.ReadFile(path)
		return fmt.Sprintf("%q %v", strings.TrimLeft(string(b), "\x00"), err)
	case unix.S_IFLNK:
		target, err := os.Readlink(path)
		return fmt.Sprintf("-> %q %v", target, err)
	}
	return ""
}

func listing(path string) string {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return ""
	}
	return list(path)
}

func list(path string) string {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, "%s %s, ", e.Name(), e.Type())
	}
	return b.String()
}

// holdFiles keeps the regular files of the fixture open.
func holdFiles(look func(f *os.File) (func() string, error)) func(string) (func() string, func(), error) {
	return func(dir string) (func() string, func(), error) {
		var files []*os.File
		var looks []func() string
		release := func() {
			for _, f := range files {
				f.Close()
			}
		}
		for _, name := range []string{"f", "h1", "out", "sub/g", "sub/deep/h"} {
			f, err := os.Open(dir + "/" + name)
			if err != nil {
				return nil, release, err
			}
			files = append(files, f)
			l, err := look(f)
			if err != nil {
				return nil, release, err
			}
			looks = append(looks, l)
		}
		return func() string {
			var b strings.Builder
			for _, l := range looks {
				fmt.Fprintln(&b, l())
			}
			return b.String()
		}, release, nil
	}
}

func descriptor(f *os.File) (func() string, error) {
	look := func() string {
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			return err.Error()
		}
		buf := make([]byte, 20000)
		n, err := unix.Pread(int(f.Fd()), buf, 0)
		return fmt.Sprintf("%s %q %v", show(&st), buf[:max(n, 0)], err)
	}
	look()
	return look, nil
}

// mapping maps a file's first page and looks at it through /proc/self/mem,
// where a missing page is an error rather than a signal. The mapping is left to
// the end of the process.
func mapping(f *os.File) (func() string, error) {
	m, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	mem, err := os.Open("/proc/self/mem")
	if err != nil {
		return nil, err
	}
	look := func() string {
		buf := make([]byte, 64)
		_, err := mem.ReadAt(buf, addressOf(m))
		return fmt.Sprintf("%q %v", buf, err != nil)
	}
	look()
	return look, nil
}

// holdDirectories keeps directories open, as a process does whose working
// directory they are.
func holdDirectories(dir string) (func() string, func(), error) {
	names := []string{".", "sub", "sub/deep", "empty"}
	fds := make([]int, 0, len(names))
	release := func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}
	for _, name := range names {
		fd, err := unix.Open(dir+"/"+name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, release, err
		}
		fds = append(fds, fd)
	}
	look := func() string {
		var b strings.Builder
		for i, fd := range fds {
			fmt.Fprintf(&b, "%s: %s\n", names[i], within(fd))
		}
		return b.String()
	}
	look()
	return look, release, nil
}

// within looks at an open directory: its attributes, its listing, and a name
// in it.
func within(fd int) string {
	var st, child unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err.Error()
	}
	own := show(&st)
	names := []string{}
	n, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d/.", fd), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		f := os.NewFile(uintptr(n), "directory")
		names = append(names, listOpen(f))
		f.Close()
	}
	look := unix.Fstatat(fd, "g", &child, unix.AT_SYMLINK_NOFOLLOW)
	return fmt.Sprintf("%s %v %v; g: %v %s", own, names, err, look, show(&child))
}

func listOpen(f *os.File) string {
	entries, err := f.ReadDir(-1)
	if err != nil && !errors.Is(err, unix.ENOENT) { // a removed directory can't be read (IS_DEADDIR)
		return err.Error()
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	sortStrings(names)
	return strings.Join(names, ",")
}
