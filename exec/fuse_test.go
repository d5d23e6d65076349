package exec

import (
	"bufio"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// serveLoopback is the body of the subprocess that stands in for the daemon's
// mount: a process that reads its own mount can deadlock.
func serveLoopback(src, mnt string) error {
	root, err := fusefs.NewLoopbackRoot(src)
	if err != nil {
		return err
	}
	asRoot := os.Geteuid() == 0
	server, err := fusefs.Mount(mnt, root, &fusefs.Options{MountOptions: fuse.MountOptions{
		AllowOther: asRoot, IDMappedMount: asRoot, DirectMount: asRoot, FsName: "loopback",
		Options: []string{"default_permissions"},
	}})
	if err != nil {
		return err
	}
	fmt.Println("mounted")
	server.Wait()
	return nil
}

// fuseWorkspace makes a workspace on a real FUSE mount.
func fuseWorkspace(t *testing.T) (s Spec, src string) {
	t.Helper()
	s = workspace(t)
	src = filepath.Join(t.TempDir(), "src")
	must(t, os.Mkdir(src, 0o755))
	must(t, os.WriteFile(filepath.Join(src, "file"), []byte("one\n"), 0o644))
	must(t, os.Mkdir(filepath.Join(src, "dir"), 0o755))
	giveTo(t, src, s.Owner)
	cmd := osexec.Command("/proc/self/exe", "-test.run=^$")
	cmd.Env = append(os.Environ(), "WINKFS_TEST_FUSE="+src+"\n"+s.Mount)
	out, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = unix.Unmount(s.Mount, unix.MNT_DETACH)
		_ = osexec.Command("fusermount3", "-uz", s.Mount).Run()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "mounted\n" {
		if slices.Contains(strings.Split(os.Getenv("WINKFS_REQUIRE"), ","), "fuse") {
			t.Fatalf("WINKFS_REQUIRE names fuse: %q, %v", line, err)
		}
		t.Skipf("no FUSE mount: %q, %v", line, err)
	}
	var st unix.Stat_t
	must(t, unix.Stat(s.Mount, &st))
	s.MountDev, s.MountType = st.Dev, 0
	return s, src
}

func TestRunOnFuse(t *testing.T) {
	if !probed().Initial {
		t.Skip("a mount in a user namespace of its own is tested with the daemon")
	}
	s, src := fuseWorkspace(t)
	s.At = []string{"/workspace", src}
	s.Command = []string{"sh", "-ec", "/bin/pwd; stat -f -c %T .; echo two >>file; mkdir d; echo x >d/new; mv dir moved; chmod 600 file; rm -f absent; stat -c %u file; cat " + src + "/d/new"}
	r := runSpec(t, s)
	if r.err != nil || r.ExitCode != 0 {
		t.Fatalf("got %+v, %v: %s", r.Status, r.err, r.errout)
	}
	if want := fmt.Sprintf("/workspace\nfuseblk\n%d\nx\n", shown(s.Owner.UID)); strings.Replace(r.out, "fuse\n", "fuseblk\n", 1) != want {
		t.Errorf("got %q, want %q", r.out, want)
	}
	for name, mode := range map[string]uint32{"file": 0o600, "d/new": 0o644, "moved": 0o755} {
		var st unix.Stat_t
		must(t, unix.Stat(filepath.Join(src, name), &st))
		if st.Uid != s.Owner.UID || st.Mode&0o777 != mode {
			t.Errorf("%s belongs to %d and has mode %o, want %d and %o", name, st.Uid, st.Mode&0o777, s.Owner.UID, mode)
		}
	}
}

// TestRunRefusesPlainDirectory wants nothing but the FUSE mount accepted when
// the workspace has gone from its mount point.
func TestRunRefusesPlainDirectory(t *testing.T) {
	s := workspace(t)
	s.MountType, s.Command = 0, []string{"true"}
	if r := runSpec(t, s); r.ExitCode != ExitSandbox || r.err == nil || !strings.Contains(r.err.Error(), "not the workspace's mount") {
		t.Errorf("got %+v, %v", r.Status, r.err)
	}
}
