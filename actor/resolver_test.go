package actor

import (
	"bufio"
	"os"
	osexec "os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestActorOfOwnThread(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := New()
	defer r.Close()
	comm, _ := os.ReadFile("/proc/self/comm")
	for range 3 { // the second answer comes from the cache
		a := r.Actor(uint32(unix.Gettid()), 7)
		if a.PID != uint32(os.Getpid()) || a.TID != uint32(unix.Gettid()) || a.UID != 7 || a.Comm != strings.TrimSpace(string(comm)) || a.Exec != 0 {
			t.Errorf("got %+v", a)
		}
	}
	if a := r.Actor(uint32(unix.Gettid()), noID); a.UID != uint32(os.Geteuid()) {
		t.Errorf("got uid %d for a request without one, want %d", a.UID, os.Geteuid())
	}
}

func TestActorUnknown(t *testing.T) {
	r := New()
	for _, tid := range []uint32{0, 4_000_000_000} {
		if a := r.Actor(tid, 5); a.Comm != unknown || a.PID != 0 || a.TID != tid || a.UID != 5 || a.Exec != 0 {
			t.Errorf("tid %d: got %+v", tid, a)
		}
	}
}

func TestActorGone(t *testing.T) {
	r := New()
	defer r.Close()
	cmd := osexec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tid := uint32(cmd.Process.Pid)
	waitFor(t, func() bool { return r.Actor(tid, 0).Comm == "sleep" })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if a := r.Actor(tid, 0); a.Comm != unknown || a.PID != 0 {
		t.Errorf("a process that is gone gives %+v", a)
	}
	if len(r.threads) != 0 {
		t.Errorf("%d entries are left", len(r.threads))
	}
}

// TestActorExecve wants the name at the time of the question.
func TestActorExecve(t *testing.T) {
	r := New()
	defer r.Close()
	cmd := osexec.Command("sh", "-c", "read x; exec sleep 60")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	tid := uint32(cmd.Process.Pid)
	waitFor(t, func() bool { return r.Actor(tid, 0).Comm == "sh" })
	_, _ = in.Write([]byte("\n"))
	waitFor(t, func() bool { return r.Actor(tid, 0).Comm == "sleep" })
}

// TestActorNamespace wants the processes of a pid namespace, and of one below
// it, to belong to the registered exec.
func TestActorNamespace(t *testing.T) {
	inner := startNamespace(t, "exec unshare -Urpf --mount-proc sh -c 'sleep 61 & echo; wait' 2>/dev/null")
	outer := startNamespace(t, "sleep 61 & echo; wait")
	r := New()
	defer r.Close()
	r.Register(spaceOf(t, inner), 3)
	r.Register(spaceOf(t, outer), 4)
	for pid, want := range map[int]uint64{inner: 3, outer: 4} {
		family := descendants(pid)
		if len(family) < 2 {
			t.Errorf("only %v run", family)
		}
		for _, p := range family {
			if a := r.Actor(uint32(p), 0); uint64(a.Exec) != want || a.PID != uint32(p) {
				t.Errorf("process %d: got %+v, want exec %d", p, a, want)
			}
		}
	}
	if a := r.Actor(uint32(os.Getpid()), 0); a.Exec != 0 {
		t.Errorf("a process outside got exec %d", a.Exec)
	}
	r.Unregister(3)
	if a := r.Actor(uint32(inner), 0); a.Exec != 0 {
		t.Errorf("after Unregister got exec %d", a.Exec)
	}
	if a := r.Actor(uint32(outer), 0); a.Exec != 4 {
		t.Errorf("the other exec became %d", a.Exec)
	}
}

func TestActorBounded(t *testing.T) {
	r := New()
	defer r.Close()
	var wg sync.WaitGroup
	release := make(chan struct{})
	tids := make(chan uint32, 2*maxThreads)
	for range 2 * maxThreads {
		wg.Add(1)
		go func() {
			defer wg.Done()
			runtime.LockOSThread() // and never unlocked: the thread ends too
			tids <- uint32(unix.Gettid())
			<-release
		}()
	}
	for range 2 * maxThreads {
		if a := r.Actor(<-tids, 0); a.PID != uint32(os.Getpid()) {
			t.Errorf("got %+v", a)
		}
	}
	if n := len(r.threads); n > maxThreads {
		t.Errorf("%d threads are cached", n)
	}
	close(release)
	wg.Wait()
}

func TestActorConcurrent(t *testing.T) {
	r := New()
	defer r.Close()
	base := time.Now()
	var mu sync.Mutex
	r.clock = func() time.Time { // every question finds its entry too old
		mu.Lock()
		defer mu.Unlock()
		base = base.Add(time.Second)
		return base
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 200 {
				if a := r.Actor(uint32(os.Getpid()), 0); a.PID != uint32(os.Getpid()) {
					t.Errorf("got %+v", a)
				}
				if i == 0 {
					r.Register(1, 1)
					r.Unregister(1)
				}
			}
		}()
	}
	wg.Wait()
}

func FuzzParseStatus(f *testing.F) {
	f.Add("Name:\tsh\nTgid:\t5\nUid:\t1\t2\t3\t4\n")
	f.Add("Tgid:\t0\nUid:\t0\t0\t0\t0\n")
	f.Fuzz(func(t *testing.T, text string) {
		if tgid, _, err := parseStatus(text); err == nil && tgid == 0 {
			t.Error("process 0 accepted")
		}
	})
}

// startNamespace runs a script as a child of the first process of a new pid
// namespace and returns that process's pid once the script has printed a line.
func startNamespace(t *testing.T, script string) int {
	t.Helper()
	cmd := osexec.Command("sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		if slices.Contains(strings.Split(os.Getenv("WINKFS_REQUIRE"), ","), "userns") {
			t.Fatalf("WINKFS_REQUIRE names userns: %v", err)
		}
		t.Skipf("no user namespaces: %v", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the script did not start: %v", err)
	}
	return cmd.Process.Pid
}

func spaceOf(t *testing.T, pid int) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat("/proc/"+strconv.Itoa(pid)+"/ns/pid", &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino
}

// descendants lists a process and all below it.
func descendants(pid int) []int {
	found := []int{pid}
	for i := 0; i < len(found); i++ {
		p := strconv.Itoa(found[i])
		text, _ := os.ReadFile("/proc/" + p + "/task/" + p + "/children")
		for _, f := range strings.Fields(string(text)) {
			child, _ := strconv.Atoi(f)
			found = append(found, child)
		}
	}
	return found
}

func waitFor(t *testing.T, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain")
		}
	}
}
