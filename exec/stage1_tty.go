package exec

import "golang.org/x/sys/unix"

// openTerminal makes a terminal in the sandbox's own devpts, so that its name
// exists inside, and gives the master to the daemon.
func (p *initProc) openTerminal() error {
	if err := p.makeTerminal(); err != nil {
		return fail(layerTTY, "open terminal", err)
	}
	return nil
}

func (p *initProc) makeTerminal() error {
	master, err := unix.Open("/dev/pts/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(master) }()
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	slave, err := openPeer(master)
	if err != nil {
		return err
	}
	size := &unix.Winsize{Row: p.plan.Size.Rows, Col: p.plan.Size.Cols}
	if size.Row > 0 && size.Col > 0 {
		if err := unix.IoctlSetWinsize(slave, unix.TIOCSWINSZ, size); err != nil {
			return err
		}
	}
	p.files = [3]int{slave, slave, slave}
	return p.link.send(&message{Terminal: true}, master)
}

// openPeer opens the slave side by the master, without a look-up by name.
func openPeer(master int) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER,
		unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}
