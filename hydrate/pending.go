package hydrate

import (
	"sync"
	"time"

	"github.com/winkfs/winkfs/journal"
)

const (
	// maxPending bounds what waits for the sink. More counts as an overflow,
	// which costs the sink less than that many single changes.
	maxPending = 1 << 15
	// minPause and maxPause bound the time between two deliveries. A lone
	// change is delivered at once; under a steady stream the pause doubles each
	// time, so that a file written a thousand times a second is told about a hundred times.
	minPause = time.Millisecond
	maxPause = 8 * time.Millisecond
)

// key is one thing that changed. An empty name means the directory itself.
type key struct {
	dir  journal.NodeID
	name string
}

// pending is the set of changes that wait for the sink.
type pending struct {
	wake chan struct{} // holds a token while there may be something to deliver
	quit chan struct{}

	mu   sync.Mutex
	set  map[key]struct{} // protected by mu
	lost bool             // protected by mu: set is empty and everything may have changed
}

func newPending() *pending {
	return &pending{
		wake: make(chan struct{}, 1),
		quit: make(chan struct{}),
		set:  map[key]struct{}{},
	}
}

// add queues a change.
func (p *pending) add(k key) {
	p.mu.Lock()
	if !p.lost {
		p.set[k] = struct{}{}
		p.lost = len(p.set) > maxPending
	}
	if p.lost {
		clear(p.set)
	}
	p.mu.Unlock()
	p.signal()
}

// overflow replaces all that waits by one overflow.
func (p *pending) overflow() {
	p.mu.Lock()
	p.lost = true
	clear(p.set)
	p.mu.Unlock()
	p.signal()
}

func (p *pending) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *pending) close() { close(p.quit) }

// take empties the queue.
func (p *pending) take() (set map[key]struct{}, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	set, lost = p.set, p.lost
	p.set, p.lost = map[key]struct{}{}, false
	return set, lost
}

// deliver tells the sink until close.
func (p *pending) deliver(sink Sink) {
	pause := minPause
	for {
		select {
		case <-p.quit:
			return
		case <-p.wake:
		default:
			pause = minPause
			select {
			case <-p.quit:
				return
			case <-p.wake:
			}
		}
		p.tell(sink)
		if !p.rest(pause) {
			return
		}
		pause = min(pause*2, maxPause)
	}
}

// tell hands all that waits to the sink.
func (p *pending) tell(sink Sink) {
	set, lost := p.take()
	if lost {
		sink.LowerOverflow()
	}
	for k := range set {
		if k.name == "" {
			sink.LowerSelfChanged(k.dir)
			continue
		}
		sink.LowerChanged(k.dir, k.name)
	}
}

// rest waits and reports false when the queue was closed.
func (p *pending) rest(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.quit:
		return false
	case <-t.C:
		return true
	}
}
