package dev

import (
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const (
	// maxReaders bounds the requests in work at one time: so many processes
	// may wait for a lower file system that hangs, and the rest goes on.
	maxReaders = 1024
	// maxLocked is how many readers have memory that is there before it is
	// used. More than that are at work only when something hangs.
	maxLocked = 64
	// maxParked readers keep their buffers while they have nothing to do.
	maxParked = 4
)

// server turns a request into a reply; *fuse.ProtocolServer is the real one.
type server interface {
	HandleRequest(in, out [][]byte) (int, fuse.Status)
}

// loop reads requests and answers them. See the package comment.
type loop struct {
	fd  int
	srv server
	log *slog.Logger

	word atomic.Uint64 // seq<<1 | busy, stored by who has the token
	dog  watchdog
	pool pool
	all  sync.WaitGroup // readers that run
}

// reader is a goroutine of the loop with its buffer. Its arrays are passed to
// the server without allocating.
type reader struct {
	loop *loop
	buf  *buffer
	in   [1][]byte
	out  [1][]byte
}

// start begins to serve with one reader.
func (l *loop) start() error {
	r, err := l.newReader(true)
	if err != nil {
		return err
	}
	l.pool.init()
	l.dog.init(l)
	l.pool.readers = 1
	l.all.Add(1)
	go l.run(r)
	go l.dog.run()
	return nil
}

func (l *loop) newReader(locked bool) (*reader, error) {
	b, err := newBuffer(locked)
	if err != nil {
		return nil, err
	}
	return &reader{loop: l, buf: b}, nil
}

// run serves as long as it has the token, then parks. It starts with the
// token.
func (l *loop) run(r *reader) {
	defer l.all.Done()
	defer r.buf.free()
	for {
		if err := l.serve(r); err != nil {
			l.finish(err)
			return
		}
		if !l.pool.park() {
			return
		}
	}
}

// serve reads and handles requests until the token is taken away, which is no
// error, or the connection ends.
func (l *loop) serve(r *reader) error {
	seq := l.word.Load() >> 1
	for {
		if err := r.read(); err != nil {
			return err
		}
		seq++
		l.word.Store(seq<<1 | 1)
		l.dog.wake()
		r.handle()
		if !l.word.CompareAndSwap(seq<<1|1, seq<<1) {
			return nil
		}
	}
}

// takeFrom takes the token from the reader that has been busy since the word
// was seen, and gives it to another.
func (l *loop) takeFrom(word uint64) {
	if l.word.CompareAndSwap(word, (word>>1+1)<<1) {
		l.pass()
	}
}

// pass gives the token to a parked reader or a further one.
func (l *loop) pass() {
	nth := l.pool.wake()
	if nth == 0 {
		return
	}
	r, err := l.newReader(nth <= maxLocked)
	if err != nil {
		l.log.Error("fuse: no memory for a further reader", "err", err)
		l.pool.abandon()
		return
	}
	l.all.Add(1)
	go l.run(r)
}

// finish ends the loop: the reader that has the token saw the end.
func (l *loop) finish(err error) {
	if !errors.Is(err, unix.ENODEV) {
		l.log.Error("fuse: read device", "err", err)
	}
	l.pool.close()
	l.dog.close()
}

// read waits for the next request. Errors other than the end of the
// connection concern a single request, which is then gone.
func (r *reader) read() error {
	for {
		n, err := unix.Read(r.loop.fd, r.buf.mem[:maxRequest])
		switch {
		case err == nil && n >= inHeader:
			r.buf.n = n
			return nil
		case err == nil:
			return errors.New("short request")
		case err == unix.EINTR, err == unix.EAGAIN, err == unix.ENOENT:
		default:
			return err
		}
	}
}

// handle answers the request in the buffer.
func (r *reader) handle() {
	h := header(r.buf.in())
	if h.opcode() == opInterrupt {
		r.write(putReply(r.buf.out(), h.unique(), unix.ENOSYS))
		return
	}
	unique, answered := h.unique(), h.answered()
	h.sidestep()
	n, ok := r.dispatch()
	if !answered {
		return
	}
	if !ok {
		r.write(putReply(r.buf.out(), unique, unix.EIO))
		return
	}
	if !r.write(r.buf.out()[:n]) {
		r.write(putReply(r.buf.out(), unique, unix.EIO))
	}
}

// dispatch lets the server make the reply. It reports false when there is
// none: the request was malformed, or the server panicked outside of the
// filesystem, whose panics it catches itself.
func (r *reader) dispatch() (n int, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			r.loop.log.Error("fuse: panic", "panic", p, "stack", string(debug.Stack()))
			n, ok = 0, false
		}
	}()
	r.in[0], r.out[0] = r.buf.in(), r.buf.out()
	n, code := r.loop.srv.HandleRequest(r.in[:], r.out[:])
	return n, code.Ok() && n >= outHeader
}

// write sends a reply. It reports false when the kernel did not take it. ENOENT
// is no failure: the kernel gave the request up, or an INTERRUPT's request was
// answered first.
func (r *reader) write(reply []byte) bool {
	_, err := unix.Write(r.loop.fd, reply)
	if err == nil || err == unix.ENOENT || err == unix.ENODEV {
		return true
	}
	r.loop.log.Error("fuse: write reply", "err", err, "op", header(r.buf.in()).opcode(), "len", len(reply))
	return false
}
