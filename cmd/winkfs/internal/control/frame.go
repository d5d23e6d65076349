package control

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// frameKind says what a frame carries.
type frameKind byte

// Kinds of frames. The client sends the first four, the server the others.
const (
	frameStdin  frameKind = 'i' // bytes; none = end of input
	frameResize frameKind = 'w' // JSON of workspace.Winsize
	frameSignal frameKind = 's' // JSON number
	frameStdout frameKind = 'o'
	frameStderr frameKind = 'e'
	frameCredit frameKind = 'c' // JSON number: so many bytes of input were taken
	frameResult frameKind = 'r' // JSON of workspace.ExecResult; the last frame
	frameError  frameKind = 'x' // JSON of workspace.Error; the last frame
)

// maxFrame bounds a frame's payload but for the result, whose size the daemon
// decides.
const (
	maxFrame  = 64 << 10
	maxResult = 64 << 20
)

// stdinWindow is how many bytes of input may be on their way to a command that
// doesn't read. It keeps window sizes and signals from waiting behind input.
const stdinWindow = 256 << 10

var errFrame = errors.New("malformed frame")

// frameWriter writes frames; safe for concurrent use.
type frameWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// send writes one frame: kind, length (4 bytes, big endian), payload.
func (f *frameWriter) send(k frameKind, payload []byte) error {
	buf := make([]byte, 5, 5+len(payload))
	buf[0] = byte(k)
	binary.BigEndian.PutUint32(buf[1:], uint32(len(payload)))
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.w.Write(append(buf, payload...)); err != nil {
		return fmt.Errorf("send frame: %w", err)
	}
	return nil
}

func (f *frameWriter) sendJSON(k frameKind, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode frame: %w", err)
	}
	return f.send(k, b)
}

// stream returns a writer whose bytes go into frames of one kind.
func (f *frameWriter) stream(k frameKind) io.Writer { return &frameStream{f, k} }

type frameStream struct {
	f *frameWriter
	k frameKind
}

// Write sends p in frames of at most maxFrame bytes.
func (s *frameStream) Write(p []byte) (int, error) {
	for n := 0; n < len(p); {
		m := min(len(p)-n, maxFrame)
		if err := s.f.send(s.k, p[n:n+m]); err != nil {
			return n, err
		}
		n += m
	}
	return len(p), nil
}

// readFrame reads one frame.
func readFrame(r io.Reader) (frameKind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	k, n := frameKind(head[0]), binary.BigEndian.Uint32(head[1:])
	limit := uint32(maxFrame)
	if k == frameResult || k == frameError {
		limit = maxResult
	}
	if n > limit {
		return 0, nil, fmt.Errorf("read frame: %w: %d bytes", errFrame, n)
	}
	payload := make([]byte, n)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, fmt.Errorf("read frame: %w", err)
	}
	return k, payload, nil
}
