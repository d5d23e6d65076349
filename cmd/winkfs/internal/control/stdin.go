package control

import (
	"io"
	"sync"
)

// stdinQueue holds input that arrived and that the command has not read. The
// client never has more than stdinWindow bytes on their way, so pushing never
// waits; taken is told of every byte read, to give the client credit.
type stdinQueue struct {
	mu    sync.Mutex
	more  sync.Cond
	buf   []byte
	eof   bool
	taken func(n int)
}

func newStdinQueue(taken func(n int)) *stdinQueue {
	q := &stdinQueue{taken: taken}
	q.more.L = &q.mu
	return q
}

// push adds input; it reports false when the client overran its credit.
func (q *stdinQueue) push(p []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.buf)+len(p) > stdinWindow {
		return false
	}
	q.buf = append(q.buf, p...)
	q.more.Signal()
	return true
}

// close ends the input behind what was pushed.
func (q *stdinQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.eof = true
	q.more.Broadcast()
}

// Read waits for input.
func (q *stdinQueue) Read(p []byte) (int, error) {
	q.mu.Lock()
	for len(q.buf) == 0 && !q.eof {
		q.more.Wait()
	}
	n := copy(p, q.buf)
	q.buf = q.buf[n:]
	q.mu.Unlock()
	if n == 0 {
		return 0, io.EOF
	}
	q.taken(n)
	return n, nil
}

// credit is the client's side: how many bytes it may still send.
type credit struct {
	mu   sync.Mutex
	more sync.Cond
	n    int
	gone bool
}

func newCredit() *credit {
	c := &credit{n: stdinWindow}
	c.more.L = &c.mu
	return c
}

// take waits until n bytes may be sent; it reports false when nobody takes
// input any more.
func (c *credit) take(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.n < n && !c.gone {
		c.more.Wait()
	}
	c.n -= n
	return !c.gone
}

func (c *credit) give(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += n
	c.more.Signal()
}

func (c *credit) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	c.more.Broadcast()
}
