package diffview

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// gitMode returns the mode that git would store.
func gitMode(f *File) string {
	switch {
	case isSymlink(f):
		return "120000"
	case isDir(f):
		return "040000"
	case f.Mode&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// fullMode returns the mode for the entries: of what git tracks with the type
// as git writes it, but with all permission bits.
func fullMode(f *File) string {
	if f == nil {
		return ""
	}
	if isSymlink(f) {
		return "120000"
	}
	return fmt.Sprintf("%06o", f.Mode)
}

// exact reports whether git's mode says all that the file's does.
func exact(f *File) bool {
	perm := f.Mode &^ unix.S_IFMT
	return isSymlink(f) || perm == 0o644 || perm == 0o755
}
