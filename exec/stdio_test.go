package exec

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

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

func TestRunOneWriterForBoth(t *testing.T) {
	s := workspace(t)
	var out bytes.Buffer
	s.Stdout, s.Stderr = &out, &out
	s.Command = []string{"sh", "-c", "for i in 1 2 3; do echo o$i; echo e$i >&2; done"}
	if r := runSpec(t, s); r.err != nil || out.String() != "o1\ne1\no2\ne2\no3\ne3\n" {
		t.Errorf("got %q, %v", out.String(), r.err)
	}
}
