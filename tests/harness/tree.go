package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Entry is what a tree has under one name.
type Entry struct {
	Mode   uint32 // as in st_mode
	UID    uint32
	GID    uint32
	Size   int64  // of regular files
	Hash   string // of regular files
	Target string // of symbolic links
	Xattrs map[string]string
	Mtime  int64 // in ns
	Nlink  uint64
	Rdev   uint64
	// Group is the first path, in order, that leads to the same inode.
	Group string
	Ino   uint64
}

// Tree is a directory tree by path; "." is its top.
type Tree map[string]Entry

// What a comparison leaves out.
type Omit uint

// Parts of an Entry that a comparison may leave out.
const (
	OmitMtime    Omit = 1 << iota
	OmitDirMtime      // of directories only
	OmitOwner
	OmitXattrs
	OmitLinks // link counts and which names are one file
	OmitModes // all of the mode but type and the owner's execute bit
	OmitDirs  // directories, as git does
	OmitIno   // inode numbers; without it two dumps must be of the same tree
)

// Dump reads the tree below dir.
func Dump(dir string) (Tree, error) {
	d := dumper{root: dir, tree: Tree{}, first: map[[2]uint64]string{}}
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return d.add(path)
	})
	return d.tree, err
}

// MustDump is Dump for tests.
func MustDump(t testing.TB, dir string) Tree {
	t.Helper()
	tree, err := Dump(dir)
	if err != nil {
		t.Fatalf("read tree: %v", err)
	}
	return tree
}

type dumper struct {
	root  string
	tree  Tree
	first map[[2]uint64]string // by device and inode
}

func (d *dumper) add(path string) error {
	rel, err := filepath.Rel(d.root, path)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return fmt.Errorf("lstat %q: %w", rel, err)
	}
	e := Entry{
		Mode: st.Mode, UID: st.Uid, GID: st.Gid, Mtime: st.Mtim.Nano(),
		Nlink: uint64(st.Nlink), Rdev: uint64(st.Rdev), Ino: st.Ino,
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		e.Size, e.Hash, err = hashFile(path)
	case unix.S_IFLNK:
		e.Target, err = os.Readlink(path)
	}
	if err != nil {
		return fmt.Errorf("read %q: %w", rel, err)
	}
	if e.Xattrs, err = xattrs(path); err != nil {
		return fmt.Errorf("read extended attributes of %q: %w", rel, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		key := [2]uint64{uint64(st.Dev), st.Ino}
		if d.first[key] == "" {
			d.first[key] = rel
		}
		e.Group = d.first[key]
	}
	d.tree[rel] = e
	return nil
}

func hashFile(path string) (int64, string, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return n, hex.EncodeToString(h.Sum(nil)[:12]), err
}

// xattrs returns the attributes in the user name space, the only one that a
// workspace and its source share for certain.
func xattrs(path string) (map[string]string, error) {
	buf := make([]byte, 64<<10)
	n, err := unix.Llistxattr(path, buf)
	if err == unix.ENOTSUP {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all map[string]string
	for name := range strings.SplitSeq(string(buf[:n]), "\x00") {
		if !strings.HasPrefix(name, "user.") {
			continue
		}
		value := make([]byte, 64<<10)
		k, err := unix.Lgetxattr(path, name, value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if all == nil {
			all = map[string]string{}
		}
		all[name] = string(value[:k])
	}
	return all, nil
}

// Differences says in what got differs from want, at most 20 lines.
func Differences(got, want Tree, omit Omit) []string {
	names := slices.Sorted(maps.Keys(want))
	for name := range got {
		if _, ok := want[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var diffs []string
	for _, name := range names {
		g, okG := got[name]
		w, okW := want[name]
		switch {
		case omit.skips(g) || omit.skips(w):
		case !okG:
			diffs = append(diffs, fmt.Sprintf("%q is missing", name))
		case !okW:
			diffs = append(diffs, fmt.Sprintf("%q should not be there", name))
		default:
			diffs = append(diffs, g.differences(w, name, omit)...)
		}
		if len(diffs) > 20 {
			return append(diffs[:20], "...")
		}
	}
	return diffs
}

func (o Omit) skips(e Entry) bool {
	return o&OmitDirs != 0 && e.Mode&unix.S_IFMT == unix.S_IFDIR
}

func (e Entry) differences(w Entry, name string, omit Omit) []string {
	var diffs []string
	check := func(what string, got, want any) {
		if got != want {
			diffs = append(diffs, fmt.Sprintf("%q: %s: got %v, want %v", name, what, got, want))
		}
	}
	isDir := w.Mode&unix.S_IFMT == unix.S_IFDIR
	check("mode", fmt.Sprintf("%o", e.Mode&omit.modeBits(w)), fmt.Sprintf("%o", w.Mode&omit.modeBits(w)))
	check("size", e.Size, w.Size)
	check("content", e.Hash, w.Hash)
	check("target", e.Target, w.Target)
	check("device", e.Rdev, w.Rdev)
	if omit&OmitOwner == 0 {
		check("owner", [2]uint32{e.UID, e.GID}, [2]uint32{w.UID, w.GID})
	}
	if omit&OmitMtime == 0 && (omit&OmitDirMtime == 0 || !isDir) {
		check("mtime", e.Mtime, w.Mtime)
	}
	if omit&OmitXattrs == 0 && !maps.Equal(e.Xattrs, w.Xattrs) {
		check("xattrs", fmt.Sprintf("%q", e.Xattrs), fmt.Sprintf("%q", w.Xattrs))
	}
	if omit&OmitLinks == 0 && !isDir {
		check("link count", e.Nlink, w.Nlink)
		check("first name of the file", e.Group, w.Group)
	}
	if omit&OmitIno == 0 {
		check("inode number", e.Ino, w.Ino)
	}
	return diffs
}

// modeBits returns the bits of the mode that count.
func (o Omit) modeBits(w Entry) uint32 {
	switch {
	case o&OmitModes == 0:
		return ^uint32(0)
	case w.Mode&unix.S_IFMT == unix.S_IFREG:
		return unix.S_IFMT | 0o100
	}
	return unix.S_IFMT
}

// Same fails the test unless the trees are equal.
func Same(t testing.TB, what string, got, want Tree, omit Omit) {
	t.Helper()
	if diffs := Differences(got, want, omit); len(diffs) > 0 {
		t.Errorf("%s:\n\t%s", what, strings.Join(diffs, "\n\t"))
	}
}
