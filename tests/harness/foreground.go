package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Foreground is a workspace whose daemon is the test's own child, so that the
// test can see it die.
type Foreground struct {
	*Workspace
	log *buffer
}

// buffer is a bytes.Buffer that may be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer // protected by mu
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Foreground starts `winkfs mount --foreground` with the arguments and the
// extra environment and waits until the mount is usable. It returns an error
// when the daemon ends before that.
func (w *Workspace) Foreground(env []string, args ...string) (*Foreground, error) {
	f := &Foreground{Workspace: w, log: &buffer{}}
	cmd := w.Cmd(append([]string{"mount", "--foreground"}, args...)...)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdout, cmd.Stderr = f.log, f.log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start daemon: %w", err)
	}
	w.daemon, w.exited = cmd, make(chan error, 1)
	exited := w.exited
	go func() {
		exited <- cmd.Wait()
		close(exited)
	}()
	deadline := time.After(30 * time.Second)
	for !w.serving() {
		select {
		case err := <-exited:
			return f, fmt.Errorf("daemon ended before the mount was usable: %w\n%s", orEnded(err), f.log)
		case <-deadline:
			cmd.Process.Signal(unix.SIGQUIT)
			time.Sleep(time.Second)
			cmd.Process.Kill()
			return f, fmt.Errorf("mount is not usable after 30 s\n%s", f.log)
		case <-time.After(2 * time.Millisecond):
		}
	}
	return f, nil
}

// serving reports whether the mount answers and the daemon takes commands.
func (w *Workspace) serving() bool {
	if !Usable(w.Mount) {
		return false
	}
	var s Status
	r := w.Run("status", "-w", w.Mount, "--json")
	return r.Code == 0 && json.Unmarshal([]byte(r.Stdout), &s) == nil && s.Mounted
}

func orEnded(err error) error {
	if err == nil {
		return fmt.Errorf("exit status 0")
	}
	return err
}

// Wait waits until the daemon has ended and returns how. One that does not end
// within a minute is made to print its goroutines, and the test fails.
func (f *Foreground) Wait() error {
	f.t.Helper()
	select {
	case err := <-f.exited:
		return err
	case <-time.After(time.Minute):
	}
	f.daemon.Process.Signal(unix.SIGQUIT)
	select {
	case <-f.exited:
	case <-time.After(5 * time.Second):
		f.daemon.Process.Kill()
	}
	f.t.Fatalf("the daemon does not end\n%s", f.log)
	return nil
}

// Log returns what the daemon printed.
func (f *Foreground) Log() string { return f.log.String() }

// Prepare returns a workspace that is not mounted yet.
func (e *Env) Prepare(name, source string) *Workspace { return e.prepare(name, source) }

// Usable reports whether the directory is a mount point that answers.
func Usable(dir string) bool {
	if !IsMounted(dir) {
		return false
	}
	_, err := os.Stat(dir)
	return err == nil
}

// KillForeground ends the foreground daemon by SIGKILL.
func (w *Workspace) KillForeground() { w.daemon.Process.Kill() }
