package apply

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// fact is what was found at a path. Its encoding is part of the intent file.
type fact struct {
	Ino    uint64  `json:"ino"`
	Dev    uint64  `json:"dev"`
	Mode   uint32  `json:"mode"`
	UID    uint32  `json:"uid"`
	GID    uint32  `json:"gid"`
	Nlink  uint64  `json:"nlink"`
	Size   int64   `json:"size"`
	Mtime  int64   `json:"mtime"`
	Ctime  int64   `json:"ctime"`
	Target []byte  `json:"target,omitempty"`
	Xattrs []xattr `json:"xattrs,omitempty"` // of files and directories, as far as they are carried
	ACL    []byte  `json:"acl,omitempty"`    // system.posix_acl_access
}

type xattr struct {
	Name  []byte `json:"name"`
	Value []byte `json:"value"`
}

// Names of POSIX access control lists (acl(5)).
const (
	aclName        = "system.posix_acl_access"
	defaultACLName = "system.posix_acl_default"
)

// Carried reports whether apply carries an extended attribute: those of user.*
// and access control lists.
func Carried(name string) bool {
	return strings.HasPrefix(name, "user.") || isACL(name)
}

func isACL(name string) bool { return name == aclName || name == defaultACLName }

func (f *fact) kind() uint32 { return f.Mode & unix.S_IFMT }

// same reports whether g is the inode that f was taken of, with the same
// contents and mode as far as its times tell. The ctime does not count, since
// renaming changes it.
func (f *fact) same(g *fact) bool {
	if g == nil || f.Ino != g.Ino || f.Mode != g.Mode {
		return false
	}
	return f.kind() == unix.S_IFDIR || f.Size == g.Size && f.Mtime == g.Mtime
}

// Fingerprint returns the fact as a fingerprint.
func (f *fact) fingerprint() Fingerprint {
	if f == nil {
		return Fingerprint{}
	}
	return Fingerprint{Exists: true, Ino: f.Ino, Mode: f.Mode, Size: f.Size, Mtime: f.Mtime, Ctime: f.Ctime, Target: string(f.Target)}
}

// factOf looks at what a descriptor, which may be O_PATH, refers to.
func factOf(fd int) (*fact, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("stat: %w", err)
	}
	f := &fact{Ino: st.Ino, Dev: st.Dev, Mode: st.Mode, UID: st.Uid, GID: st.Gid, Nlink: uint64(st.Nlink), Size: st.Size,
		Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano()}
	switch f.kind() {
	case unix.S_IFLNK:
		buf := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(fd, "", buf)
		if err != nil {
			return nil, fmt.Errorf("read link: %w", err)
		}
		f.Target = buf[:n]
	case unix.S_IFREG, unix.S_IFDIR:
		f.Xattrs = carriedXattrs(fd)
		f.ACL, _ = getXattr(fd, aclName)
	}
	return f, nil
}

// procPath names an O_PATH descriptor for the calls that take none.
func procPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// carriedXattrs returns the attributes that are carried, sorted. A file system
// without them has none.
func carriedXattrs(fd int) []xattr {
	n, err := unix.Listxattr(procPath(fd), nil)
	if err != nil || n == 0 {
		return nil
	}
	buf := make([]byte, n+1024)
	if n, err = unix.Listxattr(procPath(fd), buf); err != nil {
		return nil
	}
	var out []xattr
	for name := range strings.SplitSeq(string(buf[:n]), "\x00") {
		if !Carried(name) {
			continue
		}
		if v, err := getXattr(fd, name); err == nil {
			out = append(out, xattr{[]byte(name), v})
		}
	}
	slices.SortFunc(out, func(a, b xattr) int { return bytes.Compare(a.Name, b.Name) })
	return out
}

func getXattr(fd int, name string) ([]byte, error) {
	buf := make([]byte, 64<<10)
	n, err := unix.Getxattr(procPath(fd), name, buf)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(buf[:n]), nil
}

// xattrsOf returns the attributes in the order and form of a fact.
func xattrsOf(m map[string]string) []xattr {
	var out []xattr
	for k, v := range m {
		if Carried(k) {
			out = append(out, xattr{[]byte(k), []byte(v)})
		}
	}
	slices.SortFunc(out, func(a, b xattr) int { return bytes.Compare(a.Name, b.Name) })
	return out
}

func equalXattrs(a, b []xattr) bool {
	return slices.EqualFunc(a, b, func(x, y xattr) bool {
		return bytes.Equal(x.Name, y.Name) && bytes.Equal(x.Value, y.Value)
	})
}

// openRegular opens the regular file at path for reading, if it is the one that
// the fact was taken of. It never blocks and never opens anything else.
func (h *host) openRegular(source uint32, path string, f *fact) (*os.File, error) {
	p, err := h.at(source, path)
	if err != nil {
		return nil, err
	}
	defer p.close()
	return p.openRegular(path, f)
}

func (p place) openRegular(path string, f *fact) (*os.File, error) {
	fd, err := openBelow(p.dir, p.name, unix.O_PATH)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", path, err)
	}
	defer unix.Close(fd)
	now, err := factOf(fd)
	if err != nil {
		return nil, err
	}
	if !f.same(now) || f.kind() != unix.S_IFREG {
		return nil, &drift{path, "changed on the host while it was read"}
	}
	// The descriptor is known to be the regular file: opening it again through
	// /proc can't reach anything else.
	r, err := unix.Open(procPath(fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", path, err)
	}
	return os.NewFile(uintptr(r), path), nil
}

// digest returns the SHA-256 of a file's contents on the host.
func (h *host) digest(source uint32, path string, f *fact) ([]byte, error) {
	r, err := h.openRegular(source, path, f)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return nil, fmt.Errorf("read %q: %w", path, err)
	}
	return sum.Sum(nil), nil
}

// drift is a conflict found at one path.
type drift struct{ path, reason string }

// Error implements error.
func (d *drift) Error() string { return fmt.Sprintf("apply %q: %s", d.path, d.reason) }

// Is makes a drift an ErrConflict.
func (d *drift) Is(err error) bool { return err == ErrConflict }
