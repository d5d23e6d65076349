package exec

import (
	"bytes"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func (r *run) send(m *message) error {
	data, err := encode(m)
	if err != nil {
		return fail(layerLink, "send", err)
	}
	if _, err := r.link.Write(data); err != nil {
		return fail(layerLink, "send", err)
	}
	return nil
}

// listen takes stage 1's messages until the link ends.
func (r *run) listen() {
	defer close(r.heard)
	in := &pollReader{file: r.link}
	for {
		m, err := decode(in)
		if err != nil {
			return
		}
		switch {
		case m.Terminal && len(in.fds) > 0 && r.master == nil:
			master, err := r.streams.terminal(r.plan, in.fds[0])
			in.fds = in.fds[1:]
			if err == nil {
				r.master = master
				close(r.ready)
			}
		case m.Error != nil || m.Exit != nil:
			r.last = m
		}
	}
}

// forward passes signals and window sizes on while the run lasts.
func (r *run) forward(exited <-chan struct{}) {
	signals, sizes := r.plan.spec.Signals, r.plan.spec.Resize
	for {
		select {
		case sig, ok := <-signals:
			if !ok {
				signals = nil
				continue
			}
			_ = r.send(&message{Signal: int(sig)})
		case size, ok := <-sizes:
			if !ok {
				sizes = nil
				continue
			}
			r.resize(size)
		case <-exited:
			return
		}
	}
}

// resize sets the terminal's size, by which the kernel signals its foreground
// processes.
func (r *run) resize(size Winsize) {
	select {
	case <-r.ready:
	default:
		return
	}
	conn, err := r.master.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols})
	})
}

// pollReader reads a link through the runtime's poller and collects the
// descriptors that come along.
type pollReader struct {
	file *os.File
	fds  []int
	buf  bytes.Buffer
}

// Read implements io.Reader.
func (p *pollReader) Read(b []byte) (int, error) {
	if p.buf.Len() == 0 {
		if err := p.fill(); err != nil {
			return 0, err
		}
	}
	return p.buf.Read(b)
}

func (p *pollReader) fill() error {
	conn, err := p.file.SyscallConn()
	if err != nil {
		return err
	}
	data, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4*4))
	n, oobn := 0, 0
	err2 := conn.Read(func(fd uintptr) bool {
		for {
			n, oobn, _, _, err = unix.Recvmsg(int(fd), data, oob, unix.MSG_CMSG_CLOEXEC)
			if !errors.Is(err, unix.EINTR) {
				return !errors.Is(err, unix.EAGAIN)
			}
		}
	})
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	p.fds = append(p.fds, rights(oob[:oobn])...)
	p.buf.Write(data[:n]) // nothing at the end of the link: Read then reports io.EOF
	return nil
}
