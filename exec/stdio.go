package exec

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// streams are the pipes between the payload and the Spec's reader and writers.
// The payload never holds a descriptor that anyone else has.
type streams struct {
	child  [3]*os.File    // stage 1's ends; closed once it has them
	ours   []*os.File     // our ends, and the terminal's master
	output sync.WaitGroup // the copies out; done when the payload's side is closed
	dead   chan struct{}  // closed when no process of the sandbox is left
}

// newStreams makes the pipes; owner is who must be able to open them again by
// /dev/stdout and the like.
func newStreams(p *Plan) (s *streams, err error) {
	s = &streams{dead: make(chan struct{})}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if p.TTY {
		return s, s.nullStreams()
	}
	if err := s.input(p); err != nil {
		return nil, err
	}
	if s.child[1], err = s.outputPipe(p, p.spec.Stdout); err != nil {
		return nil, err
	}
	s.child[2], err = s.outputPipe(p, p.spec.Stderr)
	return s, err
}

// nullStreams are what stage 1 has while the payload's streams are a terminal.
func (s *streams) nullStreams() error {
	for i := range s.child {
		f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return fail(layerLink, "open null", err)
		}
		s.child[i] = f
	}
	return nil
}

func (s *streams) input(p *Plan) (err error) {
	if p.spec.Stdin == nil {
		s.child[0], err = os.Open(os.DevNull)
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fail(layerLink, "make pipe", err)
	}
	s.child[0], s.ours = r, append(s.ours, w)
	// Not waited for: the reader may never return.
	go func() {
		_, _ = io.Copy(w, p.spec.Stdin)
		_ = w.Close()
	}()
	return lend(p, r)
}

func (s *streams) outputPipe(p *Plan, to io.Writer) (*os.File, error) {
	if to == nil {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fail(layerLink, "make pipe", err)
	}
	s.ours = append(s.ours, r)
	s.copyOut(to, r)
	return w, lend(p, w)
}

// lend makes a pipe the payload's, so that it can open /proc/self/fd/1.
func lend(p *Plan, f *os.File) error {
	if !p.IDs.Map {
		return nil
	}
	if err := f.Chown(int(p.IDs.Kernel.UID), int(p.IDs.Kernel.GID)); err != nil {
		return fail(layerLink, "hand over pipe", err)
	}
	return nil
}

// terminal connects the master side of the payload's terminal.
func (s *streams) terminal(p *Plan, fd int) (*os.File, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fail(layerTTY, "set non-blocking", err)
	}
	master := os.NewFile(uintptr(fd), "terminal")
	s.ours = append(s.ours, master)
	if p.spec.Stdout != nil {
		s.copyOut(p.spec.Stdout, master)
	} else {
		s.copyOut(io.Discard, master)
	}
	if p.spec.Stdin != nil {
		go func() {
			_, _ = io.Copy(master, p.spec.Stdin)
			_, _ = master.Write([]byte{4}) // end of input, as a person would type it
		}()
	}
	return master, nil
}

// copyOut copies until the other side is closed or, once the sandbox is dead,
// until nothing is left: somebody outside may have been handed the other side
// over a socket in the workspace.
func (s *streams) copyOut(to io.Writer, from *os.File) {
	s.output.Add(1)
	stop := make(chan struct{})
	go func() {
		select {
		case <-s.dead:
			_ = from.SetReadDeadline(time.Now())
		case <-stop:
		}
	}()
	go func() {
		defer s.output.Done()
		defer close(stop)
		_, err := io.Copy(to, onlyReader{from})
		if errors.Is(err, os.ErrDeadlineExceeded) {
			drain(to, from)
		}
		if err != nil && !isEnd(err) {
			// The writer failed. The payload must not stall for it.
			_, _ = io.Copy(io.Discard, onlyReader{from})
		}
	}()
}

// onlyReader hides the file from io.Copy's shortcuts, which would hand the pipe
// to the writer.
type onlyReader struct{ io.Reader }

// isEnd says that a read found the other side gone. A terminal tells it by EIO.
func isEnd(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, unix.EIO) || errors.Is(err, os.ErrClosed)
}

// drain copies what is in the pipe without waiting for more.
func drain(to io.Writer, from *os.File) {
	conn, err := from.SyscallConn()
	if err != nil {
		return
	}
	buf := make([]byte, 64<<10)
	for {
		var n int
		var rerr error
		cerr := conn.Control(func(fd uintptr) { n, rerr = unix.Read(int(fd), buf) })
		if cerr != nil || errors.Is(rerr, unix.EINTR) {
			continue
		}
		if rerr != nil || n <= 0 {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// release closes stage 1's ends in the daemon.
func (s *streams) release() {
	for i, f := range s.child {
		if f != nil {
			_ = f.Close()
			s.child[i] = nil
		}
	}
}

// stuckWriter is how long finish waits, when the context has ended, for a
// writer that does not take the rest of the output.
const stuckWriter = time.Second

// finish waits until what the payload wrote has reached the writers.
// Preconditions: no process of the sandbox is left.
func (s *streams) finish(ctx context.Context) {
	close(s.dead)
	done := make(chan struct{})
	go func() {
		s.output.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		select {
		case <-done:
		case <-time.After(stuckWriter):
		}
	}
	s.close()
}

func (s *streams) close() {
	s.release()
	closeAll(s.ours)
	s.ours = nil
}
