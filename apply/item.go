package apply

import (
	"io"

	"golang.org/x/sys/unix"
)

// Item is one reviewed change of one path.
type Item struct {
	Source uint32 // key into Options.Roots
	Path   string // below the source's root; not empty, no "." or ".." components
	// Base is what the host had when the workspace was based on it. For a path
	// below a directory that moves it is the fingerprint of the file at its
	// place before the move.
	Base Fingerprint
	Want Want
	// MoveFrom is the path of a directory or file on the host that moves to Path
	// unchanged, by a rename. Base is its fingerprint there. Items below Path
	// change what it holds and are carried out after the move.
	MoveFrom string
	// At is the path on the host, before anything moves, of what Base describes.
	// Empty means Path, seen through the moves: below a moved directory it is the
	// place that the file moves away from. It has to be given for an absent item
	// that lay below the name that something else moves onto.
	At string
}

// Fingerprint is a file's identity and state. The zero value is "did not exist".
type Fingerprint struct {
	Exists bool   `json:"exists,omitempty"`
	Ino    uint64 `json:"ino,omitempty"`
	Mode   uint32 `json:"mode,omitempty"` // st_mode
	Size   int64  `json:"size,omitempty"`
	Mtime  int64  `json:"mtime,omitempty"` // nanoseconds since 1970
	Ctime  int64  `json:"ctime,omitempty"`
	Digest []byte `json:"digest,omitempty"` // SHA-256 of a regular file's contents, when known
	Target string `json:"-"`                // of a symbolic link, when known
}

// Want is what the path shall be. The zero value is "absent".
type Want struct {
	Mode   uint32 // st_mode: a regular file, directory or symbolic link; 0 = absent
	Size   int64
	Target string            // of a symbolic link
	Mtime  int64             // nanoseconds since 1970; 0 = leave
	Xattrs map[string]string // the attributes that are Carried, all of them
	// NoACL says that the file has no access list because it was taken away. Without
	// it, a file that replaces another keeps the other's, as it keeps its owner.
	NoACL bool
	// Open returns the contents of a regular file. nil means that they are those
	// of the base and only metadata changes, or, for a file that is new, that it
	// is empty. A reader that is a Sparse too is asked for its holes.
	Open func() (io.ReadCloser, error)
}

// Sparse is a reader of contents that knows where its holes are.
type Sparse interface {
	io.ReaderAt
	// NextData returns the first range of data at or behind off. start == end
	// means that there is none.
	NextData(off int64) (start, end int64, err error)
}

func (w *Want) kind() uint32 { return w.Mode & unix.S_IFMT }

func (f *Fingerprint) kind() uint32 { return f.Mode & unix.S_IFMT }

func (w *Want) absent() bool { return w.Mode == 0 }
