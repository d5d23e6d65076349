package exec

import (
	"errors"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/syndtr/gocapability/capability"
	"golang.org/x/sys/unix"
)

// TestAttack runs TestInside in a sandbox, with what it shall try to reach.
func TestAttack(t *testing.T) {
	s := workspace(t)
	copyFile(t, "/proc/self/exe", filepath.Join(s.Mount, "attack"))
	giveTo(t, s.Mount, s.Owner)
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte("x"), 0o644))
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = tcp.Close() }()
	abstract := fmt.Sprintf("@winkfs-test-%d", os.Getpid())
	sock, err := net.Listen("unix", abstract)
	must(t, err)
	defer func() { _ = sock.Close() }()

	// A descriptor that is not close-on-exec must not get in.
	fd, err := unix.Open(secret, unix.O_RDONLY, 0)
	must(t, err)
	defer func() { _ = unix.Close(fd) }()

	s.Hidden = []string{"/usr/share"}
	s.Env = []string{
		"WINKFS_TEST_INSIDE=1", "SECRET=" + secret, "TCP=" + tcp.Addr().String(), "ABSTRACT=" + abstract,
		"HOSTPID=" + strconv.Itoa(os.Getpid()), "MOUNT=" + s.Mount,
	}
	s.Command = []string{"./attack", "-test.run=^TestInside$", "-test.v"}
	r := runSpec(t, s)
	if r.err != nil || r.ExitCode != 0 {
		t.Fatalf("got %+v, %v\n%s%s", r.Status, r.err, r.out, r.errout)
	}
	t.Log(r.out)
}

// TestInside tries, from inside, what must not work.
func TestInside(t *testing.T) {
	if os.Getenv("WINKFS_TEST_INSIDE") == "" {
		t.Skip("runs in TestAttack's sandbox only")
	}
	runtime.LockOSThread()
	t.Run("capabilities", insideCapabilities)
	t.Run("files", insideFiles)
	t.Run("network", insideNetwork)
	t.Run("processes", insideProcesses)
	t.Run("descriptors", insideDescriptors)
	t.Run("calls", insideCalls)
	t.Run("read-only", insideReadOnly)
	t.Run("set-id", insideSetID)
	t.Run("sockets", insideSockets)
	t.Run("devices", insideDevices)
}

func insideCapabilities(t *testing.T) {
	caps, err := capability.NewPid2(0)
	must(t, err)
	must(t, caps.Load())
	for _, set := range []capability.CapType{capability.EFFECTIVE, capability.PERMITTED, capability.INHERITABLE, capability.BOUNDING, capability.AMBIENT} {
		for _, c := range capability.List() {
			if caps.Get(set, c) {
				t.Errorf("%s has %s", set, c)
			}
		}
	}
	status, _ := os.ReadFile("/proc/self/status")
	if err := checkNoCaps(string(status)); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"NoNewPrivs:\t1", "Seccomp:\t2"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("no %q in the status", want)
		}
	}
	if os.Getuid() == 0 {
		t.Error("shows as root")
	}
}

func insideFiles(t *testing.T) {
	for _, path := range []string{
		os.Getenv("SECRET"), os.Getenv("MOUNT"), "/etc/shadow", "/etc/ssh", "/root/.ssh", "/run", "/var/run", "/var/lib", "/sys", "/boot",
		"/opt", "/srv", "/mnt", "/media", "/dev/fuse", "/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/sda", "/proc/1/root", "/proc/1/exe", "/proc/1/fd", "/.dockerenv",
	} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: got %v, want that it does not exist", path, err)
		}
	}
	entries, err := os.ReadDir("/usr/share")
	if err != nil || len(entries) > 0 {
		t.Errorf("a hidden directory shows %d entries, %v", len(entries), err)
	}
	// Up from the working directory there is only the sandbox's root.
	if err := os.Chdir("../../../.."); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat("workspace/attack"); err != nil {
		t.Error(err)
	}
	must(t, os.Chdir("/workspace"))
}

func insideNetwork(t *testing.T) {
	if c, err := net.DialTimeout("tcp", os.Getenv("TCP"), time.Second); err == nil {
		_ = c.Close()
		t.Error("reached the host's loopback")
	}
	if c, err := net.Dial("unix", os.Getenv("ABSTRACT")); err == nil {
		_ = c.Close()
		t.Error("reached an abstract socket of the host")
	}
	if c, err := net.DialTimeout("udp", "192.0.2.1:9", time.Second); err == nil {
		if _, err := c.Write([]byte("x")); err == nil {
			t.Error("sent a datagram to the world")
		}
	}
	// The sandbox's own loopback works.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	c, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	_, _ = c.Close(), l.Close()
	ifaces, err := net.Interfaces()
	if err != nil || len(ifaces) != 1 || ifaces[0].Name != "lo" {
		t.Errorf("interfaces are %v, %v", ifaces, err)
	}
}

func insideProcesses(t *testing.T) {
	entries, err := os.ReadDir("/proc")
	must(t, err)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || pid == 1 {
			continue
		}
		t.Errorf("process %d shows", pid)
	}
	if hidden, err := os.ReadDir("/proc/1"); err != nil || len(hidden) != 0 {
		t.Errorf("/proc/1 shows %v, %v", hidden, err)
	}
	if err := unix.PtraceAttach(1); err == nil {
		t.Error("attached to the first process")
	}
	for _, sig := range []unix.Signal{unix.SIGKILL, unix.SIGSTOP, unix.SIGTERM, unix.SIGSEGV} {
		_ = unix.Kill(1, sig)
	}
	var buf [8]byte
	local := unix.Iovec{Base: &buf[0], Len: 8}
	if _, err := unix.ProcessVMReadv(1, []unix.Iovec{local}, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0); err == nil {
		t.Error("read the first process's memory")
	}
}

func insideDescriptors(t *testing.T) {
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, e := range entries {
		fd, _ := strconv.Atoi(e.Name())
		link, _ := os.Readlink("/proc/self/fd/" + e.Name())
		// What has come over execve can't be close-on-exec; the rest is this
		// program's own.
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if fd > 2 && err == nil && flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("descriptor %d is %s", fd, link)
		}
	}
}

// insideCalls wants the listed system calls refused.
func insideCalls(t *testing.T) {
	dot, _ := unix.BytePtrFromString(".")
	tmpfs, _ := unix.BytePtrFromString("tmpfs")
	p, f := uintptr(unsafe.Pointer(dot)), uintptr(unsafe.Pointer(tmpfs))
	calls := []struct {
		name string
		nr   uintptr
		args [4]uintptr
		want unix.Errno
	}{
		{"unshare user", unix.SYS_UNSHARE, [4]uintptr{unix.CLONE_NEWUSER}, unix.EPERM},
		{"unshare mount", unix.SYS_UNSHARE, [4]uintptr{unix.CLONE_NEWNS}, unix.EPERM},
		{"clone user", unix.SYS_CLONE, [4]uintptr{unix.CLONE_NEWUSER | uintptr(unix.SIGCHLD)}, unix.EPERM},
		{"clone user, high bits", unix.SYS_CLONE, [4]uintptr{1<<40 | unix.CLONE_NEWNS | uintptr(unix.SIGCHLD)}, unix.EPERM},
		{"clone3", unix.SYS_CLONE3, [4]uintptr{0, 0}, unix.ENOSYS},
		{"mount", unix.SYS_MOUNT, [4]uintptr{p, p, f, 0}, unix.EPERM},
		{"remount", unix.SYS_MOUNT, [4]uintptr{0, p, 0, unix.MS_REMOUNT | unix.MS_BIND}, unix.EPERM},
		{"umount", unix.SYS_UMOUNT2, [4]uintptr{p, unix.MNT_DETACH}, unix.EPERM},
		{"open_tree", unix.SYS_OPEN_TREE, [4]uintptr{0, p, unix.OPEN_TREE_CLONE}, unix.EPERM},
		{"chroot", unix.SYS_CHROOT, [4]uintptr{p}, unix.EPERM},
		{"ptrace", unix.SYS_PTRACE, [4]uintptr{unix.PTRACE_TRACEME}, unix.EPERM},
		{"keyctl", unix.SYS_KEYCTL, [4]uintptr{0}, unix.EPERM},
		{"bpf", unix.SYS_BPF, [4]uintptr{}, unix.EPERM},
		{"io_uring", unix.SYS_IO_URING_SETUP, [4]uintptr{1, p}, unix.EPERM},
		{"userfaultfd", unix.SYS_USERFAULTFD, [4]uintptr{}, unix.EPERM},
		{"perf", unix.SYS_PERF_EVENT_OPEN, [4]uintptr{}, unix.EPERM},
		{"handles", unix.SYS_OPEN_BY_HANDLE_AT, [4]uintptr{}, unix.EPERM},
		{"settimeofday", unix.SYS_SETTIMEOFDAY, [4]uintptr{}, unix.EPERM},
		{"newer than the list", 4000, [4]uintptr{}, unix.ENOSYS},
		{"x32 getpid", 0x40000000 + 39, [4]uintptr{}, unix.ENOSYS},
		{"TIOCSTI", unix.SYS_IOCTL, [4]uintptr{0, unix.TIOCSTI, p}, unix.EPERM},
		{"TIOCSTI, high bits", unix.SYS_IOCTL, [4]uintptr{0, unix.TIOCSTI | 1<<32, p}, unix.EPERM},
		{"TIOCLINUX", unix.SYS_IOCTL, [4]uintptr{0, tiocLinux, p}, unix.EPERM},
	}
	for _, c := range calls {
		if _, _, got := unix.RawSyscall6(c.nr, c.args[0], c.args[1], c.args[2], c.args[3], 0, 0); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	runtime.KeepAlive(dot)
	runtime.KeepAlive(tmpfs)
}

func insideReadOnly(t *testing.T) {
	for _, path := range []string{"/x", "/usr/x", "/etc/x", "/dev/x", "/etc/passwd", "/bin/sh", "/proc/x"} {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
		if err == nil {
			_ = f.Close()
			t.Errorf("wrote %s", path)
		}
	}
	for _, path := range []string{"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/user/max_user_namespaces", "/proc/sysrq-trigger", "/proc/sys/net/ipv4/ip_forward"} {
		if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
			_ = f.Close()
			t.Errorf("opened %s for writing", path)
		}
	}
	if err := os.Chmod("/", 0o777); err == nil {
		t.Error("changed the mode of /")
	}
	for _, dir := range []string{"/tmp", os.Getenv("HOME"), "/dev/shm", "/workspace"} {
		if err := os.WriteFile(dir+"/ok", nil, 0o600); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// insideSetID wants set-id programs to give nothing.
func insideSetID(t *testing.T) {
	for _, su := range []string{"/usr/bin/su", "/usr/bin/passwd", "/usr/bin/fusermount3"} {
		if _, err := os.Stat(su); err != nil {
			continue
		}
		out, err := osexec.Command(su, "root", "-c", "id").CombinedOutput()
		if err == nil || strings.Contains(string(out), "uid=0") {
			t.Errorf("%s gave %q, %v", su, out, err)
		}
	}
	if err := unix.Setuid(0); err == nil {
		t.Error("became root")
	}
}

func insideSockets(t *testing.T) {
	tests := []struct {
		name                string
		family, kind, proto int
		want                error
	}{
		{"unix", unix.AF_UNIX, unix.SOCK_STREAM, 0, nil},
		{"inet6", unix.AF_INET6, unix.SOCK_DGRAM, 0, nil},
		{"route", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE, nil},
		{"audit", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT, unix.EAFNOSUPPORT},
		{"netfilter", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER, unix.EAFNOSUPPORT},
		{"vsock", unix.AF_VSOCK, unix.SOCK_STREAM, 0, unix.EAFNOSUPPORT},
		{"packet", unix.AF_PACKET, unix.SOCK_RAW, 0, unix.EAFNOSUPPORT},
		{"alg", unix.AF_ALG, unix.SOCK_SEQPACKET, 0, unix.EAFNOSUPPORT},
		{"raw", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP, unix.EPERM},
	}
	for _, tt := range tests {
		fd, err := unix.Socket(tt.family, tt.kind, tt.proto)
		if err == nil {
			_ = unix.Close(fd)
		}
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
}

func insideDevices(t *testing.T) {
	if err := os.WriteFile("/dev/null", []byte("x"), 0); err != nil {
		t.Error(err)
	}
	f, err := os.Open("/dev/urandom")
	must(t, err)
	defer func() { _ = f.Close() }()
	var b [16]byte
	if n, err := f.Read(b[:]); n != 16 || err != nil {
		t.Errorf("read %d, %v", n, err)
	}
	if err := unix.Mknod("/workspace/node", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err == nil {
		t.Error("made a device")
	}
	if _, err := os.Open("/dev/tty"); err == nil {
		t.Error("there is a controlling terminal")
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, data, 0o755))
}
