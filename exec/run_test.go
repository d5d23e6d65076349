package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestRunStatus(t *testing.T) {
	tests := []struct {
		name    string
		command []string
		code    int
		signal  syscall.Signal
		err     string // contained in the error; "" = none
	}{
		{"true", []string{"true"}, 0, 0, ""},
		{"own code", []string{"sh", "-c", "exit 7"}, 7, 0, ""},
		{"not found", []string{"no-such-command"}, 127, 0, "no-such-command: command not found"},
		{"no such path", []string{"/no/such/command"}, 127, 0, "no such file"},
		{"not executable", []string{"/etc/passwd"}, 126, 0, "permission denied"},
		{"directory", []string{"/usr"}, 126, 0, "is a directory"},
		{"killed", []string{"sh", "-c", "kill -TERM $$"}, 143, syscall.SIGTERM, ""},
		{"killed hard", []string{"sh", "-c", "kill -KILL $$"}, 137, syscall.SIGKILL, ""},
		{"kills the first process", []string{"sh", "-c", "kill -TERM 1; kill -KILL 1; kill -STOP 1; kill -SEGV 1; kill -URG 1; sleep 0.05; exit 3"}, 3, 0, ""},
		{"missing interpreter", []string{"sh", "-c", "printf '#!/no/interpreter\\n' >x; chmod +x x; ./x"}, 127, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := workspace(t)
			s.Command = tt.command
			r := runSpec(t, s)
			if r.ExitCode != tt.code || r.Signal != tt.signal {
				t.Errorf("got code %d signal %d, want %d and %d (stderr %s)", r.ExitCode, r.Signal, tt.code, tt.signal, r.errout)
			}
			if tt.err == "" && r.err != nil || tt.err != "" && (r.err == nil || !strings.Contains(r.err.Error(), tt.err)) {
				t.Errorf("got error %v, want %q", r.err, tt.err)
			}
		})
	}
}

func TestRunStreams(t *testing.T) {
	s := workspace(t)
	s.Stdin = strings.NewReader(strings.Repeat("line\n", 100_000))
	s.Command = []string{"sh", "-c", "wc -l; echo err >/dev/stderr; echo out >/dev/stdout"}
	r := runSpec(t, s)
	if want := "100000\nout\n"; r.err != nil || r.out != want || r.errout != "err\n" {
		t.Errorf("got %q, %q, %v, want %q", r.out, r.errout, r.err, want)
	}
}

// TestRunStreamsAreNotOurs hands over real files and looks at what arrives.
func TestRunStreamsAreNotOurs(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	s := workspace(t)
	s.Stdout, s.Command = f, []string{"sh", "-c", "readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2; ls /proc/self/fd | wc -w"}
	if r := runSpec(t, s); r.err != nil || r.ExitCode != 0 {
		t.Fatalf("got %d, %v: %s", r.ExitCode, r.err, r.errout)
	}
	got, _ := os.ReadFile(f.Name())
	lines := strings.Fields(string(got))
	if len(lines) != 4 || lines[0] != "/dev/null" || !strings.HasPrefix(lines[1], "pipe:") || !strings.HasPrefix(lines[2], "pipe:") {
		t.Errorf("streams are %q", lines)
	}
	// ls itself holds the directory open.
	if lines[len(lines)-1] != "4" {
		t.Errorf("%s descriptors are open, want 3 and ls's own", lines[len(lines)-1])
	}
}

func TestRunEnvironment(t *testing.T) {
	s := workspace(t)
	t.Setenv("WINKFS_TEST_SECRET", "leak")
	s.Env = []string{"A=1", "LANG=de_DE.UTF-8", "A=2"}
	s.Command = []string{"env"}
	r := runSpec(t, s)
	if strings.Contains(r.out, "SECRET") || strings.Contains(r.out, "GODEBUG") || strings.Contains(r.out, "GOMAXPROCS") {
		t.Errorf("the environment leaks:\n%s", r.out)
	}
	for _, want := range []string{"A=2\n", "LANG=de_DE.UTF-8\n", "WINKFS=1\n", "PYTHONDONTWRITEBYTECODE=1\n", "PWD=/workspace\n"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("the environment lacks %q:\n%s", want, r.out)
		}
	}
}

func TestRunCwd(t *testing.T) {
	s := workspace(t)
	must(t, os.MkdirAll(filepath.Join(s.Mount, "a/b"), 0o755))
	must(t, os.Symlink("a", filepath.Join(s.Mount, "in")))
	must(t, os.Symlink("/etc", filepath.Join(s.Mount, "out")))
	must(t, os.Symlink("../../etc", filepath.Join(s.Mount, "up")))
	giveTo(t, s.Mount, s.Owner)
	s.At = []string{"/workspace", "/home/someone/src/project"}
	tests := []struct{ cwd, want, err string }{
		{"", "/workspace", ""},
		{"/workspace/a/b", "/workspace/a/b", ""},
		{"/home/someone/src/project/a", "/home/someone/src/project/a", ""},
		{"/workspace/in/b", "/workspace/a/b", ""},
		{"/workspace/out", "", "working directory"},
		{"/workspace/up", "", "working directory"},
		{"/workspace/missing", "", "working directory"},
	}
	for _, tt := range tests {
		t.Run(tt.cwd, func(t *testing.T) {
			s.Cwd, s.Command = tt.cwd, []string{"/bin/pwd"}
			r := runSpec(t, s)
			if tt.err != "" {
				if r.ExitCode != ExitSandbox || r.err == nil || !strings.Contains(r.err.Error(), tt.err) {
					t.Errorf("got %d, %v, want 125 and %q", r.ExitCode, r.err, tt.err)
				}
				return
			}
			if r.err != nil || r.out != tt.want+"\n" {
				t.Errorf("got %q, %v, want %q", r.out, r.err, tt.want)
			}
		})
	}
}

// TestRunOwner wants what is made inside to belong to the owner outside.
func TestRunOwner(t *testing.T) {
	for _, owner := range owners() {
		t.Run(fmt.Sprint(owner.UID), func(t *testing.T) {
			s := workspace(t)
			must(t, os.WriteFile(filepath.Join(s.Mount, "old"), []byte("x\n"), 0o600))
			s.Owner = owner
			giveTo(t, s.Mount, owner)
			s.Command = []string{"sh", "-ec", "cat old; echo y >>old; echo new >new; chmod 640 old; ln old link; mv new newer; stat -c %u newer; id -u"}
			r := runSpec(t, s)
			if r.err != nil || r.ExitCode != 0 {
				t.Fatalf("got %d, %v: %s", r.ExitCode, r.err, r.errout)
			}
			lines := strings.Fields(r.out)
			if n := len(lines); lines[n-1] != lines[n-2] {
				t.Errorf("the file's owner is %s inside, the command's user %s", lines[n-2], lines[n-1])
			}
			for _, name := range []string{"old", "newer", "link"} {
				var st unix.Stat_t
				must(t, unix.Stat(filepath.Join(s.Mount, name), &st))
				if st.Uid != owner.UID || st.Gid != owner.GID {
					t.Errorf("%s belongs to %d:%d, want %v", name, st.Uid, st.Gid, owner)
				}
			}
		})
	}
}

func owners() []Owner {
	if !probed().Root() {
		return []Owner{{uint32(os.Geteuid()), uint32(os.Getegid())}}
	}
	return []Owner{{0, 0}, {1001, 1002}}
}

// TestRunUser wants a kernel id that is not root's, seen from outside, and
// OnStart before the first instruction.
func TestRunUser(t *testing.T) {
	s := workspace(t)
	started := false
	var init Started
	s.OnStart = func(st Started) {
		started, init = true, st
		if entries, _ := os.ReadDir(s.Mount); len(entries) != 0 {
			t.Errorf("the command has begun before OnStart: %v", entries)
		}
		if ns, err := pidNamespace(st.PID); err != nil || ns != st.PIDNS {
			t.Errorf("pid namespace %d, %v, want %d", ns, err, st.PIDNS)
		}
	}
	s.Command = []string{"sh", "-c", "echo >begun; sleep 30"}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan result)
	go func() { done <- runContext(t, ctx, s) }()
	waitFor(t, func() bool { _, err := os.Stat(filepath.Join(s.Mount, "begun")); return err == nil })
	for _, pid := range pidsOf(init.PIDNS) {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		uid := strings.Fields(after(string(status), "Uid:"))
		if len(uid) < 4 || probed().Initial && slices.Contains(uid[:4], "0") {
			t.Errorf("process %d has the ids %v", pid, uid)
		}
	}
	cancel()
	r := <-done
	if !started || !errors.Is(r.err, context.Canceled) || r.ExitCode != 137 {
		t.Errorf("got started %v, %v, code %d", started, r.err, r.ExitCode)
	}
	if left := pidsOf(init.PIDNS); len(left) != 0 {
		t.Errorf("processes %v are left", left)
	}
}

func TestRunNothingSurvives(t *testing.T) {
	daemonise := "setsid sh -c '(while :; do echo x >>alive; sleep 0.01; done) & ' & "
	tests := []struct {
		name, script string
		timeout      time.Duration
		code         int
	}{
		{"background", daemonise + "sleep 0.1; exit 0", 0, 0},
		{"timeout", daemonise + "sleep 60", 300 * time.Millisecond, ExitTimeout},
		{"ignores signals", "trap '' TERM INT HUP; " + daemonise + "sleep 60", 300 * time.Millisecond, ExitTimeout},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := workspace(t)
			var init Started
			s.OnStart = func(st Started) { init = st }
			s.Timeout, s.Command = tt.timeout, []string{"sh", "-c", tt.script}
			begun := time.Now()
			r := runSpec(t, s)
			if r.err != nil || r.ExitCode != tt.code || r.TimedOut != (tt.code == ExitTimeout) {
				t.Errorf("got %+v, %v, want code %d", r.Status, r.err, tt.code)
			}
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("took %s", took)
			}
			if left := pidsOf(init.PIDNS); len(left) != 0 {
				t.Errorf("processes %v are left", left)
			}
			before, err := os.Stat(filepath.Join(s.Mount, "alive"))
			must(t, err)
			time.Sleep(50 * time.Millisecond)
			if after, _ := os.Stat(filepath.Join(s.Mount, "alive")); after.Size() != before.Size() {
				t.Error("something still writes")
			}
		})
	}
}

// TestRunDiesWithDaemon kills a daemon in the middle of a run.
func TestRunDiesWithDaemon(t *testing.T) {
	s := workspace(t)
	if os.Getenv("WINKFS_TEST_DAEMON") != "" {
		s.Command, s.Timeout = []string{"sleep", "60"}, 0
		s.OnStart = func(st Started) { fmt.Println("namespace", st.PIDNS) }
		runSpec(t, s)
		return
	}
	needUserNS(t)
	cmd := osexec.Command("/proc/self/exe", "-test.run=^TestRunDiesWithDaemon$")
	cmd.Env = append(os.Environ(), "WINKFS_TEST_DAEMON=1")
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var ns uint64
	if _, err := fmt.Fscanf(out, "namespace %d", &ns); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return len(pidsOf(ns)) >= 2 })
	begun := time.Now()
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	waitFor(t, func() bool { return len(pidsOf(ns)) == 0 })
	t.Logf("gone after %s", time.Since(begun))
}

// TestRunOutputAfterDeath wants all output of a command that is killed, and no
// hang over descriptors that it had spread.
func TestRunOutputAfterDeath(t *testing.T) {
	s := workspace(t)
	s.Timeout = 500 * time.Millisecond
	s.Command = []string{"sh", "-c", "head -c 300000 /dev/zero; sleep 60 & sleep 60"}
	r := runSpec(t, s)
	if !r.TimedOut || len(r.out) != 300000 {
		t.Errorf("got %+v and %d bytes", r.Status, len(r.out))
	}
}

func TestRunStdinNeverEnds(t *testing.T) {
	s := workspace(t)
	r, w := io.Pipe()
	defer func() { _ = w.Close() }()
	s.Stdin, s.Command = r, []string{"true"}
	if got := runSpec(t, s); got.err != nil || got.ExitCode != 0 {
		t.Errorf("got %+v, %v", got.Status, got.err)
	}
}

func TestRunBrokenWriter(t *testing.T) {
	s := workspace(t)
	s.Stdout = brokenWriter{}
	s.Command = []string{"sh", "-c", "head -c 1000000 /dev/zero && echo done >finished"}
	if r := runSpec(t, s); r.ExitCode != 0 {
		t.Errorf("got %+v, %v", r.Status, r.err)
	}
	if _, err := os.Stat(filepath.Join(s.Mount, "finished")); err != nil {
		t.Error("the command stalled on a broken writer")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestRunSignals(t *testing.T) {
	s := workspace(t)
	signals := make(chan syscall.Signal, 1)
	s.Signals = signals
	s.Command = []string{"sh", "-c", "trap 'echo got; exit 9' USR1; echo >ready; while :; do sleep 0.02; done"}
	go func() {
		waitFor(t, func() bool { _, err := os.Stat(filepath.Join(s.Mount, "ready")); return err == nil })
		signals <- syscall.SIGUSR1
	}()
	if r := runSpec(t, s); r.ExitCode != 9 || r.out != "got\n" {
		t.Errorf("got %+v, %q, %v", r.Status, r.out, r.err)
	}
}

func TestRunTerminal(t *testing.T) {
	s := workspace(t)
	s.TTY, s.Size = true, Winsize{33, 99}
	sizes := make(chan Winsize)
	s.Resize = sizes
	s.Stdin = strings.NewReader("echo $((6*7)); exit 5\n")
	s.Command = []string{"sh", "-c", "tty; stty size; test -t 0 && test -t 1 && echo terminal; trap 'stty size' WINCH; echo >ready; " +
		"while [ ! -e resized ]; do sleep 0.02; done; exec sh"}
	go func() {
		waitFor(t, func() bool { _, err := os.Stat(filepath.Join(s.Mount, "ready")); return err == nil })
		sizes <- Winsize{44, 111}
		time.Sleep(100 * time.Millisecond)
		_ = os.WriteFile(filepath.Join(s.Mount, "resized"), nil, 0o644)
	}()
	r := runSpec(t, s)
	for _, want := range []string{"/dev/pts/0", "33 99", "terminal", "44 111", "42"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("the terminal does not show %q:\n%s", want, r.out)
		}
	}
	if r.err != nil || r.ExitCode != 5 {
		t.Errorf("got %+v, %v", r.Status, r.err)
	}
}

func TestRunWrongMount(t *testing.T) {
	for _, change := range []func(*Spec){
		func(s *Spec) { s.MountDev++ },
		func(s *Spec) { s.MountType = unix.PROC_SUPER_MAGIC },
		func(s *Spec) { s.Mount += "-missing" },
	} {
		s := workspace(t)
		s.Command = []string{"true"}
		change(&s)
		r := runSpec(t, s)
		if r.ExitCode != ExitSandbox || r.err == nil || !strings.Contains(r.err.Error(), "workspace mount") {
			t.Errorf("got %+v, %v", r.Status, r.err)
		}
	}
}

func TestRunPaths(t *testing.T) {
	for _, at := range []string{"/tmp", "/tmp/x/y", "/home", "/home/winkfs", "/root/project", "/var/tmp/w", "/etc/thing", "/opt/x"} {
		t.Run(at, func(t *testing.T) {
			s := workspace(t)
			must(t, os.WriteFile(filepath.Join(s.Mount, "here"), nil, 0o644))
			s.At = []string{at}
			s.Command = []string{"sh", "-ec", "test -e here; /bin/pwd; echo x >\"$HOME/file\"; test ! -e file; ls"}
			r := runSpec(t, s)
			if r.err != nil || r.ExitCode != 0 || r.out != at+"\nhere\n" {
				t.Errorf("got %+v, %v, %q, %q", r.Status, r.err, r.out, r.errout)
			}
		})
	}
}

func TestRunHidden(t *testing.T) {
	s := workspace(t)
	s.Hidden = []string{"/usr/share", "/nowhere"}
	s.Command = []string{"ls", "-A", "/usr/share"}
	if r := runSpec(t, s); r.err != nil || r.ExitCode != 0 || r.out != "" {
		t.Errorf("got %+v, %v, %q", r.Status, r.err, r.out)
	}
}

func TestRunPidLimit(t *testing.T) {
	s := workspace(t)
	s.Limits.Pids, s.Timeout = 40, time.Second
	s.Command = []string{"sh", "-c", "f() { f | f & }; f; sleep 60"}
	most := 0
	done := make(chan struct{})
	s.OnStart = func(st Started) {
		go func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(20 * time.Millisecond):
					most = max(most, len(pidsOf(st.PIDNS)))
				}
			}
		}()
	}
	r := runSpec(t, s)
	done <- struct{}{}
	if most > 40+2 {
		t.Errorf("%d processes ran", most)
	}
	if r.err != nil {
		t.Errorf("got %+v, %v", r.Status, r.err)
	}
}

func TestRunMemoryLimit(t *testing.T) {
	s := workspace(t)
	s.Limits.Memory = 64 << 20
	s.Command = []string{"sh", "-c", "head -c 500000000 /dev/zero | tail -c 400000000 | wc -c"}
	r := runSpec(t, s)
	if r.err != nil || strings.TrimSpace(r.out) == "400000000" {
		t.Errorf("got %+v, %v, %q", r.Status, r.err, r.out)
	}
	if _, ok := probed().controller("memory"); ok && !r.OOMKilled {
		t.Error("nothing was killed for its memory")
	}
}

func TestRunCPULimit(t *testing.T) {
	if _, ok := probed().controller("cpu"); !ok {
		t.Skip("processor time can't be limited here")
	}
	s := workspace(t)
	s.Limits.CPUs = 0.1
	s.Timeout = 1 * time.Second
	s.Command = []string{"sh", "-c", "(while :; do :; done) & while :; do :; done"}
	var before, after unix.Rusage
	must(t, unix.Getrusage(unix.RUSAGE_CHILDREN, &before))
	runSpec(t, s)
	must(t, unix.Getrusage(unix.RUSAGE_CHILDREN, &after))
	// Only stage 1 and what it has waited for is counted, which is enough to
	// see a limit that does nothing: the loop it waits for in its end.
	if used := after.Utime.Nano() - before.Utime.Nano(); used > int64(600*time.Millisecond) {
		t.Errorf("used %s of a second", time.Duration(used))
	}
}

func TestRunLeavesNoCgroup(t *testing.T) {
	s := workspace(t)
	s.Limits = Limits{CPUs: 1, Memory: 256 << 20, Pids: 50}
	s.Command = []string{"true"}
	if r := runSpec(t, s); r.err != nil || r.ExitCode != 0 {
		t.Fatalf("got %+v, %v", r.Status, r.err)
	}
	for _, c := range probed().Controllers {
		if left, _ := filepath.Glob(filepath.Join(c.Dir, fmt.Sprintf("%s%d-*", leafPrefix, os.Getpid()))); len(left) > 0 {
			t.Errorf("left %v", left)
		}
	}
}

func TestRunNoLeakedDescriptors(t *testing.T) {
	count := func() int {
		entries, _ := os.ReadDir("/proc/self/fd")
		return len(entries)
	}
	s := workspace(t)
	s.Command, s.Stdin = []string{"true"}, strings.NewReader("x")
	runSpec(t, s)
	before := count()
	for range 5 {
		runSpec(t, s)
		s.Command = []string{"missing"}
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors are open, %d before", after, before)
	}
}

// TestRunCost guards the order of magnitude only; `make bench` measures.
func TestRunCost(t *testing.T) {
	s := workspace(t)
	s.Command = []string{"true"}
	var took []time.Duration
	for range 15 {
		begun := time.Now()
		if r := runSpec(t, s); r.err != nil {
			t.Fatal(r.err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	t.Logf("median %s, worst %s", took[len(took)/2], took[len(took)-1])
	if took[0] > 500*time.Millisecond {
		t.Errorf("the quickest of %d took %s", len(took), took[0])
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// giveTo makes a tree the owner's.
func giveTo(t *testing.T, dir string, o Owner) {
	t.Helper()
	must(t, filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(o.UID), int(o.GID))
	}))
}

func waitFor(t *testing.T, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("waited in vain")
			return
		}
	}
}

// pidsOf lists the processes of a pid namespace, but for those that are dead
// and not yet waited for.
func pidsOf(ns uint64) []int {
	var pids []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		var pid int
		if _, err := fmt.Sscan(e.Name(), &pid); err != nil {
			continue
		}
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if got, err := pidNamespace(pid); err == nil && got == ns && !strings.Contains(string(status), "State:\tZ") {
			pids = append(pids, pid)
		}
	}
	return pids
}

func after(text, mark string) string {
	_, rest, _ := strings.Cut(text, mark)
	return rest
}
