package exec

import (
	"bytes"
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// testUID is Debian's daemon: fusermount3 serves only users that have a name.
const testUID = 1

func TestMain(m *testing.M) {
	Main()
	if src, mnt, ok := strings.Cut(os.Getenv("WINKFS_TEST_FUSE"), "\n"); ok {
		if err := serveLoopback(src, mnt); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	os.Exit(m.Run())
}

var probed = sync.OnceValue(func() Host { return Probe() })

// needUserNS skips where there are no user namespaces, and fails there when
// WINKFS_REQUIRE says that there must be.
func needUserNS(t *testing.T) Host {
	t.Helper()
	h := probed()
	err := checkLayers(h)
	if err == nil {
		return h
	}
	if slices.Contains(strings.Split(os.Getenv("WINKFS_REQUIRE"), ","), "userns") {
		t.Fatalf("WINKFS_REQUIRE names userns: %v", err)
	}
	t.Skipf("no user namespaces: %v", err)
	return h
}

// TestAsUser runs the tests of this package that run commands once more, as an
// ordinary user, when they run as root.
func TestAsUser(t *testing.T) {
	again(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: testUID, Gid: testUID}})
}

// TestAsMappedRoot runs them as a daemon that a user has started in a user
// namespace of its own, where it shows as root.
func TestAsMappedRoot(t *testing.T) {
	again(t, &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: testUID, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: testUID, Size: 1}},
		Credential:  &syscall.Credential{Uid: 0, Gid: 0, NoSetGroups: true},
	})
}

func again(t *testing.T, attr *syscall.SysProcAttr) {
	t.Helper()
	if h := needUserNS(t); !h.Root() {
		t.Skip("only root can become someone else")
	}
	tmp, err := os.MkdirTemp("", "winkfs-exec-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	if err := os.Chown(tmp, testUID, testUID); err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.run=^TestRun|^TestAttack", "-test.timeout=120s"}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	// The test binary lies in a directory that only root may enter.
	cmd := osexec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "HOME="+tmp)
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("again: %v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// workspace makes a directory that stands in for the mount.
func workspace(t *testing.T) Spec {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ws")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	return Spec{
		Mount: dir, MountDev: st.Dev, MountType: fs.Type, At: []string{"/workspace"},
		Owner: Owner{st.Uid, st.Gid}, Timeout: 30 * time.Second,
	}
}

// result is a finished run.
type result struct {
	Status
	out, errout string
	err         error
}

func runSpec(t *testing.T, s Spec) result {
	t.Helper()
	return runContext(t, context.Background(), s)
}

func runContext(t *testing.T, ctx context.Context, s Spec) result {
	t.Helper()
	var out, errout bytes.Buffer
	if s.Stdout == nil {
		s.Stdout = &out
	}
	if s.Stderr == nil {
		s.Stderr = &errout
	}
	p, err := NewPlan(s, needUserNS(t))
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	st, err := Run(ctx, p)
	return result{Status: st, out: out.String(), errout: errout.String(), err: err}
}
