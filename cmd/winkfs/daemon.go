package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	osexec "os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/workspace"
)

// readyFD is the descriptor by which a daemon tells its parent how starting
// went.
const readyFD = 3

// daemonSpec is what a daemon is started for.
type daemonSpec struct {
	entry      *workspace.Entry
	mountpoint string
	private    bool // in a mount namespace of its own
	userNS     bool // and a user namespace of its own
	readOnly   bool
	at         string // the point to mount instead of the live state, "" = none
	allowOther bool
	// As in mount(8).
	noSuid, noDev, noExec bool
	noWalk                bool // see workspace.MountOptions
	// overlay says that the state root was named as overlayfs's upper directory:
	// the mount that it lies on stays free, as with overlayfs. fill takes over what
	// it held before.
	overlay, fill bool
	spawned       bool // by spawn, so that the log is a file of the state directory
}

// ready is the one message that a daemon sends its parent.
type ready struct {
	Error    *workspace.Error `json:"error,omitempty"`
	Degraded []string         `json:"degraded,omitempty"` // as in the status
}

func (d *daemonSpec) args(root string) []string {
	args := []string{"winkfs", "--state-dir", root, "daemon", "--id", d.entry.ID, "--mountpoint", d.mountpoint, "--ready"}
	for flag, on := range map[string]bool{
		"--private": d.private, "--read-only": d.readOnly, "--allow-other": d.allowOther,
		"--nosuid": d.noSuid, "--nodev": d.noDev, "--noexec": d.noExec,
		"--nowalk": d.noWalk, "--overlay": d.overlay, "--fill": d.fill,
	} {
		if on {
			args = append(args, flag)
		}
	}
	if d.at != "" {
		args = append(args, "--at", d.at)
	}
	return args
}

// spawn starts the workspace's daemon as a process of its own session and
// waits until the mount is usable.
func (e *env) spawn(ctx context.Context, d daemonSpec) (*ready, error) {
	log, err := openLog(d.entry.Dir)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	defer r.Close()
	cmd := &osexec.Cmd{
		Path: "/proc/self/exe", Args: d.args(filepath.Dir(d.entry.Dir)), Env: e.environ, Dir: "/",
		Stdout: log, Stderr: log, ExtraFiles: []*os.File{w}, SysProcAttr: d.attributes(),
	}
	if err := keepToOurselves(); err != nil {
		return nil, err
	}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return nil, d.startError(err)
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(unix.SIGTERM) })()
	msg, err := awaitReady(r)
	if err != nil {
		_ = cmd.Process.Signal(unix.SIGTERM)
		_ = cmd.Wait()
		return nil, d.silence(err, ctx)
	}
	return msg, cmd.Process.Release()
}

// logTo makes the daemon write to the log by another path than spawn opened it.
func logTo(dir string) error {
	log, err := openLog(dir)
	if err != nil {
		return err
	}
	defer log.Close()
	for _, fd := range []int{1, 2} {
		if err := unix.Dup3(int(log.Fd()), fd, 0); err != nil {
			return fmt.Errorf("open daemon's log: %w", err)
		}
	}
	return nil
}

func openLog(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open daemon's log: %w", err)
	}
	return f, nil
}

// keepToOurselves keeps descriptors that this process was given from reaching
// the daemon: it would hold a caller's locks and pipes for good.
func keepToOurselves() error {
	err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	if err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("keep descriptors from the daemon: %w", err)
	}
	return nil
}

// attributes says how the daemon's process is made.
func (d *daemonSpec) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	if d.private {
		a.Cloneflags = unix.CLONE_NEWNS
	}
	if d.userNS {
		uid, gid := os.Getuid(), os.Getgid()
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	return a
}

func (d *daemonSpec) startError(err error) error {
	if !d.userNS {
		return fmt.Errorf("start daemon: %w", err)
	}
	return workspace.Wrap(workspace.CodeEnvironment, err, "start daemon in a user namespace of its own").
		Hinted("`winkfs doctor` says what forbids user namespaces here and how to allow them")
}

var errSilent = errors.New("the daemon ended without a word")

// awaitReady reads the daemon's message. The end of the pipe without one means
// that the daemon died.
func awaitReady(r io.Reader) (*ready, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("wait for daemon: %w", err)
	}
	var msg ready
	if err := json.Unmarshal(b, &msg); err != nil {
		return nil, errSilent
	}
	if msg.Error != nil {
		return nil, msg.Error
	}
	return &msg, nil
}

// silence adds the tail of the log to the error of a daemon that died.
func (d *daemonSpec) silence(err error, ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !errors.Is(err, errSilent) {
		return err
	}
	path := filepath.Join(d.entry.Dir, "log")
	b, _ := os.ReadFile(path)
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	last := lines[len(lines)-1]
	return workspace.Wrap(workspace.CodeFailure, err, "start daemon").Hinted("%s ends with: %.300s", path, last)
}

// tellReady sends the message and closes the descriptor, which the parent
// waits for.
func tellReady(f *os.File, err error, degraded ...string) {
	if f == nil {
		return
	}
	msg := ready{Degraded: degraded}
	if err != nil {
		msg.Error = workspace.AsError(err)
	}
	_ = json.NewEncoder(f).Encode(msg)
	f.Close()
}
