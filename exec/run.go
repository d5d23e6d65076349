package exec

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// run is one run of a plan, on the daemon's side.
type run struct {
	plan    *Plan
	leaves  leaves
	streams *streams
	link    *os.File // our end, read by the poller
	proc    *os.Process
	begun   time.Time

	master    *os.File      // of the payload's terminal; set once by listen
	ready     chan struct{} // closed when master is set
	listening bool          // listen was started; only start and abort look
	last      *message      // the last word of stage 1; valid when heard is closed
	heard     chan struct{} // closed when the link has ended
}

// Run carries out a plan and returns when no process of it is left. An *Error
// says that the sandbox failed or the command could not be invoked; the Status
// has the exit code for that too. When ctx ends, everything is killed and the
// error wraps its cause. A Plan is run once.
func Run(ctx context.Context, p *Plan) (Status, error) {
	r := &run{plan: p, ready: make(chan struct{}), heard: make(chan struct{})}
	if err := ctx.Err(); err != nil {
		return Status{ExitCode: ExitSandbox}, fmt.Errorf("run command: %w", context.Cause(ctx))
	}
	if err := r.start(); err != nil {
		r.abort(ctx)
		return Status{ExitCode: ExitSandbox}, err
	}
	return r.wait(ctx)
}

// start brings stage 1 to life and hands it the plan. The payload begins some
// time after that.
func (r *run) start() (err error) {
	if r.leaves, err = newLeaves(r.plan.Groups); err != nil {
		return err
	}
	if r.streams, err = newStreams(r.plan); err != nil {
		return err
	}
	var mounts []*os.File
	if r.plan.IDs.Map {
		if mounts, err = mappedMounts(r.plan); err != nil {
			return err
		}
		defer closeAll(mounts)
	}
	if err := r.spawn(mounts); err != nil {
		return err
	}
	r.streams.release()
	if err := r.leaves.add(r.proc.Pid); err != nil {
		return err
	}
	if err := r.announce(); err != nil {
		return err
	}
	r.begun = time.Now()
	r.listening = true
	go r.listen()
	return r.send(&message{Plan: r.plan})
}

func (r *run) spawn(mounts []*os.File) error {
	ours, theirs, err := linkPair()
	if err != nil {
		return fail(layerLink, "start", err)
	}
	remote := os.NewFile(uintptr(theirs), "link")
	defer func() { _ = remote.Close() }()
	if err := unix.SetNonblock(ours, true); err != nil {
		_ = unix.Close(ours)
		return fail(layerLink, "start", err)
	}
	r.link = os.NewFile(uintptr(ours), "link")
	r.proc, err = spawnInit(r.plan, r.streams.child, remote, mounts)
	return err
}

// announce tells OnStart while stage 1 waits for its plan.
func (r *run) announce() error {
	if r.plan.spec.OnStart == nil {
		return nil
	}
	ns, err := pidNamespace(r.proc.Pid)
	if err != nil {
		return err
	}
	r.plan.spec.OnStart(Started{PID: r.proc.Pid, PIDNS: ns})
	return nil
}

// wait returns how the run ended, after its end.
func (r *run) wait(ctx context.Context) (Status, error) {
	exited := make(chan struct{})
	go func() {
		_, _ = r.proc.Wait()
		close(exited)
	}()
	go r.forward(exited)
	timer := timeout(r.plan.Timeout)
	defer timer.Stop()
	var ended error
	timedOut := false
	select {
	case <-exited:
	case <-timer.C:
		timedOut = true
	case <-ctx.Done():
		ended = context.Cause(ctx)
	}
	// Death of the first process of a pid namespace is the death of all, and
	// it is reported after theirs.
	_ = r.proc.Kill()
	<-exited
	duration := time.Since(r.begun)
	<-r.heard
	status, err := r.status(timedOut, ended)
	status.Duration = duration
	r.end(ctx)
	return status, err
}

// timeout makes a timer that, for 0, never fires.
func timeout(d time.Duration) *time.Timer {
	if d > 0 {
		return time.NewTimer(d)
	}
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// status makes the result of stage 1's last word. Preconditions: the link has
// ended.
func (r *run) status(timedOut bool, ended error) (Status, error) {
	st := Status{OOMKilled: r.leaves.oomKilled()}
	switch {
	case r.last != nil && r.last.Exit != nil:
		st.ExitCode, st.Signal = r.last.Exit.Code, syscall.Signal(r.last.Exit.Signal)
		return st, nil
	case r.last != nil:
		st.ExitCode = r.last.Error.Code
		return st, r.last.Error
	case timedOut:
		st.ExitCode, st.Signal, st.TimedOut = ExitTimeout, syscall.SIGKILL, true
		return st, nil
	case ended != nil:
		st.ExitCode, st.Signal = ExitSignal+int(syscall.SIGKILL), syscall.SIGKILL
		return st, fmt.Errorf("run command: %w", ended)
	case st.OOMKilled:
		st.ExitCode, st.Signal = ExitSignal+int(syscall.SIGKILL), syscall.SIGKILL
		return st, nil
	default:
		st.ExitCode = ExitSandbox
		return st, refuse(layerLink, "", "the sandbox's first process ended without a word")
	}
}

// end lets go of everything. Preconditions: no process is left.
func (r *run) end(ctx context.Context) {
	r.streams.finish(ctx)
	_ = r.link.Close()
	r.leaves.remove()
}

// abort undoes a start that failed half-way. Like a run that ended, it leaves
// no process and no use of the Spec's writers behind.
func (r *run) abort(ctx context.Context) {
	if r.proc != nil {
		_ = r.proc.Kill()
		_, _ = r.proc.Wait()
	}
	if r.listening {
		<-r.heard
	}
	if r.streams != nil {
		r.streams.finish(ctx)
	}
	if r.link != nil {
		_ = r.link.Close()
	}
	r.leaves.remove()
}
