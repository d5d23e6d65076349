package journal

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	osexec "os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/winkfs/winkfs/tests/harness"
)

// crashRecords is how many records the workload of a crash test appends.
const crashRecords = 60

func TestMain(m *testing.M) {
	if dir := os.Getenv("JOURNAL_CRASH_DIR"); dir != "" {
		crashChild(dir)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// crashChild runs the workload and kills itself at the k-th change to the
// disk, or within it if the change is a write: after half of its bytes. It
// prints the number of each record once Append has acknowledged it.
func crashChild(dir string) {
	k, _ := strconv.Atoi(os.Getenv("JOURNAL_CRASH_AT"))
	torn := os.Getenv("JOURNAL_CRASH_TORN") != ""
	kill := func() { syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }
	n := 0
	o := Options{SegmentSize: 6 << 10, PackSize: 8 << 10, Clock: tick(), Inject: func(kind string, size int) *Fault {
		if n++; n != k {
			return nil
		}
		if !torn {
			kill()
		}
		return &Fault{Keep: size / 2, Then: kill}
	}}
	work := crashWork
	if os.Getenv("JOURNAL_CRASH_WORK") == "collect" {
		work = crashCollect
	}
	if err := work(dir, o, func(s Seq) { fmt.Println(s) }); err != nil {
		fmt.Println("failed:", err)
	}
	fmt.Println("end")
}

// crashWork appends the records of a fixed history, with syncs and commits in
// between, going on where the journal in dir ends.
func crashWork(dir string, o Options, acked func(Seq)) error {
	s, err := Create(dir, o)
	if err != nil {
		return err
	}
	h := newHistory(11, s)
	t := &failer{}
	for i := range crashRecords {
		h.next(t)
		if t.failed {
			return fmt.Errorf("append failed")
		}
		acked(h.st.Seq)
		if i%7 == 3 {
			if err := s.Sync(); err != nil {
				return err
			}
		}
		if i%13 == 5 {
			if err := s.Commit(); err != nil {
				return err
			}
		}
	}
	return s.Close()
}

// failer is a testing.TB outside a test.
type failer struct {
	testing.TB
	failed bool
}

func (f *failer) Helper()      {}
func (f *failer) Fatal(...any) { f.failed = true }

// A process killed at any change to the disk loses nothing that Append has
// acknowledged, and of the record in flight all or nothing is there.
func TestCrashAtEveryWrite(t *testing.T) {
	if testing.Short() {
		harness.Lacking(t, "time: it starts hundreds of processes")
	}
	want := wantStates(t)
	for _, torn := range []string{"", "1"} {
		for k := 1; ; k++ {
			dir := t.TempDir()
			acked, ended := runCrashChild(t, dir, k, torn)
			checkCrash(t, fmt.Sprintf("killed at write %d (torn %q)", k, torn), dir, acked, want)
			if ended {
				if acked != crashRecords {
					t.Fatalf("the last run acknowledged %d records", acked)
				}
				break
			}
		}
	}
}

// wantStates returns the states of the workload after each record.
func wantStates(t *testing.T) []*State {
	dir := t.TempDir()
	if err := crashWork(dir, Options{SegmentSize: 6 << 10, PackSize: 8 << 10, Clock: tick()}, func(Seq) {}); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, dir, Options{ReadOnly: true})
	states := []*State{NewState()}
	err := s.Records(0, 0, func(r *Record) error {
		st := states[len(states)-1].Clone()
		st.Apply(r)
		states = append(states, st)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return states
}

func runCrashChild(t *testing.T, dir string, k int, torn string) (acked Seq, ended bool) {
	cmd := osexec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "JOURNAL_CRASH_DIR="+dir, "JOURNAL_CRASH_AT="+strconv.Itoa(k), "JOURNAL_CRASH_TORN="+torn)
	out, _ := cmd.Output()
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		if lines.Text() == "end" {
			return acked, true
		}
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatalf("child at %d says %q", k, lines.Text())
		}
		acked = Seq(n)
	}
	return acked, false
}

func checkCrash(t *testing.T, what, dir string, acked Seq, want []*State) {
	t.Helper()
	s, err := Open(dir, Options{Clock: tick()})
	if err != nil && acked == 0 {
		// Killed in Create: it can be done again.
		s, err = Create(dir, Options{Clock: tick()})
	}
	if err != nil {
		t.Fatalf("%s: open: %v", what, err)
	}
	defer s.Close()
	head := s.Head()
	if head < acked || head > acked+1 {
		t.Fatalf("%s: head is %d, %d was acknowledged", what, head, acked)
	}
	st := s.State()
	sameState(t, what, st, want[head])
	if _, err := s.Append(&Record{Op: OpCheckpoint, Note: &Note{Checkpoint: "after"}}, nil); err != nil {
		t.Fatalf("%s: append: %v", what, err)
	}
	mustClose(t, s)
	r, err := Verify(dir)
	if err != nil || len(r.Problems) > 0 || r.LastSeq != head+1 {
		t.Fatalf("%s: verify: %+v, %v", what, r, err)
	}
}

// A kill at any moment, also within the database's own writes, is survived.
func TestCrashAtRandomTimes(t *testing.T) {
	if testing.Short() {
		harness.Lacking(t, "time: it starts many processes")
	}
	want := wantStates(t)
	for i := range 30 {
		dir := t.TempDir()
		cmd := osexec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "JOURNAL_CRASH_DIR="+dir)
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i) * time.Millisecond)
		cmd.Process.Kill()
		cmd.Wait()
		acked := Seq(bytes.Count(out.Bytes(), []byte("\n")))
		if bytes.Contains(out.Bytes(), []byte("end")) {
			acked--
		}
		checkCrash(t, fmt.Sprintf("killed after %d ms", i), dir, acked, want)
	}
}
