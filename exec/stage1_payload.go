package exec

import (
	"fmt"
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// supervise lets stage 2 become the payload and reports how that ended.
func (p *initProc) supervise() error {
	go p.watchDaemon()
	if err := p.hideSelf(); err != nil {
		return err
	}
	if err := p.start.send(&message{Plan: p.plan}, -1); err != nil {
		return fail(layerLink, "instruct stage 2", err)
	}
	m, err := decode(&p.start)
	switch {
	case err == nil && m.Error != nil:
		return m.Error
	case err != io.EOF:
		return fail(layerLink, "wait for the command to start", fmt.Errorf("%w", err))
	}
	_ = unix.Close(p.start.fd)
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
// waits for its plan. It writes its own id maps: by the pid that it has inside,
// stage 1 would find some other process as long as /proc is the host's.
func (p *initProc) startStage2() error {
	ours, theirs, err := linkPair()
	if err != nil {
		return fail(layerLink, "start stage 2", err)
	}
	defer func() { _ = unix.Close(theirs) }()
	ids := p.plan.IDs.Shown
	attr := &syscall.ProcAttr{
		Dir: "/",
		Env: stageEnv,
		Files: []uintptr{uintptr(p.files[0]), uintptr(p.files[1]), uintptr(p.files[2]),
			uintptr(theirs)},
		Sys: &syscall.SysProcAttr{
			Unshareflags: syscall.CLONE_NEWUSER,
			UidMappings:  []syscall.SysProcIDMap{{ContainerID: int(ids.UID), HostID: 0, Size: 1}},
			GidMappings:  []syscall.SysProcIDMap{{ContainerID: int(ids.GID), HostID: 0, Size: 1}},
			AmbientCaps:  []uintptr{unix.CAP_SETPCAP},
			Setsid:       true,
			Setctty:      p.plan.TTY,
		},
	}
	p.payload, err = syscall.ForkExec(selfExe, []string{stage2Name}, attr)
	if err != nil {
		return fail(layerNS, "start stage 2 in a second user namespace", err)
	}
	p.start.fd = ours
	return nil
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
