package forks

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/winkfs/winkfs/tests/harness"
)

// TestManyForks makes forks of one live workspace at the same time while it is
// written to. Each shows the files as they were at one moment, works on by
// itself, and is merged; the parent loses nothing.
func TestManyForks(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	p := parent(t, "")
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Add(1)
	go func() {
		defer writer.Done()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			name := filepath.Join(p.Mount, fmt.Sprintf("log%d", i))
			if err := os.WriteFile(name, []byte(fmt.Sprintln(i)), 0o644); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	const forks = 6
	all := make([]*harness.Workspace, forks)
	var makers sync.WaitGroup
	for i := range all {
		name := fmt.Sprintf("fork%d", i)
		all[i] = p.Prepare(name, p.Source)
		makers.Add(1)
		go func() {
			defer makers.Done()
			for _, args := range [][]string{{"clone", "-w", p.Name, "--with-changes", name}, {"mount", "-w", name, all[i].Mount}} {
				if r := p.Run(args...); r.Code != 0 {
					t.Errorf("%v: exit status %d\n%s", args, r.Code, r.Stderr)
					return
				}
			}
			unbroken(t, all[i])
			if err := os.WriteFile(filepath.Join(all[i].Mount, "own-"+name), []byte(name), 0o644); err != nil {
				t.Error(err)
			}
		}()
	}
	makers.Wait()
	for _, f := range all {
		p.Must("merge", f.Name) // while the parent is still written to
	}
	close(stop)
	writer.Wait()
	unbroken(t, p)
	for _, f := range all {
		if b, err := os.ReadFile(filepath.Join(p.Mount, "own-"+f.Name)); err != nil || string(b) != f.Name {
			t.Errorf("%s: got %q, %v", f.Name, b, err)
		}
		whole(t, f)
	}
	whole(t, p)
}

// unbroken checks that the writer's files are there from the first on, each
// with its own content; the last may just have been made.
func unbroken(t *testing.T, w *harness.Workspace) {
	t.Helper()
	for i := 0; ; i++ {
		b, err := os.ReadFile(filepath.Join(w.Mount, fmt.Sprintf("log%d", i)))
		if os.IsNotExist(err) {
			if _, err := os.Stat(filepath.Join(w.Mount, fmt.Sprintf("log%d", i+1))); err == nil {
				t.Errorf("%s: log%d is missing", w.Name, i)
			}
			return
		}
		if err != nil || string(b) != fmt.Sprintln(i) && len(b) != 0 {
			t.Errorf("%s: log%d: got %q, %v", w.Name, i, b, err)
			return
		}
	}
}
