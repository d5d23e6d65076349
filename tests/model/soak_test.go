package model

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/winkfs/winkfs/tests/harness"
)

// soakers is how many processes work in the mount at the same time.
const soakers = 8

// TestSoak lets eight processes do random operations in one mount for
// SOAK_SECONDS (5 if it is not set), each in a part of its own that is compared
// with a plain directory. Beside them the host edits a part that nobody else
// touches, commands run in the sandbox and are undone, history is collected,
// and the kernel's caches are dropped every 0.3 s in every second span of ten.
// The daemon's memory and descriptors must not grow, its log must tell of no
// error, and what the mount shows at the end, as well as after it was unmounted
// and verified, must equal the plain directory. SOAK_KEEP names a directory for
// what a failed soak leaves.
func TestSoak(t *testing.T) {
	harness.Require(t, "binary", "fuse", "userns")
	s := newSoak(t, time.Duration(number("SOAK_SECONDS", 5))*time.Second)
	t.Logf("seed %d, %v", s.seed, s.length)
	dropped := make(chan struct{})
	go func() {
		defer close(dropped)
		s.dropCaches()
	}()
	var samples []sample
	var wg sync.WaitGroup
	wg.Go(func() { samples = s.watchDaemon() })
	for i := range soakers {
		wg.Go(func() { s.end(fmt.Sprintf("process %d", i), s.work(i)) })
	}
	wg.Go(func() { s.end("host", s.editHost()) })
	wg.Go(func() { s.end("commands", s.runCommands()) })
	wg.Go(func() { s.end("collection", s.collect()) })
	wg.Wait()
	<-dropped
	s.finish(samples)
}

// soak is what the parts of a soak share.
type soak struct {
	t      *testing.T
	w      *harness.Workspace
	seed   uint64
	length time.Duration
	over   chan struct{} // closed when the time is over or something failed
	stop   func()
	// lower and plain are the source and what the mount must show; template is
	// what each part begins with.
	lower, plain, template string

	mu     sync.Mutex
	counts map[string]int // of what was done, protected by mu
}

func newSoak(t *testing.T, length time.Duration) *soak {
	e := harness.New(t)
	s := &soak{
		t: t, seed: seeds(1)[0], length: length, over: make(chan struct{}), counts: map[string]int{},
		lower: filepath.Join(e.Dir, "lower"), plain: filepath.Join(e.Dir, "plain"), template: filepath.Join(e.Dir, "template"),
	}
	mkdir(t, s.template)
	MakeLower(t, s.template)
	for _, dir := range []string{s.lower, s.plain} {
		mkdir(t, filepath.Join(dir, hostPart))
		mkdir(t, filepath.Join(dir, commandPart))
	}
	s.w = e.NewWorkspace("soak", s.lower)
	s.stop = sync.OnceFunc(func() { close(s.over) })
	timer := time.AfterFunc(length, s.stop)
	t.Cleanup(func() { timer.Stop(); s.stop() })
	t.Cleanup(s.keep)
	return s
}

// keep moves what a failed soak leaves to the directory that SOAK_KEEP names,
// which must be on the same file system: a copy has other inode numbers.
func (s *soak) keep() {
	to := os.Getenv("SOAK_KEEP")
	if !s.t.Failed() || to == "" {
		return
	}
	s.w.End()
	for _, dir := range []string{s.lower, s.plain, s.w.State} {
		if err := os.Rename(dir, filepath.Join(to, filepath.Base(dir))); err != nil {
			s.t.Log(err)
		}
	}
}

// end notes how one of the soak's parts ended; an error ends all.
func (s *soak) end(what string, err error) {
	if err != nil {
		s.t.Errorf("seed %d: %s: %v", s.seed, what, err)
		s.stop()
	}
}

func (s *soak) count(what string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what] += n
}

// pause waits and reports whether the soak goes on.
func (s *soak) pause(d time.Duration) bool {
	select {
	case <-s.over:
		return false
	case <-time.After(d):
		return true
	}
}

func (s *soak) dropCaches() {
	begin := time.Now()
	for s.pause(300 * time.Millisecond) {
		if time.Since(begin)/(10*time.Second)%2 == 0 {
			harness.DropCaches()
			s.count("cache drops", 1)
		}
	}
}

// collect drops history now and then, so that a long soak does not fill the
// disk.
func (s *soak) collect() error {
	for s.pause(20 * time.Second) {
		if r := s.run("gc", "-w", s.w.Name, "--records", "50000"); r.Code != 0 {
			return fmt.Errorf("gc: exit status %d: %s%s", r.Code, r.Stdout, r.Stderr)
		}
		s.count("collections", 1)
	}
	return nil
}

// run runs a winkfs command like harness.Env.Run, from any goroutine.
func (s *soak) run(args ...string) harness.Result {
	var out, errs bytes.Buffer
	cmd := s.w.Cmd(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *osexec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return harness.Result{Stderr: err.Error(), Code: -1}
	}
	return harness.Result{Stdout: out.String(), Stderr: errs.String(), Code: cmd.ProcessState.ExitCode()}
}

// finish compares, unmounts, verifies and compares again.
func (s *soak) finish(samples []sample) {
	s.t.Helper()
	s.mu.Lock()
	s.t.Logf("done: %v", s.counts)
	s.mu.Unlock()
	checkGrowth(s.t, samples)
	if s.t.Failed() {
		return
	}
	p := &Pair{Subject: s.w.Mount, Reference: s.plain}
	compare := func(when string) {
		s.t.Helper()
		if err := sameTrees(p, when); err != nil {
			s.t.Errorf("seed %d: %v", s.seed, err)
		}
	}
	compare("at the end")
	harness.DropCaches()
	compare("with dropped caches")
	s.w.Umount()
	s.w.MustIn("verify")
	s.w.Remount()
	compare("after a remount")
	s.w.Umount()
	s.checkSource()
	s.checkLog()
}

// checkSource compares the parts of the source that the processes worked over
// with what they were made from.
func (s *soak) checkSource() {
	s.t.Helper()
	want := harness.MustDump(s.t, s.template)
	parts, err := filepath.Glob(filepath.Join(s.lower, partPrefix+"*"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, part := range parts {
		harness.Same(s.t, "the source's "+filepath.Base(part), harness.MustDump(s.t, part), want, harness.OmitIno)
	}
}

// checkLog looks for errors that the daemon has told of.
func (s *soak) checkLog() {
	s.t.Helper()
	logs, err := filepath.Glob(filepath.Join(s.w.State, "*", "log"))
	if err != nil || len(logs) != 1 {
		s.t.Fatalf("the state has the logs %q (%v), want one", logs, err)
	}
	b, err := os.ReadFile(logs[0])
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, "level=ERROR") || strings.Contains(line, "level=WARN") {
			s.t.Errorf("the daemon's log: %s", line)
		}
	}
}
