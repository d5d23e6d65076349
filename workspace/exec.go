package workspace

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/winkfs/winkfs/exec"
	"github.com/winkfs/winkfs/journal"
)

// maxCapture bounds each captured stream of a command.
const maxCapture = 1 << 20

// Exec runs a command in the sandbox and says what it changed. The end of ctx
// ends the command.
func (w *Workspace) Exec(ctx context.Context, req *ExecRequest, s *Streams) (*ExecResult, error) {
	m, err := w.mount()
	if err != nil {
		return nil, err
	}
	spec, err := w.spec(m, req)
	if err != nil {
		return nil, err
	}
	if req.DryRun {
		plan, err := exec.NewPlan(*spec, w.host())
		if err != nil {
			return nil, execError(err)
		}
		return &ExecResult{Schema: execSchema, Command: req.Command, Cwd: plan.Cwd, Network: plan.Network, Runner: "ns", Plan: plan.String()}, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	x, err := w.begin(req, spec, cancel)
	if err != nil {
		return nil, err
	}
	defer w.gone(x)
	return w.run(ctx, x, spec, req, s)
}

const execSchema = "winkfs.exec/v1"

// runningExec is a command under way.
type runningExec struct {
	rec    journal.Exec
	cancel func()
}

// begin numbers the command and records that it begins.
func (w *Workspace) begin(req *ExecRequest, spec *exec.Spec, cancel func()) (*runningExec, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return nil, Fail(CodeNotMounted, "run command: the workspace is being unmounted")
	}
	x := &runningExec{cancel: cancel, rec: journal.Exec{
		ID: w.nextExec, Command: req.Command, Cwd: spec.Cwd, Runner: "ns", Begin: journal.Timespec(time.Now().UnixNano()),
	}}
	seq, err := w.note(journal.OpExecBegin, &x.rec)
	if err != nil {
		return nil, fmt.Errorf("record command: %w", err)
	}
	x.rec.First = seq
	w.nextExec++
	w.running[x] = struct{}{}
	return x, nil
}

// note records a command's state.
func (w *Workspace) note(op journal.Op, x *journal.Exec) (journal.Seq, error) {
	rec := *x
	return w.tree.Commit(nil, func(*journal.State) (*journal.Record, error) {
		return &journal.Record{Op: op, Actor: w.person(), Note: &journal.Note{Exec: &rec}}, nil
	})
}

func (w *Workspace) gone(x *runningExec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, x)
}

// busy reports whether commands are running.
func (w *Workspace) busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.running) > 0
}

// endCommands lets no command start any more, ends those under way and waits
// until they are recorded.
func (w *Workspace) endCommands() {
	w.mu.Lock()
	w.ended = true
	for x := range w.running {
		x.cancel()
	}
	w.mu.Unlock()
	for end := time.Now().Add(10 * time.Second); w.busy() && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
}

func (w *Workspace) allowCommands() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = false
}

// run carries the command out and makes the result.
func (w *Workspace) run(ctx context.Context, x *runningExec, spec *exec.Spec, req *ExecRequest, s *Streams) (*ExecResult, error) {
	res := &ExecResult{
		Schema: execSchema, Exec: uint64(x.rec.ID), Command: req.Command, Runner: "ns", Network: spec.Network, Denied: []Denied{},
	}
	out, errOut := newCapture(maxCapture), newCapture(maxCapture)
	connect(ctx, spec, req, s, out, errOut)
	spec.OnStart = func(st exec.Started) { w.actors.Register(st.PIDNS, x.rec.ID) }
	status, runErr := w.start(ctx, spec, res)
	w.actors.Unregister(x.rec.ID)
	x.rec.End, x.rec.ExitCode, x.rec.TimedOut = journal.Timespec(time.Now().UnixNano()), status.ExitCode, status.TimedOut
	last, err := w.note(journal.OpExecEnd, &x.rec)
	if err != nil {
		return nil, errors.Join(runErr, fmt.Errorf("record command's end: %w", err))
	}
	if runErr != nil {
		return nil, execError(runErr)
	}
	res.Cwd, res.ExitCode, res.TimedOut, res.DurationMS = x.rec.Cwd, status.ExitCode, status.TimedOut, status.Duration.Milliseconds()
	res.Seq = [2]uint64{uint64(x.rec.First), uint64(last)}
	if req.Capture {
		res.Stdout, res.Truncated.Stdout = out.text()
		res.Stderr, res.Truncated.Stderr = errOut.text()
	}
	if err := w.report(res, x, last); err != nil {
		return nil, err
	}
	if req.Atomic && res.ExitCode != 0 {
		return res, w.takeBack(res)
	}
	return res, nil
}

// start plans and runs.
func (w *Workspace) start(ctx context.Context, spec *exec.Spec, res *ExecResult) (exec.Status, error) {
	plan, err := exec.NewPlan(*spec, w.host())
	if err != nil {
		return exec.Status{ExitCode: exec.ExitSandbox}, err
	}
	for _, d := range plan.Degraded {
		res.Degraded = append(res.Degraded, d.Layer+": "+d.Detail)
	}
	status, err := exec.Run(ctx, plan)
	w.touchRuntime()
	return status, err
}

// takeBack undoes a command that failed.
func (w *Workspace) takeBack(res *ExecResult) error {
	_, err := w.Undo(context.Background(), &UndoRequest{What: fmt.Sprintf("exec:%d", res.Exec)})
	if err != nil && CodeOf(err) != CodeNothing {
		return err
	}
	res.RolledBack = true
	return nil
}

// connect gives the command its streams.
func connect(ctx context.Context, spec *exec.Spec, req *ExecRequest, s *Streams, out, errOut *capture) {
	spec.Stdin, spec.Stdout, spec.Stderr = s.Stdin, s.Stdout, s.Stderr
	if req.Capture {
		spec.Stdout, spec.Stderr = out, errOut
	}
	if s.Resize != nil {
		spec.Resize = translate(ctx, s.Resize, func(z Winsize) exec.Winsize { return exec.Winsize(z) })
	}
	if s.Signals != nil {
		spec.Signals = translate(ctx, s.Signals, func(n int) syscall.Signal { return syscall.Signal(n) })
	}
}

// translate passes values on as another type until ctx ends.
func translate[A, B any](ctx context.Context, in <-chan A, fn func(A) B) <-chan B {
	out := make(chan B)
	go func() {
		for {
			select {
			case v, ok := <-in:
				if !ok {
					return
				}
				select {
				case out <- fn(v):
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// spec says what to run, from the request and the configuration.
func (w *Workspace) spec(m *mounted, req *ExecRequest) (*exec.Spec, error) {
	c := &w.cfg.Exec
	if len(req.Command) == 0 || req.Command[0] == "" {
		return nil, Fail(CodeUsage, "run command: there is none")
	}
	network, err := choose("network", req.Network, c.Network, "none", "host")
	if err != nil {
		return nil, err
	}
	if _, err := choose("runner", req.Runner, c.Runner, "auto", "ns"); err != nil {
		return nil, err
	}
	root, err := w.tree.Snapshot().Root()
	if err != nil {
		return nil, err
	}
	timeout := c.Timeout
	if req.Timeout != nil {
		timeout = *req.Timeout
	}
	cwd := req.Cwd
	if !path.IsAbs(cwd) {
		cwd = path.Join(c.Workdir, cwd)
	}
	size := exec.Winsize{Rows: 24, Cols: 80}
	if req.Size != nil {
		size = exec.Winsize(*req.Size)
	}
	return &exec.Spec{
		Command: req.Command, Cwd: cwd, Env: w.environ(req),
		Mount: m.Dir(), MountDev: m.Dev(), At: append([]string{c.Workdir}, req.At...),
		Owner:  exec.Owner{UID: root.Stat.Attr.UID, GID: root.Stat.Attr.GID},
		Hidden: w.hidden(m.Dir()), Timeout: timeout.Duration(), Network: network,
		Limits:           exec.Limits{CPUs: c.CPUs, Memory: c.Memory, Tmpfs: c.Tmpfs, Pids: c.Pids},
		RequireOSSandbox: c.RequireOSSandbox, TTY: req.TTY, Size: size,
	}, nil
}

// choose takes the request's word over the configured one. Network access may
// be narrowed by a request, and widened by the person who makes it.
func choose(what, asked, configured string, known ...string) (string, error) {
	word := configured
	if asked != "" {
		word = asked
	}
	if !slices.Contains(known, word) {
		return "", Fail(CodeUsage, "run command: %s %q is not supported yet", what, word).Hinted("use one of %s", strings.Join(known, ", "))
	}
	return word, nil
}

// environ is the command's environment on top of the sandbox's minimal one:
// configured variables, then those passed on from the caller, then the
// request's own.
func (w *Workspace) environ(req *ExecRequest) []string {
	var env []string
	for k, v := range w.cfg.Exec.Env {
		env = append(env, k+"="+v)
	}
	slices.Sort(env)
	for _, kv := range req.Environ {
		k, _, _ := strings.Cut(kv, "=")
		if slices.Contains(w.cfg.Exec.PassEnv, k) {
			env = append(env, kv)
		}
	}
	var own []string
	for k, v := range req.Env {
		own = append(own, k+"="+v)
	}
	slices.Sort(own)
	return append(env, own...)
}

// execError gives the sandbox's errors their codes.
func execError(err error) error {
	var e *exec.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("run command: %w", err)
	}
	code := CodeFailure
	switch e.Code {
	case exec.ExitInvoke:
		code = CodeCannotRun
	case exec.ExitNotFound:
		code = CodeNoCommand
	default:
		if e.Mend != "" {
			code = CodeEnvironment
		}
	}
	out := Fail(code, "run command: %s", (&exec.Error{Layer: e.Layer, Message: e.Message}).Error())
	if e.Layer == "namespaces" {
		out = Fail(CodeEnvironment, "run command: no user namespace for the sandbox can be made: %s", e.Message)
	}
	out.Hint = e.Mend
	return out
}

// probeHost finds out what the sandbox can use here, and removes what an
// earlier daemon that was killed has left of it.
func probeHost() exec.Host {
	h := exec.Probe()
	exec.SweepCgroups(h)
	return h
}

// hidden returns the host directories that a command must not see beside the
// mount, should they lie below a system directory that the sandbox shows: the
// state root, the mount point and the sources. A source that is such a
// directory itself stays: without it no command would run.
func (w *Workspace) hidden(mountPoint string) []string {
	dirs := []string{w.root(), mountPoint}
	for _, dir := range w.cfg.dirs() {
		if path.Dir(dir) != "/" {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
