package dev

import "sync"

// pool keeps the readers that do not have the token.
type pool struct {
	mu      sync.Mutex
	readers int  // that exist; protected by mu
	parked  int  // that wait on tokens; protected by mu
	orphan  bool // a token is there that no reader was free to take; protected by mu
	closed  bool // protected by mu; only becomes true

	tokens chan struct{}
}

func (p *pool) init() { p.tokens = make(chan struct{}, maxReaders) }

// wake hands the token to a parked reader. If the caller shall start a further
// one instead, it returns how many there are with that, which is then already
// counted; else 0. When all are busy the token waits for the first that gets
// done.
func (p *pool) wake() (start int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return 0
	case p.parked > 0:
		p.parked--
		p.tokens <- struct{}{} // has room: never more tokens than readers
		return 0
	case p.readers < maxReaders:
		p.readers++
		return p.readers
	}
	p.orphan = true
	return 0
}

// abandon takes back a reader that wake counted but that could not start.
func (p *pool) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readers--
	p.orphan = true
}

// park waits for the token. It returns false when the caller shall end.
func (p *pool) park() bool {
	if take, wait := p.enter(); !wait {
		return take
	}
	_, ok := <-p.tokens
	return ok
}

// enter decides what a reader that lost the token does: take one that is there,
// end, or wait.
func (p *pool) enter() (take, wait bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return false, false
	case p.orphan:
		p.orphan = false
		return true, false
	case p.parked >= maxParked:
		p.readers--
		return false, false
	}
	p.parked++
	return false, true
}

// close ends the readers that wait and those that come.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		close(p.tokens)
	}
}
