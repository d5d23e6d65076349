package workspace

import (
	"context"
	osexec "os/exec"
	"syscall"
	"time"
)

// WalkCommand is the hidden command that walks a mount: winkfs __walk DIR.
const WalkCommand = "__walk"

// WalkEntries bounds how much of a tree is looked at after it was mounted.
const WalkEntries = 50_000

// startWalk begins to fill the kernel's caches of names and attributes, in a
// process of its own and at the lowest priority: the daemon must not wait for its own
// mount. The function that it returns ends the walk and waits until it is gone,
// so that it holds no directory of a mount that is being unmounted; not for long,
// since a lower file system that hangs holds the walk, too.
func (w *Workspace) startWalk(dir string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	c := osexec.CommandContext(ctx, "/proc/self/exe", WalkCommand, dir)
	c.Dir = "/" // not the mount: starting a process must never wait for it
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := c.Start(); err != nil {
		w.log.Warn("walk the mount", "err", err)
		cancel()
		return func() {}
	}
	go func() {
		defer close(done)
		if err := c.Wait(); err != nil && ctx.Err() == nil {
			w.log.Warn("walk the mount", "err", err)
		}
	}()
	return func() {
		cancel()
		select {
		case <-done:
		case <-time.After(settleTime):
		}
	}
}
