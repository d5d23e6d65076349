package hydrate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
)

// recorder is a Sink that remembers what it was told.
type recorder struct {
	mu       sync.Mutex
	changed  map[key]int
	overflow int
	notify   chan struct{}
}

func newRecorder() *recorder {
	return &recorder{changed: map[key]int{}, notify: make(chan struct{}, 1)}
}

func (r *recorder) LowerChanged(dir journal.NodeID, name string) { r.note(key{dir, name}) }

func (r *recorder) LowerSelfChanged(dir journal.NodeID) { r.note(key{dir, ""}) }

func (r *recorder) LowerOverflow() {
	r.mu.Lock()
	r.overflow++
	r.mu.Unlock()
	r.wake()
}

func (r *recorder) note(k key) {
	r.mu.Lock()
	r.changed[k]++
	r.mu.Unlock()
	r.wake()
}

// told returns how often the key was told of.
func (r *recorder) told(k key) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed[k]
}

func (r *recorder) wake() {
	select {
	case r.notify <- struct{}{}:
	default:
	}
}

// await fails the test unless cond becomes true.
func (r *recorder) await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		r.mu.Lock()
		ok := cond()
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-r.notify:
		case <-deadline:
			t.Fatalf("not told in time: %s; told %v", what, r.changed)
		}
	}
}

func (r *recorder) awaitKey(t *testing.T, k key) {
	t.Helper()
	r.await(t, fmt.Sprintf("%d %q", k.dir, k.name), func() bool { return r.changed[k] > 0 })
}

func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.changed)
}

// start returns a running watcher and what it tells.
func start(t *testing.T, o Options) (*Watcher, *recorder) {
	t.Helper()
	w := newWatcher(t, o)
	r := newRecorder()
	w.Start(r)
	return w, r
}

func newWatcher(t *testing.T, o Options) *Watcher {
	t.Helper()
	w, err := NewWatcher(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// watch watches dir through a descriptor that is closed right after.
func watch(t *testing.T, w *Watcher, id journal.NodeID, dir string) bool {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	return w.Watch(id, fd)
}

func mustWatch(t *testing.T, w *Watcher, id journal.NodeID, dir string) {
	t.Helper()
	if !watch(t, w, id, dir) {
		t.Fatalf("%s is not watched: %v", dir, w.Degraded())
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestChangesAreTold(t *testing.T) {
	tests := []struct {
		name string
		do   func(dir string) error
		want []string // names told of directory 1
	}{
		{"create", func(d string) error { return os.WriteFile(d+"/new", nil, 0o644) }, []string{"new"}},
		{"write", func(d string) error { return os.WriteFile(d+"/old", []byte("y"), 0o644) }, []string{"old"}},
		{"truncate", func(d string) error { return os.Truncate(d+"/old", 7) }, []string{"old"}},
		{"chmod", func(d string) error { return os.Chmod(d+"/old", 0o600) }, []string{"old"}},
		{"times", func(d string) error { return os.Chtimes(d+"/old", time.Time{}, time.Unix(1, 2)) }, []string{"old"}},
		{"unlink", func(d string) error { return os.Remove(d + "/old") }, []string{"old"}},
		{"rename", func(d string) error { return os.Rename(d+"/old", d+"/moved") }, []string{"old", "moved"}},
		{"replace", func(d string) error { return os.Rename(d+"/other", d+"/old") }, []string{"old", "other"}},
		{"mkdir", func(d string) error { return os.Mkdir(d+"/dir", 0o755) }, []string{"dir"}},
		{"symlink", func(d string) error { return os.Symlink("x", d+"/link") }, []string{"link"}},
		{"odd name", func(d string) error { return os.WriteFile(d+"/a\n\xff", nil, 0o644) }, []string{"a\n\xff"}},
		{"long name", func(d string) error { return os.WriteFile(d+"/"+strings.Repeat("n", 255), nil, 0o644) }, []string{strings.Repeat("n", 255)}},
		{"chmod of the directory", func(d string) error { return os.Chmod(d, 0o700) }, []string{""}},
		{"move of the directory", func(d string) error { return os.Rename(d, d+"-moved") }, []string{""}},
		{"delete of the directory", func(d string) error { return os.RemoveAll(d) }, []string{""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			check(t, os.Mkdir(dir, 0o755))
			check(t, os.WriteFile(dir+"/old", []byte("x"), 0o644))
			check(t, os.WriteFile(dir+"/other", []byte("z"), 0o644))
			w, r := start(t, Options{})
			mustWatch(t, w, 1, dir)
			check(t, tt.do(dir))
			for _, name := range tt.want {
				r.awaitKey(t, key{1, name})
			}
		})
	}
}

func TestWriteThroughEarlierDescriptor(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(dir + "/f")
	check(t, err)
	defer f.Close()
	w, r := start(t, Options{})
	mustWatch(t, w, 1, dir)
	_, err = f.WriteString("late")
	check(t, err)
	r.awaitKey(t, key{1, "f"})
}

func TestMappedStore(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(dir+"/f", make([]byte, 4096), 0o644))
	w, r := start(t, Options{})
	mustWatch(t, w, 1, dir)
	f, err := os.OpenFile(dir+"/f", os.O_RDWR, 0)
	check(t, err)
	p, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_WRITE, unix.MAP_SHARED)
	check(t, err)
	p[0] = 1
	check(t, unix.Munmap(p))
	check(t, f.Close())
	r.awaitKey(t, key{1, "f"})
}

func TestMoveBetweenDirectories(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	check(t, os.WriteFile(a+"/f", nil, 0o644))
	w, r := start(t, Options{})
	mustWatch(t, w, 1, a)
	mustWatch(t, w, 2, b)
	check(t, os.Rename(a+"/f", b+"/g"))
	r.awaitKey(t, key{1, "f"})
	r.awaitKey(t, key{2, "g"})
}

func TestOneDirectoryTwoNodes(t *testing.T) {
	dir := t.TempDir()
	w, r := start(t, Options{})
	mustWatch(t, w, 1, dir)
	mustWatch(t, w, 2, dir)
	check(t, os.WriteFile(dir+"/f", nil, 0o644))
	r.awaitKey(t, key{1, "f"})
	r.awaitKey(t, key{2, "f"})
	w.Unwatch(1)
	check(t, os.WriteFile(dir+"/g", nil, 0o644))
	r.awaitKey(t, key{2, "g"})
	if got := w.Len(); got != 1 {
		t.Errorf("watched nodes: got %d, want 1", got)
	}
}

func TestNodeMovesToAnotherDirectory(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	w, r := start(t, Options{})
	mustWatch(t, w, 1, a)
	mustWatch(t, w, 1, b)
	check(t, os.WriteFile(a+"/old", nil, 0o644))
	check(t, os.WriteFile(b+"/new", nil, 0o644))
	r.awaitKey(t, key{1, "new"})
	if r.told(key{1, "old"}) > 0 {
		t.Error("told of the directory that the node no longer stands for")
	}
}

func TestUnwatch(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	w, r := start(t, Options{})
	mustWatch(t, w, 1, a)
	mustWatch(t, w, 2, b)
	w.Unwatch(1)
	w.Unwatch(1)
	w.Unwatch(99)
	check(t, os.WriteFile(a+"/f", nil, 0o644))
	check(t, os.WriteFile(b+"/f", nil, 0o644))
	r.awaitKey(t, key{2, "f"})
	if r.told(key{1, "f"}) > 0 {
		t.Error("told of a directory that is not watched any more")
	}
}

func TestDeletedDirectoryFreesItsWatch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	check(t, os.Mkdir(dir, 0o755))
	w, r := start(t, Options{})
	mustWatch(t, w, 1, dir)
	check(t, os.Remove(dir))
	r.awaitKey(t, key{1, ""})
	r.await(t, "the watch is freed", func() bool { return w.Len() == 0 })
	check(t, os.Mkdir(dir, 0o755))
	mustWatch(t, w, 1, dir)
	r.reset()
	check(t, os.WriteFile(dir+"/f", nil, 0o644))
	r.awaitKey(t, key{1, "f"})
}

func TestBusyFileIsToldSeldom(t *testing.T) {
	dir := t.TempDir()
	w, r := start(t, Options{})
	mustWatch(t, w, 1, dir)
	const writes = 20000
	for i := range writes {
		check(t, os.Chmod(dir, os.FileMode(0o700+i%2)))
		if i == 0 {
			check(t, os.WriteFile(dir+"/f", nil, 0o644))
		}
		check(t, os.Truncate(dir+"/f", int64(i)))
	}
	check(t, os.WriteFile(dir+"/last", nil, 0o644))
	r.awaitKey(t, key{1, "last"})
	if got := r.told(key{1, "f"}); got > writes/10 {
		t.Errorf("%d changes were told %d times", writes, got)
	}
}

func TestKernelQueueOverflow(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(dir+"/a", nil, 0o644))
	check(t, os.WriteFile(dir+"/b", nil, 0o644))
	w := newWatcher(t, Options{})
	mustWatch(t, w, 1, dir)
	queue, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	check(t, err)
	var n int
	fmt.Sscan(string(queue), &n)
	if n > 1<<17 {
		t.Skipf("a queue of %d events is too long to fill", n)
	}
	// Two names in turn, since the kernel merges equal neighbours.
	for i := range n + 16 {
		check(t, os.Truncate(dir+"/"+string(rune('a'+i%2)), int64(i)))
	}
	r := newRecorder()
	w.Start(r)
	r.await(t, "overflow", func() bool { return r.overflow > 0 })
	check(t, os.WriteFile(dir+"/after", nil, 0o644))
	r.awaitKey(t, key{1, "after"})
}

func TestSlowSinkOverflows(t *testing.T) {
	p := newPending()
	for i := range maxPending + 2 {
		p.add(key{1, fmt.Sprint(i)})
	}
	set, lost := p.take()
	if !lost || len(set) != 0 {
		t.Errorf("got lost=%v and %d changes, want an overflow and none", lost, len(set))
	}
	if _, lost := p.take(); lost {
		t.Error("the overflow is told twice")
	}
}

func TestLimits(t *testing.T) {
	t.Run("own bound", func(t *testing.T) {
		w, _ := start(t, Options{MaxWatches: 1})
		a, b := t.TempDir(), t.TempDir()
		mustWatch(t, w, 1, a)
		mustWatch(t, w, 1, a)
		if watch(t, w, 2, b) {
			t.Fatal("watched beyond the bound")
		}
		if got := w.Degraded(); len(got) != 1 || !strings.Contains(got[0], "max_user_watches") {
			t.Errorf("Degraded: got %q", got)
		}
		w.Unwatch(1)
		mustWatch(t, w, 2, b)
	})
	t.Run("the kernel's", func(t *testing.T) {
		w := newWatcher(t, Options{})
		w.add = func(int) (int, error) { return 0, unix.ENOSPC }
		for i := range 3 {
			if watch(t, w, journal.NodeID(i+1), t.TempDir()) {
				t.Fatal("reports a watch that the kernel refused")
			}
		}
		if got := w.Degraded(); !slices.Equal(got, []string{limitReason}) {
			t.Errorf("Degraded: got %q", got)
		}
	})
	t.Run("other errors", func(t *testing.T) {
		w := newWatcher(t, Options{})
		w.add = func(int) (int, error) { return 0, unix.EACCES }
		if watch(t, w, 1, t.TempDir()) || len(w.Degraded()) != 1 {
			t.Errorf("Degraded: got %q, want one reason", w.Degraded())
		}
	})
}

func TestUnwatchableFileSystems(t *testing.T) {
	w := newWatcher(t, Options{})
	if watch(t, w, 1, "/proc/self") {
		t.Error("claims to watch proc")
	}
	if got := w.Degraded(); len(got) != 1 || !strings.Contains(got[0], "proc") {
		t.Errorf("Degraded: got %q", got)
	}
}

func TestFileIsSeenThroughAllNames(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	check(t, os.WriteFile(a+"/f", []byte("one"), 0o644))
	check(t, os.Link(a+"/f", b+"/g"))
	w, r := start(t, Options{})
	fd, err := unix.Open(a+"/f", unix.O_PATH|unix.O_CLOEXEC, 0)
	check(t, err)
	defer unix.Close(fd)
	if !w.Watch(7, fd) {
		t.Fatal("can't watch a file")
	}
	for _, do := range []func() error{
		func() error { return os.WriteFile(b+"/g", []byte("two"), 0o644) },
		func() error { return os.Chmod(b+"/g", 0o600) },
		func() error { return os.Remove(b + "/g") },
	} {
		r.reset()
		check(t, do())
		r.awaitKey(t, key{7, ""})
	}
}

func TestIdleWatchesEnd(t *testing.T) {
	w, _ := start(t, Options{MaxWatches: 2})
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	mustWatch(t, w, 1, dirs[0])
	mustWatch(t, w, 2, dirs[1])
	w.Unwatch(1)
	w.Unwatch(2)
	mustWatch(t, w, 2, dirs[1]) // needed again
	mustWatch(t, w, 3, dirs[2]) // takes the place of the idle one
	if watch(t, w, 1, dirs[0]) {
		t.Error("more watches than allowed")
	}
	w.Unwatch(3)
	for range 300 {
		if w.watches() == 1 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d watches are left, want 1", w.watches())
}

func (w *Watcher) watches() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.byWD)
}

func TestClose(t *testing.T) {
	w, _ := start(t, Options{})
	dir := t.TempDir()
	mustWatch(t, w, 1, dir)
	check(t, w.Close())
	check(t, w.Close())
	if watch(t, w, 2, dir) {
		t.Error("watches after Close")
	}
	w.Unwatch(1)
}

func TestConcurrentUse(t *testing.T) {
	w, _ := start(t, Options{})
	dir := t.TempDir()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 50 {
				id := journal.NodeID(1 + g*50 + i)
				watch(t, w, id, dir)
				os.WriteFile(fmt.Sprintf("%s/%d", dir, id), nil, 0o644)
				w.Unwatch(id)
			}
		})
	}
	wg.Wait()
	if w.Len() != 0 {
		t.Errorf("%d watches are left", w.Len())
	}
}

func TestLatency(t *testing.T) {
	dir := t.TempDir()
	w, r := start(t, Options{})
	mustWatch(t, w, 1, dir)
	var took []time.Duration
	for i := range 20 {
		name := fmt.Sprint(i)
		time.Sleep(5 * time.Millisecond)
		begin := time.Now()
		check(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
		r.awaitKey(t, key{1, name})
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	t.Logf("p50 %v, max %v", took[len(took)/2], took[len(took)-1])
	if took[len(took)/2] > 500*time.Millisecond {
		t.Errorf("half of the changes take longer than %v to be told", took[len(took)/2])
	}
}
