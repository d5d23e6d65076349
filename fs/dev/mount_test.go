package dev

import (
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// exercise checks that a mount of memfs reads, writes and lists.
func exercise(t *testing.T, dir string) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(dir, "hello"))
	if err != nil || string(got) != "hello world\n" {
		t.Fatalf("read hello: %q, %v", got, err)
	}
	big, err := os.ReadFile(filepath.Join(dir, "big"))
	if err != nil || string(big) != strings.Repeat("0123456789abcdef", 4<<20/16) {
		t.Fatalf("read big: %d bytes, %v", len(big), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "copy"), big, 0o644); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) < 3 {
		t.Fatalf("list: %v, %v", names, err)
	}
}

func TestMountRoot(t *testing.T) {
	needFuse(t)
	dir := t.TempDir()
	d := start(t, dir, MethodAuto, "", nil)
	exercise(t, dir)
	if !strings.Contains(d.ready, "idmap=true") {
		t.Logf("no id map: %s", d.ready)
	}
	e, err := top(dir)
	if err != nil || e == nil {
		t.Fatalf("top: %v, %v", e, err)
	}
	if e.Source != "winkfs:test" || e.Type != FSType || !strings.Contains(e.Options, "nosuid,nodev") {
		t.Errorf("entry %+v", e)
	}
	for _, want := range []string{"default_permissions", "allow_other", "user_id=0"} {
		if !strings.Contains(e.Super, want) {
			t.Errorf("superblock options %q lack %q", e.Super, want)
		}
	}
	if err := Unmount(dir, false); err != nil {
		t.Fatal(err)
	}
	if err := d.waitExit(); err != nil {
		t.Fatalf("daemon after unmount: %v", err)
	}
}

func TestUnmountBusy(t *testing.T) {
	needFuse(t)
	dir := t.TempDir()
	d := start(t, dir, MethodAuto, "", nil)
	f, err := os.Open(filepath.Join(dir, "hello"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Unmount(dir, false); !errors.Is(err, ErrBusy) {
		t.Fatalf("unmount in use: %v", err)
	}
	if err := d.cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := d.line(); !strings.Contains(got, ErrBusy.Error()) {
		t.Fatalf("daemon's own unmount: %q", got)
	}
	if err := Unmount(dir, true); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 5)
	if _, err := f.ReadAt(buf, 0); err != nil || string(buf) != "hello" {
		t.Errorf("read after lazy unmount: %q, %v", buf, err)
	}
	f.Close()
	if err := d.waitExit(); err != nil {
		t.Fatal(err)
	}
	if err := Unmount(dir, false); !errors.Is(err, ErrNotMounted) {
		t.Errorf("unmount twice: %v", err)
	}
}

func TestMountPointInUse(t *testing.T) {
	needFuse(t)
	dir := t.TempDir()
	start(t, dir, MethodAuto, "", nil)
	second := launch(t, dir, MethodAuto, "", nil)
	if !strings.Contains(second.ready, ErrMountPointBusy.Error()) {
		t.Errorf("second mount: %q", second.ready)
	}
	if IsStale(dir) {
		t.Error("a live mount counts as stale")
	}
	if healed, err := Heal(dir); healed || err != nil {
		t.Errorf("heal a live mount: %v, %v", healed, err)
	}
	exercise(t, dir)
}

func TestKilledDaemonIsHealed(t *testing.T) {
	needFuse(t)
	dir := t.TempDir()
	d := start(t, dir, MethodAuto, "", nil)
	f, err := os.Open(filepath.Join(dir, "hello"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := os.Stat(dir); err != nil { // cached by the kernel
		t.Fatal(err)
	}
	d.kill()
	if !IsStale(dir) {
		t.Fatal("not stale after kill -9")
	}
	if late := launch(t, dir, MethodAuto, "", nil); !strings.Contains(late.ready, ErrStale.Error()) {
		t.Errorf("mount on a dead one: %q", late.ready)
	}
	if healed, err := Heal(dir); !healed || err != nil {
		t.Fatalf("heal: %v, %v", healed, err)
	}
	start(t, dir, MethodAuto, "", nil)
	exercise(t, dir)
}

func TestHealLeavesOthersAlone(t *testing.T) {
	needFuse(t)
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
		t.Skipf("mount tmpfs: %v", err)
	}
	defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }()
	if healed, err := Heal(dir); healed || err != nil {
		t.Errorf("heal: %v, %v", healed, err)
	}
	if err := Unmount(dir, false); !errors.Is(err, ErrNotMounted) {
		t.Errorf("unmount tmpfs: %v", err)
	}
	start(t, dir, MethodAuto, "", nil) // above another filesystem's mount
	exercise(t, dir)
}

func TestReadOnly(t *testing.T) {
	needFuse(t)
	dir := t.TempDir()
	start(t, dir, MethodAuto, "ro", nil)
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o644); !errors.Is(err, unix.EROFS) {
		t.Errorf("write: %v", err)
	}
	if e, _ := top(dir); e == nil || !e.ReadOnly() {
		t.Errorf("entry %+v", e)
	}
}

func TestMountAsUser(t *testing.T) {
	needFuse(t)
	if _, err := fusermountPath(); err != nil {
		need(t, "fuse", false)
	}
	dir := userDir(t)
	d := start(t, dir, MethodAuto, "other", asUser(t))
	if !userAllowOther() && !strings.Contains(d.ready, "user_allow_other") {
		t.Errorf("allow_other missing but not in degraded: %s", d.ready)
	}
	e, err := top(dir)
	if err != nil || e == nil || e.Source != "winkfs:test" || e.Type != FSType {
		t.Fatalf("entry %+v, %v", e, err)
	}
	if out, err := userCat(t, filepath.Join(dir, "hello")); err != nil || out != "hello world\n" {
		t.Errorf("cat: %q, %v", out, err)
	}
	if err := d.cmd.Process.Signal(unix.SIGTERM); err != nil { // unmounts by fusermount3
		t.Fatal(err)
	}
	if got := d.line(); got != "unmount: <nil>" {
		t.Errorf("daemon: %q", got)
	}
	if err := d.waitExit(); err != nil {
		t.Fatal(err)
	}
}

// TestHealAsUser: a user takes away the own dead mount by fusermount3.
func TestHealAsUser(t *testing.T) {
	needFuse(t)
	if _, err := fusermountPath(); err != nil {
		need(t, "fuse", false)
	}
	dir, how := userDir(t), asUser(t)
	d := start(t, dir, MethodFusermount, "", how)
	d.kill()
	start(t, dir, MethodFusermount, "heal", how)
	if out, err := userCat(t, filepath.Join(dir, "hello")); err != nil || out != "hello world\n" {
		t.Errorf("cat: %q, %v", out, err)
	}
}

func userCat(t *testing.T, path string) (string, error) {
	t.Helper()
	cmd := osexec.Command("cat", path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.Output()
	return string(out), err
}

func TestUserMayNotOpenDevice(t *testing.T) {
	needFuse(t)
	var st unix.Stat_t
	if unix.Stat(devicePath, &st); st.Mode&0o006 != 0 {
		t.Skip("users may open the device here")
	}
	dir := userDir(t)
	how := func(c *osexec.Cmd) {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	d := launch(t, dir, MethodDirect, "", how)
	if !strings.Contains(d.ready, ErrNoDevice.Error()) || !strings.Contains(d.ready, "chmod 666 /dev/fuse") {
		t.Errorf("mount: %q", d.ready)
	}
}

func TestMountInUserNamespace(t *testing.T) {
	needFuse(t)
	needUserns(t)
	dir := userDir(t)
	openToUsers(t)
	d := start(t, dir, MethodAuto, "other,cat", func(c *osexec.Cmd) { c.SysProcAttr = asNamespaceRoot() })
	if got := d.line(); got != `cat: "hello world\n" <nil>` {
		t.Error(got)
	}
	if e, _ := top(dir); e != nil {
		t.Errorf("the mount shows outside: %+v", e)
	}
	if err := d.cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := d.line(); got != "unmount: <nil>" {
		t.Errorf("daemon: %q", got)
	}
	if err := d.waitExit(); err != nil {
		t.Fatal(err)
	}
}

func TestMountPointErrors(t *testing.T) {
	needFuse(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "missing"), file} {
		if d := launch(t, path, MethodAuto, "", nil); !strings.Contains(d.ready, ErrMountPoint.Error()) {
			t.Errorf("mount on %s: %q", path, d.ready)
		}
	}
}

func TestHostileMountPoint(t *testing.T) {
	needFuse(t)
	dir := filepath.Join(t.TempDir(), "-o a\tb\nc,d\\040 - fuse.winkfs x")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	d := start(t, dir, MethodAuto, "", nil)
	exercise(t, dir)
	if err := Unmount(dir, false); err != nil {
		t.Fatal(err)
	}
	if err := d.waitExit(); err != nil {
		t.Fatal(err)
	}
}
