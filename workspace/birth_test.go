package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func newTestConfig(t *testing.T, name string) *Config {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Name = name
	cfg.Sources = []Source{{Host: t.TempDir(), At: "/", Mode: "rw"}}
	return cfg
}

// What a crash leaves of a workspace that was being made or removed goes away
// with the next creation; all else stays.
func TestSweep(t *testing.T) {
	root := t.TempDir()
	r := NewRegistry(root)
	put := func(name string, files ...string) {
		dir := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Join(dir, "objects"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := os.WriteFile(filepath.Join(dir, f), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("wink-half", incompleteFile, "journal.db.new")
	put("wink-removed", incompleteFile, "journal.db")
	put("snap-left", incompleteFile)
	put("wink-lost", "journal.db") // its workspace.yaml is gone, which is nothing that we do
	put("wink-born", incompleteFile, configFile)
	put("other", incompleteFile)
	if err := os.Mkdir(filepath.Join(root, "wink-empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	held, err := r.begin("wink-held")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.begin("wink-new"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"wink-half": false, "wink-removed": false, "snap-left": false, "wink-empty": false,
		"wink-lost": true, "wink-born": true, "other": true, "wink-held": true, "wink-new": true,
	} {
		if got := exists(filepath.Join(root, name)); got != want {
			t.Errorf("%s: is there: %v, want %v", name, got, want)
		}
	}
	if err := held.abandon(); err != nil || exists(held.dir) {
		t.Errorf("abandon: %v", err)
	}
}

// Of creations of one name at the same time one wins.
func TestCreateOneName(t *testing.T) {
	r := NewRegistry(filepath.Join(t.TempDir(), "state"))
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		cfg := newTestConfig(t, "same")
		wg.Add(1)
		go func() {
			defer wg.Done()
			_, errs[i] = Create(r, cfg)
		}()
	}
	wg.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
		} else if CodeOf(err) != CodeUsage {
			t.Errorf("unexpected: %v", err)
		}
	}
	names, _ := os.ReadDir(r.Root())
	if made != 1 || len(names) != 1 {
		t.Errorf("%d were made, %d directories are there; want 1", made, len(names))
	}
}

// A clone that can't be made leaves nothing.
func TestCloneFails(t *testing.T) {
	r := NewRegistry(filepath.Join(t.TempDir(), "state"))
	parent, err := Create(r, newTestConfig(t, "parent"))
	if err != nil {
		t.Fatal(err)
	}
	failing := &failingFork{err: errors.New("disk full")}
	if _, err := Clone(t.Context(), r, parent, failing, CloneOptions{Name: "child", WithChanges: true}); !errors.Is(err, failing.err) {
		t.Errorf("got %v, want %v", err, failing.err)
	}
	if names, _ := os.ReadDir(r.Root()); len(names) != 1 {
		t.Errorf("left behind: %v", names)
	}
}

// Remove refuses a workspace that somebody works on.
func TestRemoveInUse(t *testing.T) {
	r := NewRegistry(filepath.Join(t.TempDir(), "state"))
	e, err := Create(r, newTestConfig(t, "w"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := Open(e, OpenOptions{Mode: ReadWrite})
	if err != nil {
		t.Fatal(err)
	}
	if err := Remove(e); err == nil || !exists(filepath.Join(e.Dir, configFile)) {
		t.Errorf("it was removed while in use (%v)", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Remove(e); err != nil || exists(e.Dir) {
		t.Errorf("remove: %v", err)
	}
}

// Fork only writes where somebody waits for it.
func TestForkPlace(t *testing.T) {
	r := NewRegistry(filepath.Join(t.TempDir(), "state"))
	e, err := Create(r, newTestConfig(t, "w"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := Open(e, OpenOptions{Mode: ReadWrite})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, into := range []string{"", ".", "..", "../wink-x", "wink-x", "wink-" + e.ID, "snap-x/../../y", "/tmp"} {
		if _, err := w.Fork(t.Context(), &ForkRequest{Into: into}); CodeOf(err) != CodeUsage {
			t.Errorf("fork into %q: got %v", into, err)
		}
	}
}

type failingFork struct {
	Operations
	err error
}

func (f *failingFork) Fork(context.Context, *ForkRequest) (*ForkResult, error) { return nil, f.err }
