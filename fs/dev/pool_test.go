package dev

import (
	"encoding/binary"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// slow answers each request with its header after the time that the request's
// node number asks for, in milliseconds.
type slow struct{ running, most atomic.Int64 }

func (s *slow) HandleRequest(in, out [][]byte) (int, fuse.Status) {
	n := s.running.Add(1)
	for m := s.most.Load(); n > m && !s.most.CompareAndSwap(m, n); m = s.most.Load() {
	}
	h := header(in[0])
	time.Sleep(time.Duration(h.node()) * time.Millisecond)
	s.running.Add(-1)
	putReply(out[0], h.unique(), 0)
	return outHeader, fuse.OK
}

// ask sends a request over the socket.
func ask(t *testing.T, fd int, unique, ms uint64, op uint32) {
	t.Helper()
	b := make([]byte, inHeader)
	binary.NativeEndian.PutUint32(b[0:], inHeader)
	binary.NativeEndian.PutUint32(b[4:], op)
	binary.NativeEndian.PutUint64(b[8:], unique)
	binary.NativeEndian.PutUint64(b[16:], ms)
	if _, err := unix.Write(fd, b); err != nil {
		t.Fatal(err)
	}
}

// TestLoopHandsOver runs the loop over a socket instead of the device: more
// slow requests than readers are parked, each answered once.
func TestLoopHandsOver(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	srv := &slow{}
	l := &loop{fd: fds[0], srv: srv, log: slog.New(slog.DiscardHandler)}
	if err := l.start(); err != nil {
		t.Fatal(err)
	}
	const n = 100
	for i := range uint64(n) {
		ask(t, fds[1], 2*i+2, 300*(i%2), 99)
	}
	seen := map[uint64]int{}
	buf := make([]byte, 64)
	for range n {
		if _, err := unix.Read(fds[1], buf); err != nil {
			t.Fatal(err)
		}
		seen[binary.NativeEndian.Uint64(buf[8:])]++
	}
	for i := range uint64(n) {
		if seen[2*i+2] != 1 {
			t.Errorf("request %d answered %d times", i, seen[2*i+2])
		}
	}
	if m := srv.most.Load(); m < 10 || m > maxReaders {
		t.Errorf("%d at one time", m)
	}
	ask(t, fds[1], 1001, 0, opForget)
	ask(t, fds[1], 1003, 0, opInterrupt)
	if _, err := unix.Read(fds[1], buf); err != nil {
		t.Fatal(err)
	}
	if u, e := binary.NativeEndian.Uint64(buf[8:]), int32(binary.NativeEndian.Uint32(buf[4:])); u != 1003 || e != -int32(unix.ENOSYS) {
		t.Errorf("after FORGET and INTERRUPT: reply to %d with %d", u, e)
	}
	unix.Close(fds[1]) // read(2) returns 0: the end
	l.all.Wait()
	unix.Close(fds[0])
	if r := l.pool.parked; r > maxParked {
		t.Errorf("%d parked", r)
	}
}

// TestPoolOrphan: a token that finds every reader busy goes to the first that
// gets done.
func TestPoolOrphan(t *testing.T) {
	var p pool
	p.init()
	p.readers = maxReaders
	if p.wake() != 0 {
		t.Fatal("one reader too many")
	}
	if !p.park() {
		t.Fatal("the token was lost")
	}
	p.close()
	if p.park() || p.wake() != 0 {
		t.Error("alive after close")
	}
}

func TestSidestep(t *testing.T) {
	tests := []struct {
		node uint64
		name string
		want uint64
	}{
		{1, ".go-fuse-epoll-hack\x00", 0}, {1, "other\x00", 1}, {2, ".go-fuse-epoll-hack\x00", 2},
		{1, "x\x00.go-fuse-epoll-hack\x00", 0}, // as the second name of a rename: harmless
	}
	for _, tt := range tests {
		h := header(append(make([]byte, inHeader), tt.name...))
		h.setNode(tt.node)
		h.sidestep()
		if h.node() != tt.want {
			t.Errorf("%d %q: got %d", tt.node, tt.name, h.node())
		}
	}
}

func TestAgreed(t *testing.T) {
	reply := func(errno int32, caps uint64) []byte {
		b := make([]byte, outHeader+64)
		binary.NativeEndian.PutUint32(b[4:], uint32(errno))
		binary.NativeEndian.PutUint32(b[outHeader+12:], uint32(caps))
		binary.NativeEndian.PutUint32(b[outHeader+32:], uint32(caps>>32))
		return b
	}
	if caps, err := agreed(reply(0, wantCaps)); err != nil || caps != wantCaps {
		t.Errorf("got %#x, %v", caps, err)
	}
	for _, bad := range [][]byte{reply(-5, 0), reply(0, fuse.CAP_ATOMIC_O_TRUNC), reply(0, fuse.CAP_PASSTHROUGH), make([]byte, 20)} {
		if caps, err := agreed(bad); err == nil {
			t.Errorf("%x: agreed on %#x", bad, caps)
		}
	}
}

// BenchmarkRequest counts what a request costs within the process: the library
// and the loop, without the system calls.
func BenchmarkRequest(b *testing.B) {
	buf, err := newBuffer(true)
	if err != nil {
		b.Fatal(err)
	}
	defer buf.free()
	srv := newServer(newMemfs(), false, slog.New(slog.DiscardHandler))
	r := &reader{loop: &loop{srv: srv, log: slog.New(slog.DiscardHandler)}, buf: buf}
	in := make([]byte, inHeader)
	binary.NativeEndian.PutUint32(in[4:], 1) // LOOKUP
	binary.NativeEndian.PutUint64(in[16:], 1)
	in = append(in, "hello\x00"...)
	buf.n = copy(buf.mem, in)
	b.ReportAllocs()
	for b.Loop() {
		if n, ok := r.dispatch(); !ok || n != outHeader+128 {
			b.Fatalf("%d, %v", n, ok)
		}
	}
}
