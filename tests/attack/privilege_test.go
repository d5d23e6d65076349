package attack

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	probes["privilege"] = probePrivilege
	probes["sleep"] = func([]string) { fmt.Println("ready"); time.Sleep(30 * time.Second) }
}

// probePrivilege looks at its own credentials and tries what needs some.
func probePrivilege([]string) {
	for key, value := range statusFields("self") {
		switch {
		case strings.HasPrefix(key, "Cap") && strings.Trim(value, "0") != "":
			breach("%s is %s", key, value)
		case key == "NoNewPrivs" && value != "1":
			breach("no_new_privs is not set")
		case key == "Seccomp" && value != "2":
			breach("no seccomp filter")
		}
	}
	tries := map[string]func() error{
		"mount a tmpfs":          func() error { return unix.Mount("none", "/tmp", "tmpfs", 0, "") },
		"bind a directory":       func() error { return unix.Mount("/usr", "/tmp", "", unix.MS_BIND, "") },
		"remount the root":       func() error { return unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND, "") },
		"unmount the workspace":  func() error { return unix.Unmount("/workspace", unix.MNT_DETACH) },
		"make a user namespace":  func() error { return unix.Unshare(unix.CLONE_NEWUSER) },
		"make a mount namespace": func() error { return unix.Unshare(unix.CLONE_NEWNS) },
		"chroot":                 func() error { return unix.Chroot("/tmp") },
		"pivot the root":         func() error { return unix.PivotRoot("/workspace", "/workspace") },
		"become another user":    func() error { return syscall.Setuid(os.Getuid() + 1) },
		"set the host name":      func() error { return unix.Sethostname([]byte("x")) },
		"make a device":          func() error { return unix.Mknod("null", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))) },
		"make a device in /tmp":  func() error { return unix.Mknod("/tmp/null", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))) },
		"trace pid 1":            func() error { return unix.PtraceAttach(1) },
		"set the core pattern":   func() error { return openForWriting("/proc/sys/kernel/core_pattern") },
		"drop caches":            func() error { return openForWriting("/proc/sys/vm/drop_caches") },
		"use the sysrq keys":     func() error { return openForWriting("/proc/sysrq-trigger") },
		"set a set-user-id bit":  setUserID,
		"use io_uring":           func() error { return tryCall(unix.SYS_IO_URING_SETUP, 1, 0, 0) },
		"use bpf":                func() error { return tryCall(unix.SYS_BPF, 0, 0, 0) },
		"use a keyring":          func() error { return tryCall(unix.SYS_ADD_KEY, 0, 0, 0) },
		"use perf":               func() error { return tryCall(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0) },
		"open by handle":         func() error { return tryCall(unix.SYS_OPEN_BY_HANDLE_AT, 0, 0, 0) },
	}
	for what, try := range tries {
		if try() == nil {
			breach("can %s", what)
		}
	}
}

// openForWriting opens a file that changes the host when it is written, and
// leaves it at that.
func openForWriting(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		f.Close()
	}
	return err
}

// tryCall reports a call that the kernel refuses outright. An error that tells
// of bad arguments means that the call was reached.
func tryCall(nr, a, b, c uintptr) error {
	_, _, errno := unix.Syscall(nr, a, b, c)
	switch errno {
	case unix.EPERM, unix.ENOSYS, unix.EACCES:
		return errno
	}
	return nil
}

func setUserID() error {
	if err := os.WriteFile("suid", nil, 0o755); err != nil {
		return err
	}
	if err := unix.Chmod("suid", 0o4755); err != nil {
		return err
	}
	st, err := os.Stat("suid")
	if err != nil || st.Mode()&os.ModeSetuid == 0 {
		return unix.EPERM
	}
	return nil
}

// statusFields reads /proc/PID/status.
func statusFields(pid string) map[string]string {
	fields := map[string]string{}
	f, err := os.Open("/proc/" + pid + "/status")
	if err != nil {
		return fields
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		key, value, _ := strings.Cut(s.Text(), ":")
		fields[key] = strings.TrimSpace(value)
	}
	return fields
}

func TestNoPrivileges(t *testing.T) {
	newJail(t).probe("privilege")
}

// TestKernelUser looks from the host at whom a sandboxed process runs as.
func TestKernelUser(t *testing.T) {
	j := newJail(t)
	cmd := j.Cmd("exec", "-w", j.Name, "--", "./probe", probeMark+"sleep", namespaces(), marker(t))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Signal(os.Interrupt); cmd.Process.Kill(); cmd.Wait() }()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the probe does not start: %q %v", line, err)
	}
	pids := processes(func(argv string) bool {
		return strings.Contains(argv, marker(t)) && strings.HasPrefix(argv, "./probe")
	})
	if len(pids) == 0 {
		t.Fatal("the sandboxed process is not found on the host")
	}
	for _, pid := range pids {
		for _, key := range []string{"Uid", "Gid"} {
			for _, id := range strings.Fields(statusFields(pid)[key]) {
				if id == "0" {
					t.Errorf("process %s runs as kernel %s 0", pid, key)
				}
			}
		}
	}
}
