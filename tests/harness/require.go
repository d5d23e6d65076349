package harness

import (
	"fmt"
	"os"
	osexec "os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Require skips the test when something that it needs is missing, and fails it
// when WINKFS_REQUIRE names the missing thing. Known are binary (winkfs can be
// built), fuse, userns, and otherwise the name of a program.
func Require(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		err := probe(name)
		if err == nil {
			continue
		}
		if Required(name) {
			t.Fatalf("%s is missing, and WINKFS_REQUIRE names it: %v", name, err)
		}
		t.Skipf("%s is missing: %v", name, err)
	}
}

// Lacking skips the test because of something that the machine can't do, and
// fails it where WINKFS_REQUIRE is set: such a machine must have all that the
// tests need.
func Lacking(t testing.TB, format string, args ...any) {
	t.Helper()
	what := fmt.Sprintf(format, args...)
	if os.Getenv("WINKFS_REQUIRE") != "" {
		t.Fatalf("WINKFS_REQUIRE is set, and this machine lacks what the test needs: %s", what)
	}
	t.Skip(what)
}

// RequireRoot skips the test for ordinary users. CI runs every test as root
// too, so nothing is lost.
func RequireRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only for root")
	}
}

// Required reports whether WINKFS_REQUIRE names the thing.
func Required(name string) bool {
	return slices.Contains(strings.Split(os.Getenv("WINKFS_REQUIRE"), ","), name)
}

func probe(name string) error {
	switch name {
	case "binary":
		_, err := Binary()
		return err
	case "fuse":
		return probeFuse()
	case "userns":
		return probeUserns()
	case "loop":
		return unix.Access("/dev/loop-control", unix.R_OK|unix.W_OK)
	}
	_, err := osexec.LookPath(name)
	return err
}

var probeFuse = sync.OnceValue(func() error {
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	f.Close()
	if os.Geteuid() == 0 {
		return nil
	}
	_, err = osexec.LookPath("fusermount3")
	return err
})

var probeUserns = sync.OnceValue(func() error {
	cmd := osexec.Command("/proc/self/exe", "-test.run=^$")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
	}
	// The child must not run its tests' second pass, nor any test.
	cmd.Env = append(os.Environ(), "WINKFS_TEST_USER=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("create user namespace: %w %s", err, out)
	}
	return nil
})
