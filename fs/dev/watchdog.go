package dev

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// watchEvery is how often the watchdog looks: a request that it sees twice
	// took longer.
	watchEvery = 2 * time.Millisecond
	// watchIdle is how many looks without traffic send it to sleep.
	watchIdle = 50
)

// watchdog takes the token from a reader that is busy for too long.
type watchdog struct {
	loop   *loop
	asleep atomic.Bool
	bell   chan struct{}
	quit   chan struct{}
	once   sync.Once
	awake  *latency
}

func (w *watchdog) init(l *loop) {
	w.loop = l
	w.bell = make(chan struct{}, 1)
	w.quit = make(chan struct{})
	w.awake = openLatency()
}

// wake is called with each request, after the word was stored.
func (w *watchdog) wake() {
	if w.asleep.Load() && w.asleep.CompareAndSwap(true, false) {
		w.bell <- struct{}{}
	}
}

func (w *watchdog) close() { w.once.Do(func() { close(w.quit) }) }

func (w *watchdog) run() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	defer w.awake.close()
	var last uint64
	for idle := 0; ; {
		select {
		case <-w.quit:
			return
		case <-tick.C:
		}
		word := w.loop.word.Load()
		w.awake.look(word>>1 - last>>1)
		switch {
		case word != last:
			last, idle = word, 0
		case word&1 == 1:
			w.loop.takeFrom(word)
		default:
			idle++
		}
		if idle >= watchIdle {
			tick.Stop()
			if !w.sleep(last) {
				return
			}
			tick.Reset(watchEvery)
			idle = 0
		}
	}
}

// sleep waits for a request. The word is looked at again after asleep was set:
// a reader stores the word first and looks at asleep then, so one of the two
// sees the other. It returns false at the end.
func (w *watchdog) sleep(last uint64) bool {
	w.asleep.Store(true)
	if w.loop.word.Load() != last && w.asleep.CompareAndSwap(true, false) {
		return true
	}
	select {
	case <-w.quit:
		return false
	case <-w.bell:
		return true
	}
}
