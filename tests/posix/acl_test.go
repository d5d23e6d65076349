package posix

import (
	"encoding/binary"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
)

var aclCases = map[string]func(t *testing.T, dir string){
	"ChmodAndACL":   chmodAndACL,
	"MinimalACL":    minimalACL,
	"DefaultACL":    defaultACL,
	"ACLDecides":    aclDecides,
	"RemoveACL":     removeACL,
	"ACLErrors":     aclErrors,
	"TrustedHidden": trustedHidden,
}

const (
	accessName  = "system.posix_acl_access"
	defaultName = "system.posix_acl_default"
)

// ace is an entry of an ACL.
type ace struct {
	tag, perm uint16
	id        uint32
}

const noACLID = ^uint32(0)

// Entries that every ACL has, with a mask.
func aclOf(user, group, mask, other uint16, named ...ace) []ace {
	list := []ace{{1, user, noACLID}}
	for _, e := range named {
		if e.tag == 2 {
			list = append(list, e)
		}
	}
	list = append(list, ace{4, group, noACLID})
	for _, e := range named {
		if e.tag == 8 {
			list = append(list, e)
		}
	}
	return append(list, ace{0x10, mask, noACLID}, ace{0x20, other, noACLID})
}

func aclValue(list []ace) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range list {
		b = binary.LittleEndian.AppendUint16(b, e.tag)
		b = binary.LittleEndian.AppendUint16(b, e.perm)
		b = binary.LittleEndian.AppendUint32(b, e.id)
	}
	return b
}

func setACL(t testing.TB, path, name string, list []ace) {
	t.Helper()
	err := unix.Setxattr(path, name, aclValue(list), 0)
	if err == unix.EOPNOTSUPP {
		harness.Lacking(t, "a file system with ACLs")
	}
	check(t, err)
}

func getACL(t testing.TB, path, name string) string {
	t.Helper()
	buf := make([]byte, 1000)
	n, err := unix.Getxattr(path, name, buf)
	if err == unix.ENODATA {
		return ""
	}
	check(t, err)
	return string(buf[:n])
}

func chmodAndACL(t *testing.T, dir string) {
	put(t, dir+"/f", "")
	named := ace{2, 6, 12345}
	setACL(t, dir+"/f", accessName, aclOf(6, 4, 7, 0, named))
	equal(t, "mode has the mask", stat(t, dir+"/f").Mode&0o777, 0o670)
	before := timesOf(t, dir+"/f")
	tick()
	check(t, unix.Chmod(dir+"/f", 0o641))
	equal(t, "ACL after chmod", getACL(t, dir+"/f", accessName), string(aclValue(aclOf(6, 4, 4, 1, named))))
	equal(t, "ctime moves", timesOf(t, dir+"/f").ctime > before.ctime, true)
	check(t, os.Rename(dir+"/f", dir+"/g"))
	equal(t, "ACL after rename", getACL(t, dir+"/g", accessName), string(aclValue(aclOf(6, 4, 4, 1, named))))
}

func minimalACL(t *testing.T, dir string) {
	put(t, dir+"/f", "")
	setACL(t, dir+"/f", accessName, []ace{{1, 7, noACLID}, {4, 5, noACLID}, {0x20, 1, noACLID}})
	equal(t, "mode", stat(t, dir+"/f").Mode&0o777, 0o751)
	equal(t, "ACL that says no more than the mode", getACL(t, dir+"/f", accessName), "")
}

func defaultACL(t *testing.T, dir string) {
	defer unix.Umask(unix.Umask(0o077))
	d := dir + "/d"
	check(t, os.Mkdir(d, 0o755))
	named := ace{8, 5, 54321}
	list := aclOf(7, 5, 7, 4, named)
	setACL(t, d, defaultName, list)
	equal(t, "mode of the directory", stat(t, d).Mode&0o777, 0o755&^0o077)
	fd, err := unix.Open(d+"/f", unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o666)
	check(t, err)
	unix.Close(fd)
	equal(t, "mode of a file", stat(t, d+"/f").Mode&0o777, 0o664) // not the umask's business
	equal(t, "ACL of a file", getACL(t, d+"/f", accessName), string(aclValue(aclOf(6, 5, 6, 4, named))))
	check(t, unix.Mkdir(d+"/sub", 0o700))
	equal(t, "mode of a directory", stat(t, d+"/sub").Mode&0o777, 0o700)
	equal(t, "default ACL of a directory", getACL(t, d+"/sub", defaultName), string(aclValue(list)))
	equal(t, "ACL of a directory", getACL(t, d+"/sub", accessName), string(aclValue(aclOf(7, 5, 0, 0, named))))
	check(t, unix.Mkfifo(d+"/p", 0o666))
	equal(t, "mode of a FIFO", stat(t, d+"/p").Mode&0o777, 0o664)
	check(t, os.Symlink("x", d+"/l"))
	tmp := tmpfile(t, d, 0)
	var st unix.Stat_t
	check(t, unix.Fstat(tmp, &st))
	equal(t, "mode of a temporary file", st.Mode&0o777, 0o640)
}

// aclDecides checks that others get in by a named entry and no further than the
// mask.
func aclDecides(t *testing.T, dir string) {
	harness.RequireRoot(t) // to be two users
	check(t, os.Chmod(dir, 0o755))
	put(t, dir+"/f", "x")
	user := caller{"user", userID, userID, nil}
	open := func(flags int) (err error) {
		user.as(func() { err = openErr(dir+"/f", flags) })
		return err
	}
	setACL(t, dir+"/f", accessName, aclOf(6, 0, 4, 0, ace{2, 6, userID}))
	check(t, open(unix.O_RDONLY))
	fails(t, "beyond the mask", open(unix.O_WRONLY), unix.EACCES)
	check(t, unix.Chmod(dir+"/f", 0o660))
	check(t, open(unix.O_RDWR))
	setACL(t, dir+"/f", accessName, aclOf(6, 6, 6, 6, ace{2, 0, userID}))
	fails(t, "shut out by name", open(unix.O_RDONLY), unix.EACCES)
	setACL(t, dir+"/f", accessName, aclOf(6, 0, 6, 0, ace{8, 6, userID}))
	check(t, open(unix.O_RDWR))
}

func removeACL(t *testing.T, dir string) {
	put(t, dir+"/f", "")
	setACL(t, dir+"/f", accessName, aclOf(6, 4, 6, 0, ace{2, 6, 1}))
	check(t, unix.Removexattr(dir+"/f", accessName))
	equal(t, "ACL", getACL(t, dir+"/f", accessName), "")
	equal(t, "mode keeps the mask", stat(t, dir+"/f").Mode&0o777, 0o660)
	check(t, unix.Removexattr(dir+"/f", accessName)) // nothing there is no error
	check(t, os.Mkdir(dir+"/d", 0o755))
	setACL(t, dir+"/d", defaultName, aclOf(7, 5, 5, 0))
	check(t, unix.Removexattr(dir+"/d", defaultName))
	put(t, dir+"/d/f", "")
	equal(t, "ACL of a file", getACL(t, dir+"/d/f", accessName), "")
}

func aclErrors(t *testing.T, dir string) {
	put(t, dir+"/f", "")
	setACL(t, dir+"/f", accessName, aclOf(6, 4, 4, 4))
	whole := aclValue(aclOf(6, 4, 4, 4))
	fails(t, "cut short", unix.Setxattr(dir+"/f", accessName, whole[:len(whole)-3], 0), unix.EINVAL)
	fails(t, "incomplete", unix.Setxattr(dir+"/f", accessName, whole[:12], 0), unix.EINVAL)
	fails(t, "default of a file", unix.Setxattr(dir+"/f", defaultName, whole, 0), unix.EACCES)
	wrong := append([]byte{9}, whole[1:]...)
	fails(t, "unknown version", unix.Setxattr(dir+"/f", accessName, wrong, 0), unix.EOPNOTSUPP)
}

// trustedHidden checks that attributes of trusted.* are listed to root only.
func trustedHidden(t *testing.T, dir string) {
	harness.RequireRoot(t) // to set one
	put(t, dir+"/f", "")
	check(t, os.Chmod(dir, 0o755))
	if unix.Setxattr(dir+"/f", "trusted.t", []byte("v"), 0) == unix.EPERM {
		return // not in this profile
	}
	check(t, unix.Setxattr(dir+"/f", "user.u", []byte("v"), 0))
	list := func(c caller) (names string) {
		c.as(func() { names = xattrText(dir + "/f") })
		return names
	}
	equal(t, "root's list", list(caller{"root", 0, 0, nil}), "[trusted.t user.u]")
	equal(t, "user's list", list(caller{"user", userID, userID, nil}), "[user.u]")
}

// TestApplyACL carries lists that were set in a mount to the source and back.
func TestApplyACL(t *testing.T) {
	e := harness.New(t)
	lower := e.Dir + "/lower"
	check(t, os.Mkdir(lower, 0o755))
	put(t, lower+"/f", "text")
	put(t, lower+"/g", "text")
	list := aclValue(aclOf(6, 4, 4, 4, ace{2, 6, 1234}))
	if err := unix.Setxattr(lower+"/g", accessName, list, 0); err != nil {
		harness.Lacking(t, "access control lists on the host: %v", err)
	}
	w := e.NewWorkspace("w", lower)
	check(t, unix.Setxattr(w.Mount+"/f", accessName, list, 0))
	check(t, unix.Removexattr(w.Mount+"/g", accessName))
	check(t, os.Mkdir(w.Mount+"/d", 0o755))
	check(t, unix.Setxattr(w.Mount+"/d", defaultName, list, 0))
	w.MustIn("apply", "--yes")
	has := func(when, path, name string, want bool) {
		t.Helper()
		n, err := unix.Getxattr(lower+path, name, make([]byte, 200))
		if got := err == nil && n == len(list); got != want {
			t.Errorf("%s: %s of %s: %d, %v", when, name, path, n, err)
		}
	}
	has("applied", "/f", accessName, true)
	has("applied", "/g", accessName, false)
	has("applied", "/d", defaultName, true)
	equal(t, "mode", stat(t, lower+"/f").Mode&0o777, 0o644)
}
