package coherence

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// fixture makes the tree that each edit starts from, below dir. old is a
// directory outside the source.
func fixture(dir, old string) error {
	files := []struct{ name, text string }{
		{"f", "the text of f\n"},
		{"big", string(make([]byte, 300<<10))},
		{"h1", "two names\n"},
		{"out", "a name outside, too\n"},
		{"sub/g", "the text of g\n"},
		{"sub/deep/h", "the text of h\n"},
		{"other/o", "the text of o\n"},
	}
	for _, d := range []string{"sub/deep", "other", "empty"} {
		if err := os.MkdirAll(dir+"/"+d, 0o755); err != nil {
			return err
		}
	}
	for _, f := range files {
		if err := os.WriteFile(dir+"/"+f.name, []byte(f.text), 0o644); err != nil {
			return err
		}
	}
	return first(
		os.Link(dir+"/h1", dir+"/other/h2"),
		os.Link(dir+"/out", old),
		os.Symlink("f", dir+"/l"),
	)
}

// universe names every path that is there before or after an edit.
var universe = []string{
	".", "f", "big", "h1", "out", "sub", "sub/g", "sub/deep", "sub/deep/h", "other", "other/o", "other/h2", "empty", "l",
	"new", "new/x", "new/g", "new/deep", "new/deep/h", "f/x", "sub/x", "sub/deep/x", "empty/x", "other/f", "other/new",
	"other/sub", "other/sub/g", "other/sub/deep", "other/sub/deep/h", "f~",
}

// edit is one thing that a host does. outside is a second name of the file out.
type edit struct {
	name string
	do   func(dir, outside string) error
}

var edits = []edit{
	{"write in place", func(d, _ string) error { return overwrite(d+"/f", 4, "TEXT") }},
	{"append", func(d, _ string) error { return appendTo(d+"/f", "more\n") }},
	{"append to a large file", func(d, _ string) error { return appendTo(d+"/big", "more\n") }},
	{"truncate", func(d, _ string) error { return os.Truncate(d+"/f", 3) }},
	{"truncate and write", func(d, _ string) error { return os.WriteFile(d+"/f", []byte("other text\n"), 0o644) }},
	{"punch a hole", func(d, _ string) error {
		return withFile(d+"/f", func(fd int) error {
			return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 5)
		})
	}},
	{"grow by fallocate", func(d, _ string) error {
		return withFile(d+"/f", func(fd int) error { return unix.Fallocate(fd, 0, 0, 9000) })
	}},
	{"copy_file_range", func(d, _ string) error {
		return withFile(d+"/sub/g", func(from int) error {
			return withFile(d+"/f", func(to int) error {
				_, err := unix.CopyFileRange(from, nil, to, nil, 100, 0)
				return err
			})
		})
	}},
	{"store through a mapping", func(d, _ string) error {
		return withFile(d+"/f", func(fd int) error {
			m, err := unix.Mmap(fd, 0, 8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			if err != nil {
				return err
			}
			copy(m, "mapped")
			return unix.Munmap(m)
		})
	}},
	{"chmod", func(d, _ string) error { return os.Chmod(d+"/f", 0o600) }},
	{"utimes", func(d, _ string) error { return os.Chtimes(d+"/f", time.Unix(5, 6), time.Unix(7, 8)) }},
	{"setxattr", func(d, _ string) error { return unix.Setxattr(d+"/f", "user.k", []byte("v"), 0) }},
	{"replace by rename", func(d, _ string) error { return replace(d+"/f", "replaced\n") }},
	{"replace with a backup", func(d, _ string) error {
		return first(os.Rename(d+"/f", d+"/f~"), os.WriteFile(d+"/f", []byte("saved\n"), 0o644))
	}},
	{"unlink", func(d, _ string) error { return os.Remove(d + "/f") }},
	{"unlink and create", func(d, _ string) error {
		return first(os.Remove(d+"/f"), os.WriteFile(d+"/f", []byte("again\n"), 0o640))
	}},
	{"create", func(d, _ string) error { return os.WriteFile(d+"/new", []byte("new\n"), 0o644) }},
	{"create in a directory not read yet", func(d, _ string) error { return os.WriteFile(d+"/empty/x", []byte("x"), 0o644) }},
	{"mkdir", func(d, _ string) error {
		return first(os.Mkdir(d+"/new", 0o755), os.WriteFile(d+"/new/x", []byte("x"), 0o644))
	}},
	{"symlink", func(d, _ string) error { return os.Symlink("sub", d+"/new") }},
	{"fifo", func(d, _ string) error { return unix.Mkfifo(d+"/new", 0o644) }},
	{"retarget a link", func(d, _ string) error { return first(os.Remove(d+"/l"), os.Symlink("sub/g", d+"/l")) }},
	{"rename a file", func(d, _ string) error { return os.Rename(d+"/f", d+"/new") }},
	{"rename a file there and back", func(d, _ string) error { return first(os.Rename(d+"/f", d+"/new"), os.Rename(d+"/new", d+"/f")) }},
	{"rename a file, then write it", func(d, _ string) error {
		return first(os.Rename(d+"/f", d+"/new"), appendTo(d+"/new", "more\n"))
	}},
	{"move a file", func(d, _ string) error { return os.Rename(d+"/f", d+"/other/f") }},
	{"rename a directory", func(d, _ string) error { return os.Rename(d+"/sub", d+"/new") }},
	{"rename a directory, then write below", func(d, _ string) error {
		return first(os.Rename(d+"/sub", d+"/new"), appendTo(d+"/new/deep/h", "more\n"))
	}},
	{"move a directory", func(d, _ string) error { return os.Rename(d+"/sub", d+"/other/sub") }},
	{"move a directory, then write below", func(d, _ string) error {
		return first(os.Rename(d+"/sub", d+"/other/sub"), appendTo(d+"/other/sub/g", "more\n"))
	}},
	{"exchange a file and a directory", func(d, _ string) error {
		return unix.Renameat2(unix.AT_FDCWD, d+"/f", unix.AT_FDCWD, d+"/sub", unix.RENAME_EXCHANGE)
	}},
	{"exchange two directories", func(d, _ string) error {
		return unix.Renameat2(unix.AT_FDCWD, d+"/other", unix.AT_FDCWD, d+"/sub", unix.RENAME_EXCHANGE)
	}},
	{"move out of the source", func(d, outside string) error { return os.Rename(d+"/sub", outside+"-sub") }},
	{"delete a tree", func(d, _ string) error { return os.RemoveAll(d + "/sub") }},
	{"delete a tree and make it again", func(d, _ string) error {
		return first(os.RemoveAll(d+"/sub"), os.MkdirAll(d+"/sub/deep", 0o755),
			os.WriteFile(d+"/sub/g", []byte("g again\n"), 0o644), os.WriteFile(d+"/sub/deep/x", []byte("x"), 0o644))
	}},
	{"a file becomes a directory", func(d, _ string) error {
		return first(os.Remove(d+"/f"), os.Mkdir(d+"/f", 0o755), os.WriteFile(d+"/f/x", []byte("x"), 0o644))
	}},
	{"a directory becomes a file", func(d, _ string) error {
		return first(os.RemoveAll(d+"/sub"), os.WriteFile(d+"/sub", []byte("a file by now\n"), 0o644))
	}},
	{"chmod a directory", func(d, _ string) error { return os.Chmod(d+"/sub", 0o700) }},
	{"utimes of a directory", func(d, _ string) error { return os.Chtimes(d+"/sub", time.Unix(5, 6), time.Unix(7, 8)) }},
	{"write by another name", func(d, _ string) error { return overwrite(d+"/other/h2", 0, "TWO") }},
	{"chmod by another name", func(d, _ string) error { return os.Chmod(d+"/other/h2", 0o600) }},
	{"unlink another name", func(d, _ string) error { return os.Remove(d + "/other/h2") }},
	{"link", func(d, _ string) error { return os.Link(d+"/f", d+"/new") }},
	{"write by a name outside", func(_, outside string) error { return overwrite(outside, 2, "NAME") }},
	{"chmod by a name outside", func(_, outside string) error { return os.Chmod(outside, 0o600) }},
	{"unlink the name outside", func(_, outside string) error { return os.Remove(outside) }},
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func overwrite(path string, off int64, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(text), off)
	return first(err, f.Close())
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return first(err, f.Close())
}

// replace saves a file as editors and git do.
func replace(path, text string) error {
	return first(os.WriteFile(path+".tmp", []byte(text), 0o644), os.Rename(path+".tmp", path))
}

func withFile(path string, fn func(fd int) error) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return fn(int(f.Fd()))
}
