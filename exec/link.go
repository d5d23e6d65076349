package exec

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// message is what crosses a link. One field is set.
//
//	daemon  -> stage 1   Plan       what to do; stage 1 waits for it
//	stage 1 -> daemon    Terminal   with the terminal's master descriptor
//	stage 1 -> daemon    Started    the payload runs
//	daemon  -> stage 1   Signal     to pass on to the payload
//	stage 1 -> daemon    Error      the sandbox failed; the last message
//	stage 1 -> daemon    Exit       the payload ended; the last message
//	stage 1 -> stage 2   Plan
//	stage 2 -> stage 1   Error      else execve closes the link
//
// The end of the daemon's side is also its death: stage 1 then ends.
type message struct {
	Plan     *Plan  `json:"plan,omitempty"`
	Probe    bool   `json:"probe,omitempty"` // instead of a Plan: try the layers
	Terminal bool   `json:"terminal,omitempty"`
	Started  bool   `json:"started,omitempty"`
	Signal   int    `json:"signal,omitempty"`
	Error    *Error `json:"error,omitempty"`
	Exit     *exit  `json:"exit,omitempty"`
}

// exit is how the payload ended.
type exit struct {
	Code   int `json:"code"`
	Signal int `json:"signal,omitempty"`
}

// maxMessage bounds what a side believes: an argument list and an environment
// of the kernel's largest size fit.
const maxMessage = 16 << 20

// linkPair makes the two ends of a link, both close-on-exec and blocking.
func linkPair() (ours, theirs int, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, -1, fmt.Errorf("make link: %w", err)
	}
	return fds[0], fds[1], nil
}

// encode frames a message: its length in four bytes, then JSON.
func encode(m *message) ([]byte, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...), nil
}

// decode reads one message from r. io.EOF is a clean end of the link.
func decode(r io.Reader) (*message, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxMessage {
		return nil, fmt.Errorf("read message: %d bytes is too long", n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	m := new(message)
	if err := json.Unmarshal(body, m); err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	return m, nil
}

// endpoint is a stage's end of a link, used with plain blocking calls: the
// stages need no poller. It collects descriptors that came along.
type endpoint struct {
	fd  int
	fds []int
}

// Read implements io.Reader.
func (e *endpoint) Read(p []byte) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	for {
		n, oobn, _, _, err := unix.Recvmsg(e.fd, p, oob, unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECONNRESET):
			return 0, io.EOF
		case err != nil:
			return 0, err
		}
		e.fds = append(e.fds, rights(oob[:oobn])...)
		if n == 0 && len(p) > 0 {
			return 0, io.EOF
		}
		return n, nil
	}
}

// send writes a message, with a descriptor unless fd is negative.
func (e *endpoint) send(m *message, fd int) error {
	data, err := encode(m)
	if err != nil {
		return err
	}
	var oob []byte
	if fd >= 0 {
		oob = unix.UnixRights(fd)
	}
	for len(data) > 0 {
		n, err := unix.SendmsgN(e.fd, data, oob, nil, unix.MSG_NOSIGNAL)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("send message: %w", err)
		}
		data, oob = data[n:], nil
	}
	return nil
}

// rights takes the descriptors out of a control message.
func rights(oob []byte) []int {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	var fds []int
	for i := range messages {
		if got, err := unix.ParseUnixRights(&messages[i]); err == nil {
			fds = append(fds, got...)
		}
	}
	return fds
}
