package exec

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// initProc is stage 1: the first process of the sandbox's namespaces. It builds
// the tree, starts stage 2, and stays to reap and to die with the daemon.
type initProc struct {
	link    endpoint
	plan    *Plan
	files   [3]int // the payload's standard streams
	payload int    // its pid, 0 before it was started
}

// stage1 runs stage 1 and returns when the payload has ended or something
// failed; returning ends every process of the sandbox.
func stage1() {
	p := &initProc{link: endpoint{fd: linkFD}, files: [3]int{0, 1, 2}}
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	unix.CloseOnExec(linkFD)
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
	// The payload has the same kernel id and so may send signals. The first
	// process of a pid namespace is spared those that it does not handle.
	defaultSignals()
	if err := p.isolate(); err != nil {
		return err
	}
	if err := p.buildTree(); err != nil {
		return err
	}
	if p.plan.TTY {
		if err := p.openTerminal(); err != nil {
			return fail(layerTTY, "open terminal", err)
		}
	}
	return p.supervise()
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

// supervise starts the payload and reports how it ended.
func (p *initProc) supervise() error {
	start, err := p.startStage2()
	if err != nil {
		return err
	}
	go p.watchDaemon()
	if err := p.hideSelf(); err != nil {
		return err
	}
	if err := start.send(&message{Plan: p.plan}, -1); err != nil {
		return fail(layerLink, "instruct stage 2", err)
	}
	m, err := decode(start)
	switch {
	case err == nil && m.Error != nil:
		return m.Error
	case err != io.EOF:
		return fail(layerLink, "wait for the command to start", fmt.Errorf("%w", err))
	}
	_ = unix.Close(start.fd)
	// What the payload closes is then closed for its reader too.
	for fd := range 3 {
		_ = unix.Close(fd)
	}
	_ = p.link.send(&message{Started: true}, -1)
	_ = p.link.send(&message{Exit: reap(p.payload)}, -1)
	return nil
}

// startStage2 forks the payload's process into a user namespace of its own,
// with the one capability by which it takes all others away from itself. It
// waits for its plan.
func (p *initProc) startStage2() (*endpoint, error) {
	ours, theirs, err := linkPair()
	if err != nil {
		return nil, fail(layerLink, "start stage 2", err)
	}
	defer func() { _ = unix.Close(theirs) }()
	ids := p.plan.IDs.Shown
	attr := &syscall.ProcAttr{
		Dir: "/",
		Env: stageEnv,
		Files: []uintptr{uintptr(p.files[0]), uintptr(p.files[1]), uintptr(p.files[2]),
			uintptr(theirs)},
		Sys: &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: int(ids.UID), HostID: 0, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: int(ids.GID), HostID: 0, Size: 1}},
			AmbientCaps: []uintptr{unix.CAP_SETPCAP},
			Setsid:      true,
			Setctty:     p.plan.TTY,
		},
	}
	p.payload, err = syscall.ForkExec(selfExe, []string{stage2Name}, attr)
	if err != nil {
		return nil, fail(layerNS, "start stage 2 in a second user namespace", err)
	}
	return &endpoint{fd: ours}, nil
}

// watchDaemon ends the sandbox with the daemon and passes on its signals.
func (p *initProc) watchDaemon() {
	for {
		m, err := decode(&p.link)
		if err != nil {
			unix.Exit(ExitSandbox)
		}
		if m.Signal > 0 {
			_ = unix.Kill(p.payload, unix.Signal(m.Signal))
		}
	}
}

// reap waits for every process that ends until the payload's does.
func reap(payload int) *exit {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return &exit{Code: ExitSandbox}
		}
		if pid != payload {
			continue
		}
		switch {
		case ws.Exited():
			return &exit{Code: ws.ExitStatus()}
		case ws.Signaled():
			return &exit{Code: ExitSignal + int(ws.Signal()), Signal: int(ws.Signal())}
		}
	}
}
