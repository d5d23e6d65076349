package exec

import (
	"context"
	"io"
	"os"
	"reflect"
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

// newStreams makes the pipes. A writer that is given for both outputs gets one
// pipe, so that it is written to by one goroutine and in order.
func newStreams(p *Plan) (s *streams, err error) {
	s = &streams{dead: make(chan struct{})}
	defer func() {
		if err != nil {
			s.finish(context.Background())
			s = nil
		}
	}()
	if p.TTY {
		return s, s.nullStreams()
	}
	if err = s.input(p); err != nil {
		return s, err
	}
	if s.child[1], err = s.outputPipe(p, p.spec.Stdout); err != nil {
		return s, err
	}
	if same(p.spec.Stdout, p.spec.Stderr) {
		s.child[2], err = duplicate(s.child[1])
	} else {
		s.child[2], err = s.outputPipe(p, p.spec.Stderr)
	}
	return s, err
}

// same says that two writers are one. Types that can't be compared are not.
func same(a, b io.Writer) bool {
	return a != nil && b != nil && reflect.TypeOf(a).Comparable() && a == b
}

func duplicate(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fail(layerLink, "duplicate pipe", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
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
	s.release()
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
