package diffview

import (
	"io"
	"strings"

	"golang.org/x/sys/unix"
)

// MaxText is the size in bytes from which a file's contents are not compared
// line by line: it is shown as binary.
const MaxText = 8 << 20

// File is one side of a change.
type File struct {
	Path   string // workspace-relative, without a leading slash
	Mode   uint32 // st_mode, file type included
	Size   int64
	Target string            // of a symbolic link
	Xattrs map[string]string // nil = none
	UID    uint32
	GID    uint32
	Mtime  int64 // nanoseconds since 1970; 0 = not known
	// Open returns the bytes of a regular file from its beginning. It may be
	// called several times and must give the same bytes each time. nil means
	// that the file is empty.
	Open func() (io.ReadCloser, error)
}

// Change is one changed node. A nil side means that the node is absent there;
// sides with different paths are a rename.
type Change struct {
	Old, New *File
	Exec     []uint64 // the commands that made the change, ascending
}

// Options choose how Patch and Stat print. The zero value prints what `git
// apply` takes, with binary contents named but not included.
type Options struct {
	Binary   bool // include binary contents (GIT binary patch)
	Color    bool // colour for a terminal; implies Terminal
	Terminal bool // escape control characters; the result is not a patch
	Width    int  // columns for Stat; 0 = 80
}

func (o Options) escapes() bool { return o.Color || o.Terminal }

// Status is a change's letter: A, M, D, R or T as in `git diff --name-status`.
type Status string

// The letters of Status.
const (
	Added       Status = "A"
	Modified    Status = "M"
	Deleted     Status = "D"
	Renamed     Status = "R"
	TypeChanged Status = "T"
)

// Status returns the change's letter. A rename that also changes the type has
// no letter in git and counts as TypeChanged.
func (c *Change) Status() Status {
	switch {
	case c.Old == nil:
		return Added
	case c.New == nil:
		return Deleted
	case kind(c.Old) != kind(c.New):
		return TypeChanged
	case c.Old.Path != c.New.Path:
		return Renamed
	}
	return Modified
}

// Path returns the path that the change is listed under: the new one, or the
// old one of a deletion.
func (c *Change) Path() string {
	if c.New != nil {
		return c.New.Path
	}
	if c.Old != nil {
		return c.Old.Path
	}
	return ""
}

func kind(f *File) uint32 {
	if f == nil {
		return 0
	}
	return f.Mode & unix.S_IFMT
}

func isRegular(f *File) bool { return kind(f) == unix.S_IFREG }
func isSymlink(f *File) bool { return kind(f) == unix.S_IFLNK }
func isDir(f *File) bool     { return kind(f) == unix.S_IFDIR }

// tracked reports whether git can hold the file: a regular file or a symbolic
// link.
func tracked(f *File) bool { return isRegular(f) || isSymlink(f) }

// under reports whether path lies below dir.
func under(path, dir string) bool {
	return len(path) > len(dir) && path[len(dir)] == '/' && strings.HasPrefix(path, dir)
}
