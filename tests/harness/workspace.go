package harness

import (
	"encoding/json"
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Env is a state directory of its own with the binary that works in it.
type Env struct {
	t     testing.TB
	Bin   string
	Dir   string   // for whatever the test needs
	State string   // the state root
	Extra []string // further environment of each command
}

// New returns an environment for a test that mounts. The test is skipped, or
// fails, where that is impossible.
func New(t testing.TB) *Env {
	t.Helper()
	Require(t, "binary", "fuse")
	bin, err := Binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := TempDir(t)
	return &Env{t: t, Bin: bin, Dir: dir, State: filepath.Join(dir, "state")}
}

// TempDir is t.TempDir for tests that mount and change modes: at the end,
// whatever is still mounted below it is unmounted, and directories are opened
// for their owner, before it is removed.
func TempDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		UnmountBelow(dir)
		filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if d != nil && d.IsDir() {
				os.Chmod(path, 0o700)
			}
			return nil
		})
	})
	return dir
}

// Result is what a command gave.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Cmd prepares a winkfs command.
func (e *Env) Cmd(args ...string) *osexec.Cmd {
	cmd := osexec.Command(e.Bin, args...)
	cmd.Dir = e.Dir
	cmd.Env = append(os.Environ(), "WINKFS_STATE_DIR="+e.State, "WINKFS_WORKSPACE=", "NO_COLOR=1")
	cmd.Env = append(cmd.Env, e.Extra...)
	return cmd
}

// Run runs a winkfs command to its end, whatever its exit status.
func (e *Env) Run(args ...string) Result {
	e.t.Helper()
	var out, errs strings.Builder
	cmd := e.Cmd(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	// A daemon that keeps the pipes open must not hang the test.
	cmd.WaitDelay = 5 * time.Second
	watchdog := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() })
	defer watchdog.Stop()
	err := cmd.Run()
	var exit *osexec.ExitError
	if err != nil && !errors.As(err, &exit) {
		e.t.Fatalf("winkfs %s: %v", strings.Join(args, " "), err)
	}
	return Result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// Must runs a winkfs command that must succeed and returns its output.
func (e *Env) Must(args ...string) string {
	e.t.Helper()
	r := e.Run(args...)
	if r.Code != 0 {
		e.t.Fatalf("winkfs %s: exit status %d\n%s%s", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// JSON runs a winkfs command that must succeed and decodes its output into v.
func (e *Env) JSON(v any, args ...string) {
	e.t.Helper()
	out := e.Must(args...)
	if err := json.Unmarshal([]byte(out), v); err != nil {
		e.t.Fatalf("winkfs %s: %v in\n%s", strings.Join(args, " "), err, out)
	}
}

// Workspace is a mounted workspace.
type Workspace struct {
	*Env
	Name   string
	Source string
	Mount  string
	// daemon is the foreground daemon, nil for one in the background.
	daemon *osexec.Cmd
	exited chan error
}

// NewWorkspace mounts a fresh workspace over source. Flags go to `mount`.
func (e *Env) NewWorkspace(name, source string, flags ...string) *Workspace {
	e.t.Helper()
	w := e.prepare(name, source)
	args := append([]string{"mount", "--name", name}, flags...)
	e.Must(append(args, source, w.Mount)...)
	return w
}

func (e *Env) prepare(name, source string) *Workspace {
	e.t.Helper()
	w := &Workspace{Env: e, Name: name, Source: source, Mount: filepath.Join(e.Dir, "mnt-"+name)}
	if err := os.MkdirAll(w.Mount, 0o755); err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(w.End)
	return w
}

// Status is what tests read of winkfs.status/v1.
type Status struct {
	ID         string   `json:"id"`
	Mounted    bool     `json:"mounted"`
	Mountpoint string   `json:"mountpoint"`
	PID        int      `json:"pid"`
	Head       uint64   `json:"head"`
	Degraded   []string `json:"degraded"`
}

// Status returns the workspace's status.
func (w *Workspace) Status() Status {
	w.t.Helper()
	var s Status
	w.JSON(&s, "status", "-w", w.Name, "--json")
	return s
}

// Head returns the number of the last record.
func (w *Workspace) Head() uint64 { return w.Status().Head }

// In runs a winkfs command on this workspace.
func (w *Workspace) In(command string, args ...string) Result {
	w.t.Helper()
	return w.Run(append([]string{command, "-w", w.Name}, args...)...)
}

// MustIn runs a winkfs command on this workspace that must succeed.
func (w *Workspace) MustIn(command string, args ...string) string {
	w.t.Helper()
	return w.Must(append([]string{command, "-w", w.Name}, args...)...)
}

// Exec runs a command in the sandbox.
func (w *Workspace) Exec(argv ...string) Result {
	w.t.Helper()
	return w.In("exec", append([]string{"--"}, argv...)...)
}

// Umount unmounts, which must succeed.
func (w *Workspace) Umount() {
	w.t.Helper()
	w.Must("umount", w.Name)
}

// Remount mounts the existing workspace again, which must succeed.
func (w *Workspace) Remount() {
	w.t.Helper()
	w.Must("mount", "-w", w.Name, w.Mount)
}

// Kill ends the daemon by SIGKILL and waits until it is gone. The mount stays
// behind, stale.
func (w *Workspace) Kill() {
	w.t.Helper()
	pid := w.Status().PID
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		w.t.Fatalf("kill daemon %d: %v", pid, err)
	}
	w.AwaitGone(pid)
}

// AwaitGone waits until the process has ended.
func (w *Workspace) AwaitGone(pid int) {
	w.t.Helper()
	for range 1000 {
		if !alive(pid) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	w.t.Fatalf("process %d does not end", pid)
}

// alive reports whether the process runs; a zombie does not.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	if !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X") {
		return true
	}
	// The first thread may be dead while others, which hold the descriptors, are
	// still on their way out.
	tasks, _ := os.ReadDir("/proc/" + itoa(pid) + "/task")
	return len(tasks) > 1
}

// End unmounts whatever way works and ends the daemon. It never fails.
func (w *Workspace) End() {
	if w.daemon != nil {
		w.daemon.Process.Signal(syscall.SIGTERM)
		select {
		case <-w.exited:
		case <-time.After(10 * time.Second):
			w.daemon.Process.Kill()
		}
	}
	if IsMounted(w.Mount) {
		cmd := w.Cmd("umount", w.Mount)
		timer := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
		cmd.Run()
		timer.Stop()
	}
	UnmountBelow(w.Mount)
}

// Output runs a program on the host that must succeed and returns its output.
func Output(t testing.TB, argv ...string) string {
	t.Helper()
	out, err := osexec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out)
}
