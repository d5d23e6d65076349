package lower

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of reading ahead.
const (
	aheadBytes = 64 << 10 // of each file
	aheadFiles = 512      // of each directory
	aheadGuess = 64       // files of a directory of which only one was read
	aheadQueue = 64       // directories that wait
	aheadSeen  = 4096     // directories that are known to have been read
	// aheadScan is how long after one directory the first file read in another
	// is taken for the next step of the same walk.
	aheadScan = 50 * time.Millisecond
)

// readAhead brings the small files of a directory into the host's page cache
// once two of them were read, or one shortly after another directory: who does
// so (a search, an archiver, a compiler) mostly reads the others next, and one
// reader that waits for each file in turn leaves the disk idle in between. It
// is advice only (posix_fadvise(2), POSIX_FADV_WILLNEED): nothing is read
// into memory of our own, so there is nothing that could be out of date.
//
// The zero value is ready. Its goroutine lives while there is something to do.
type readAhead struct {
	mu      sync.Mutex
	recent  [8]File           // the last file read of each recent directory; protected by mu
	next    int               // the one to replace; protected by mu
	seen    map[*Dir]struct{} // read ahead, or waiting to be; protected by mu
	queue   []aheadDir        // protected by mu
	last    time.Time         // a directory was queued; protected by mu
	running chan struct{}     // closed when the goroutine ends, nil = there is none; protected by mu
	closed  bool              // protected by mu
}

// aheadDir is a directory to read ahead in, with a bound on its files.
type aheadDir struct {
	*Dir
	files int
}

// note says that a file is read from its beginning.
func (r *readAhead) note(f File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.seen[f.Dir]; ok || r.closed {
		return
	}
	for i := range r.recent {
		if r.recent[i].Dir != f.Dir {
			continue
		}
		if r.recent[i].Name != f.Name {
			r.recent[i] = File{}
			r.addLocked(aheadDir{f.Dir, aheadFiles})
		}
		return
	}
	if time.Since(r.last) < aheadScan {
		r.addLocked(aheadDir{f.Dir, aheadGuess})
		return
	}
	r.recent[r.next] = f
	r.next = (r.next + 1) % len(r.recent)
}

func (r *readAhead) addLocked(d aheadDir) {
	if len(r.queue) >= aheadQueue {
		return
	}
	if r.seen == nil || len(r.seen) >= aheadSeen {
		r.seen = map[*Dir]struct{}{}
	}
	r.seen[d.Dir] = struct{}{}
	r.last = time.Now()
	r.queue = append(r.queue, d)
	if r.running == nil {
		r.running = make(chan struct{})
		go r.run(r.running)
	}
}

func (r *readAhead) run(ended chan struct{}) {
	defer close(ended)
	for {
		d, ok := r.take()
		if !ok {
			return
		}
		r.read(d)
	}
}

// take returns the next directory. If there is none the goroutine's time ends.
func (r *readAhead) take() (d aheadDir, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 || r.closed {
		r.running = nil
		return d, false
	}
	d, r.queue = r.queue[0], r.queue[1:]
	return d, true
}

// read asks for the beginning of each regular file of the directory. What fails
// will fail again, with an answer, when it is read.
func (r *readAhead) read(d aheadDir) {
	entries, err := d.readOwn()
	if err != nil {
		return
	}
	files := 0
	for _, e := range entries {
		if e.Type != unix.S_IFREG {
			continue
		}
		if files++; files > d.files || r.isClosed() {
			return
		}
		f := File{Dir: d.Dir, Name: e.Name, Ino: e.Ino}
		f.with(func(fd int) error { return unix.Fadvise(fd, 0, aheadBytes, unix.FADV_WILLNEED) })
	}
}

func (r *readAhead) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// close ends the goroutine and reports whether it has ended within a second: it
// does not while the lower hangs.
func (r *readAhead) close() bool {
	r.mu.Lock()
	r.closed = true
	running := r.running
	r.mu.Unlock()
	if running == nil {
		return true
	}
	select {
	case <-running:
		return true
	case <-time.After(time.Second):
		return false
	}
}
