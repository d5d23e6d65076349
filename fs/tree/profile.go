package tree

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Profile says what the files of a workspace may be.
type Profile uint8

const (
	// ProfileDefault refuses what gives privileges to whoever uses a file: device
	// nodes, set-id bits on anything but directories, and extended attributes
	// that mean something to the kernel or to another overlay. What the lower has
	// of these shows and survives copy-up.
	ProfileDefault Profile = iota
	// ProfileFull allows all that a file system can keep. The kernel has checked
	// by then that the caller may.
	ProfileFull
)

func (p Profile) String() string {
	if p == ProfileFull {
		return "posix-full"
	}
	return "default"
}

// setID are the bits that let a program run as somebody else.
const setID = unix.S_ISUID | unix.S_ISGID

// checkMode refuses set-id bits that the profile does not allow and the file,
// whose mode was old, does not have already. n is the file, or the directory
// that it shall have the name in.
func (t *Tree) checkMode(n *node, name string, old, mode uint32) error {
	dir := old&unix.S_IFMT == unix.S_IFDIR
	if t.profile == ProfileFull || dir || mode&^old&setID == 0 {
		return nil
	}
	return t.forbid(n, name, fmt.Sprintf("set-id bits can't be set in a workspace; mode %04o is allowed", mode&0o7777&^setID))
}

// checkDevice refuses device nodes unless the profile allows them.
func (t *Tree) checkDevice(p *node, name string, mode uint32) error {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG, unix.S_IFIFO, unix.S_IFSOCK:
		return nil
	case unix.S_IFCHR, unix.S_IFBLK:
		if t.profile == ProfileFull {
			return nil
		}
		return t.forbid(p, name, "device nodes can't be made in a workspace; files, directories, FIFOs and sockets can")
	}
	return ErrInvalid
}

// checkXattr refuses changes of extended attributes by their names. Those of
// trusted.* and security.* change what the kernel does with a file, and
// *.overlay.* would be taken for its own by another overlay.
func (t *Tree) checkXattr(n *node, name string) error {
	if len(name) > maxXattrName {
		return ErrRange
	}
	space, rest, _ := strings.Cut(name, ".")
	switch {
	case isACL(name) && n.mode != unix.S_IFLNK:
		return nil
	case knownSpace(name) && rest == "":
		return ErrInvalid
	}
	switch space {
	case "user":
		if !n.isReg() && !n.isDir() {
			return ErrNotPermitted // xattr(7): user.* is for files and directories
		}
	case "trusted", "security":
		if t.profile != ProfileFull {
			return t.forbidXattr(n, name)
		}
	default:
		return ErrNotSupported
	}
	if t.profile != ProfileFull && strings.Contains(name, ".overlay.") {
		return t.forbidXattr(n, name)
	}
	return nil
}

func (t *Tree) forbidXattr(n *node, name string) error {
	return t.forbid(n, "", fmt.Sprintf("the extended attribute %q can't be changed in a workspace; user.* can", name))
}
