package exec

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// initProc is stage 1: the first process of the sandbox's namespaces. It builds
// the tree, starts stage 2, and stays to reap and to die with the daemon.
type initProc struct {
	link    endpoint // to the daemon
	start   endpoint // to stage 2
	plan    *Plan
	files   [3]int // the payload's standard streams
	payload int    // its pid, 0 before it was started
}

// stage1 runs stage 1 and returns when the payload has ended or something
// failed; returning ends every process of the sandbox.
func stage1() {
	p := &initProc{link: endpoint{fd: linkFD}, files: [3]int{0, 1, 2}}
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	m, err := decode(&p.link)
	if err != nil {
		return // the daemon is gone, or this was never a stage
	}
	if m.Probe {
		_ = p.link.send(probeInside(), -1)
		return
	}
	if m.Plan == nil {
		return
	}
	p.plan = m.Plan
	if err := p.run(); err != nil {
		_ = p.link.send(&message{Error: asError(err)}, -1)
	}
}

func (p *initProc) run() error {
	first := linkFD + 1
	if p.plan.IDs.Map {
		first += p.plan.places()
	}
	if err := closeInherited(first); err != nil {
		return fail(layerLink, "close descriptors", err)
	}
	for fd := linkFD; fd < first; fd++ {
		unix.CloseOnExec(fd)
	}
	// The payload has the same kernel id and so may send signals. The first
	// process of a pid namespace is spared those that it does not handle.
	defaultSignals()
	if err := p.isolate(); err != nil {
		return err
	}
	// Stage 2 begins while the tree is built, and goes along when the root
	// changes: pivot_root(2) moves every process of the mount namespace. Only
	// a terminal must be there before it.
	steps := []func() error{p.startStage2, p.buildTree, p.supervise}
	if p.plan.TTY {
		steps = []func() error{p.buildTree, p.openTerminal, p.startStage2, p.supervise}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// closeInherited closes what the daemon had open without close-on-exec, from a
// number on. Descriptors with that flag are this process's own: the runtime's
// poller is one of them, and it dies without it.
func closeInherited(first int) error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd < first {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
	return nil
}

// isolate does what concerns neither files nor the payload.
func (p *initProc) isolate() error {
	// The leaf that the daemon has put this process into is the root of what
	// the sandbox sees of cgroups.
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fail(layerNS, "make cgroup namespace", err)
	}
	if err := unix.Sethostname([]byte(hostname)); err != nil {
		return fail(layerNS, "set host name", err)
	}
	// The daemon's session keyring is not the payload's. Without keyrings in
	// the kernel there is nothing to leave.
	_, _ = unix.KeyctlJoinSessionKeyring("")
	if p.plan.Network != networkHost {
		if err := loopbackUp(); err != nil {
			return fail(layerNet, "raise loopback", err)
		}
	}
	return nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}
