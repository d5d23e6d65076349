package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// progressEvery is the least time between two pictures of progress.
const progressEvery = 100 * time.Millisecond

// progress shows on the terminal how far long work is, in one line that is
// removed at the end. Elsewhere it shows nothing.
type progress struct {
	w     io.Writer // nil: nothing is shown
	last  time.Time
	shown bool
}

func (e *env) progress() *progress {
	f, ok := e.stderr.(*os.File)
	if !ok || e.globals.quiet || e.globals.json || !term.IsTerminal(int(f.Fd())) {
		return &progress{}
	}
	return &progress{w: f}
}

func (p *progress) show(step string, done, total int64) {
	if p.w == nil || time.Since(p.last) < progressEvery {
		return
	}
	p.last, p.shown = time.Now(), true
	part := ""
	if total > 0 {
		part = fmt.Sprintf(" %d%%", done*100/total)
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s%s", step, part)
}

func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
