package dev

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os"
	osexec "os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A test's daemon is a process of its own: the test binary, started again with
// the mount point in the environment.
const (
	envDir    = "WINKFS_TEST_DIR"
	envMethod = "WINKFS_TEST_METHOD"
	envOpts   = "WINKFS_TEST_OPTS"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(envDir); dir != "" {
		os.Exit(daemonMain(dir))
	}
	os.Exit(m.Run())
}

// daemonMain mounts, says "ready" with what the mount is like, and serves until
// it is unmounted. SIGTERM unmounts.
func daemonMain(dir string) int {
	method, _ := strconv.Atoi(os.Getenv(envMethod))
	opts := os.Getenv(envOpts)
	if strings.Contains(opts, "heal") {
		if _, err := Heal(dir); err != nil {
			fmt.Println("error:", err)
			return 1
		}
	}
	fsys := newMemfs()
	c, err := Mount(Config{
		Dir: dir, ID: "test", Method: Method(method), Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		ReadOnly: strings.Contains(opts, "ro"), AllowOther: strings.Contains(opts, "other"),
	}, fsys)
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	fsys.mu.Lock()
	fsys.conn = c
	fsys.put("control", nil)
	fsys.mu.Unlock()
	term := make(chan os.Signal, 1)
	signal.Notify(term, unix.SIGTERM)
	fmt.Printf("ready caps=%#x idmap=%v degraded=%q init=%d\n", c.caps, c.IDMap(), c.Degraded(), len(c.InitRequest()))
	if strings.Contains(opts, "cat") { // read from inside the namespace
		out, err := osexec.Command("cat", dir+"/hello").Output()
		fmt.Printf("cat: %q %v\n", out, err)
	}
	for {
		select {
		case <-c.Done():
			return 0
		case <-term:
			fmt.Println("unmount:", c.Unmount(false))
		}
	}
}

// daemon is a running test daemon.
type daemon struct {
	t     *testing.T
	dir   string
	cmd   *osexec.Cmd
	out   *bufio.Reader
	ready string
}

// start runs a daemon; how may change its command before it starts.
func start(t *testing.T, dir string, method Method, opts string, how func(*osexec.Cmd)) *daemon {
	t.Helper()
	d := launch(t, dir, method, opts, how)
	if !strings.HasPrefix(d.ready, "ready") {
		t.Fatalf("daemon: %s", d.ready)
	}
	return d
}

// launch is start without the demand that mounting works.
func launch(t *testing.T, dir string, method Method, opts string, how func(*osexec.Cmd)) *daemon {
	t.Helper()
	cmd := osexec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), envDir+"="+dir, fmt.Sprintf("%s=%d", envMethod, method), envOpts+"="+opts)
	cmd.Stderr = os.Stderr
	if how != nil {
		how(cmd)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d := &daemon{t: t, dir: dir, cmd: cmd, out: bufio.NewReader(stdout)}
	t.Cleanup(d.stop)
	d.ready = d.line()
	return d
}

func (d *daemon) line() string {
	d.t.Helper()
	s, err := d.out.ReadString('\n')
	if err != nil && err != io.EOF {
		d.t.Fatalf("read from daemon: %v", err)
	}
	return strings.TrimSpace(s)
}

// kill ends the daemon without any chance to unmount.
func (d *daemon) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

func (d *daemon) stop() {
	d.kill()
	_ = unix.Unmount(d.dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
}

// waitExit waits for the daemon to end by itself.
func (d *daemon) waitExit() error {
	ended := make(chan error, 1)
	go func() { ended <- d.cmd.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(10 * time.Second):
		return fmt.Errorf("the daemon did not end")
	}
}

// need skips the test where the machine lacks something, or fails if
// WINKFS_REQUIRE names it.
func need(t *testing.T, what string, have bool) {
	t.Helper()
	if have {
		return
	}
	for _, r := range strings.Split(os.Getenv("WINKFS_REQUIRE"), ",") {
		if r == what {
			t.Fatalf("WINKFS_REQUIRE names %s, which this machine lacks", what)
		}
	}
	t.Skipf("needs %s", what)
}

func needFuse(t *testing.T) {
	t.Helper()
	need(t, "fuse", canMount() && unix.Access(devicePath, unix.R_OK|unix.W_OK) == nil)
}

// needUserns skips where root can't make a user namespace.
func needUserns(t *testing.T) {
	t.Helper()
	cmd := osexec.Command("true")
	cmd.SysProcAttr = asNamespaceRoot()
	need(t, "userns", cmd.Run() == nil)
}

// asNamespaceRoot makes a process root of a user namespace of its own, in which
// it is nobody outside.
func asNamespaceRoot() *syscall.SysProcAttr {
	nobody := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 65534, Size: 1}}
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: nobody, GidMappings: nobody,
		Credential: &syscall.Credential{NoSetGroups: true},
	}
}

// asUser runs the daemon as nobody, and where users may not open the device
// lets them for the time of the test, as distributions do.
func asUser(t *testing.T) func(*osexec.Cmd) {
	t.Helper()
	need(t, "fuse", os.Getuid() == 0)
	openToUsers(t)
	return func(c *osexec.Cmd) {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
}

func openToUsers(t *testing.T) {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(devicePath, &st); err != nil {
		need(t, "fuse", false)
	}
	if st.Mode&0o006 == 0o006 {
		return
	}
	if err := os.Chmod(devicePath, 0o666); err != nil {
		need(t, "fuse", false)
	}
	t.Cleanup(func() { _ = os.Chmod(devicePath, os.FileMode(st.Mode&0o777)) })
}

// userDir makes a mount point that nobody may mount on.
func userDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "winkfs-dev-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	return dir
}
