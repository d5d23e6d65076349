package exec

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

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
