package fs

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/lower"
	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// The daemon of a test is the test binary itself, started again with these.
const (
	envSource = "WINKFS_TEST_SOURCE"
	envState  = "WINKFS_TEST_STATE"
	envMount  = "WINKFS_TEST_MOUNT"
)

func TestMain(m *testing.M) {
	if os.Getenv(envMount) == "" {
		os.Exit(m.Run())
	}
	if err := daemonMain(); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

// daemonMain serves a workspace on the real tree until it is unmounted.
func daemonMain() error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	t, store, err := openTree(os.Getenv(envSource), os.Getenv(envState))
	if err != nil {
		return err
	}
	m, err := Serve(MountConfig{Dir: os.Getenv(envMount), ID: "test"}, t, log)
	if err != nil {
		return err
	}
	fmt.Println("ready", m.Dev(), m.IDMap(), m.Degraded())
	m.Wait()
	t.Close()
	return store.Close()
}

func openTree(source, state string) (*tree.Tree, *journal.Store, error) {
	store, err := journal.Create(state, journal.Options{})
	if err != nil {
		return nil, nil, err
	}
	fd, err := unix.Open(source, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	low := lower.New(64)
	if _, err := low.Add(fd); err != nil {
		return nil, nil, err
	}
	t, err := tree.New(tree.Config{
		Store: store, State: store.State(), Lower: low, Sources: []tree.Source{{}}, StateDir: state,
	})
	return t, store, err
}

// mountReal mounts a workspace over the files and returns its mount point.
func mountReal(t *testing.T, files map[string]string) string {
	t.Helper()
	if os.Getuid() != 0 || unix.Access("/dev/fuse", unix.R_OK|unix.W_OK) != nil {
		if slices.Contains(strings.Split(os.Getenv("WINKFS_REQUIRE"), ","), "fuse") {
			t.Fatal("WINKFS_REQUIRE names fuse, which this machine lacks")
		}
		t.Skip("needs fuse")
	}
	source, mount := t.TempDir(), t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(source, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := osexec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), envSource+"="+source, envState+"="+filepath.Join(t.TempDir(), "state"), envMount+"="+mount)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Unmount(mount, unix.MNT_DETACH)
		if err := cmd.Wait(); err != nil {
			t.Errorf("daemon: %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "ready") {
		t.Fatalf("daemon: %q, %v", line, err)
	}
	return mount
}

func TestRealTree(t *testing.T) {
	dir := mountReal(t, map[string]string{"a": "lower a", "b": "lower b"})
	at := func(name string) string { return filepath.Join(dir, name) }
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	reads := func(name, want string) {
		t.Helper()
		if got, err := os.ReadFile(at(name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	reads("a", "lower a")
	check(os.WriteFile(at("a"), []byte("up"), 0o644)) // opened with O_TRUNC
	reads("a", "up")
	check(os.Mkdir(at("d"), 0o755))
	check(os.WriteFile(at("d/f"), []byte("f"), 0o600))
	check(os.Rename(at("d"), at("e")))
	reads("e/f", "f")
	check(os.Link(at("e/f"), at("hard")))
	check(os.Symlink("e/f", at("soft")))
	reads("hard", "f")
	reads("soft", "f")
	check(unix.Renameat2(unix.AT_FDCWD, at("a"), unix.AT_FDCWD, at("b"), unix.RENAME_EXCHANGE))
	reads("a", "lower b")
	check(os.Remove(at("b")))
	if _, err := os.Stat(at("b")); !errors.Is(err, unix.ENOENT) {
		t.Errorf("removed: %v", err)
	}
	check(unix.Setxattr(at("a"), "user.k", []byte("v"), 0))
	buf := make([]byte, 16)
	if n, err := unix.Getxattr(at("a"), "user.k", buf); err != nil || string(buf[:n]) != "v" {
		t.Errorf("xattr: %q, %v", buf[:max(n, 0)], err)
	}
	check(unix.Truncate(at("a"), 5))
	reads("a", "lower")
	check(os.Chmod(at("a"), 0o400))
	var names []string
	list, err := os.ReadDir(dir)
	check(err)
	for _, e := range list {
		names = append(names, e.Name())
	}
	if want := []string{"a", "e", "hard", "soft"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
}

func TestRealTreeSpecial(t *testing.T) {
	dir := mountReal(t, nil)
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR, 0o600)
	if err != nil {
		t.Fatalf("O_TMPFILE: %v", err)
	}
	defer unix.Close(fd)
	// Requests of an id-mapped mount carry the owner of new files only.
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Uid != 0 || st.Gid != 0 {
		t.Errorf("owner of the temporary file: %d:%d, %v", st.Uid, st.Gid, err)
	}
	if _, err := unix.Pwrite(fd, []byte("tail"), 1<<20); err != nil {
		t.Fatal(err)
	}
	if off, err := unix.Seek(fd, 0, unix.SEEK_HOLE); err != nil || off != 0 {
		t.Errorf("SEEK_HOLE: %d, %v", off, err)
	}
	if err := unix.Fsync(fd); err != nil {
		t.Error(err)
	}
	name := filepath.Join(dir, "named")
	if err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW); err != nil {
		t.Errorf("linkat: %v", err)
	}
	var stx unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, name, 0, unix.STATX_BTIME, &stx); err != nil || stx.Mask&unix.STATX_BTIME == 0 {
		t.Errorf("statx: %v, mask %#x", err, stx.Mask)
	}
	if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); !errors.Is(err, unix.ENOTTY) {
		t.Errorf("ioctl: %v", err)
	}
	old := unix.Umask(0o027)
	err = os.WriteFile(filepath.Join(dir, "masked"), nil, 0o666)
	unix.Umask(old)
	if fi, serr := os.Stat(filepath.Join(dir, "masked")); err != nil || serr != nil || fi.Mode() != 0o640 {
		t.Errorf("umask: %v, %v, %v", fi, err, serr)
	}
}
