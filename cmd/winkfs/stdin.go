package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// stoppableReader reads a file until it is stopped. A plain read would go on
// waiting after the command has ended, and take from the terminal what is
// meant for the next question.
type stoppableReader struct {
	f      *os.File
	wake   int        // eventfd that stop writes to
	mu     sync.Mutex // held during a read
	closed bool       // protected by mu
}

func newStoppableReader(f *os.File) (*stoppableReader, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("prepare input: %w", err)
	}
	return &stoppableReader{f: f, wake: fd}, nil
}

// Read waits for input or for stop, which ends the input.
func (r *stoppableReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, io.EOF
	}
	for {
		fds := []unix.PollFd{{Fd: int32(r.f.Fd()), Events: unix.POLLIN}, {Fd: int32(r.wake), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, fmt.Errorf("wait for input: %w", err)
		case fds[1].Revents != 0:
			return 0, io.EOF
		}
		return r.f.Read(p)
	}
}

// stop ends the input and returns when nobody reads any more.
func (r *stoppableReader) stop() {
	one := [8]byte{1}
	_, _ = unix.Write(r.wake, one[:])
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		unix.Close(r.wake)
	}
}
