package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"time"
)

// quiet runs a program whose output is read and thrown away through a pipe: tar
// does not even read files when it writes to /dev/null.
func quiet(dir, name string, args ...string) (time.Duration, error) {
	cmd := osexec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	io.Copy(io.Discard, out)
	return 0, cmd.Wait()
}

func tree(dir string) string { return filepath.Join(dir, "tree") }

func find(_ *system, dir string) (time.Duration, error) {
	return quiet(tree(dir), "find", ".", "-printf", "%s %T@ %m %p\n")
}

func rg(_ *system, dir string) (time.Duration, error) {
	d, err := quiet(tree(dir), "rg", "--no-config", "-c", "lock error case switch")
	var exit *osexec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		err = nil // nothing found
	}
	return d, err
}

func tarOut(_ *system, dir string) (time.Duration, error) {
	return quiet(dir, "tar", "-cf", "-", "tree")
}

func gitStatus(_ *system, dir string) (time.Duration, error) {
	return quiet(tree(dir), "git", "status", "--porcelain")
}

// builds numbers builds, so that each compiles the module's packages anew while
// the standard library stays cached.
var builds int

// goBuild builds with cache, temporary directory and output in the view.
func goBuild(_ *system, dir string) (time.Duration, error) {
	work := filepath.Join(dir, "gowork")
	if err := os.MkdirAll(filepath.Join(work, "tmp"), 0o755); err != nil {
		return 0, err
	}
	builds++
	env := append(os.Environ(), "GOCACHE="+work+"/cache", "GOTMPDIR="+work+"/tmp", "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOWORK=off")
	return 0, runEnv(env, filepath.Join(dir, "module"), "go", "build", "-buildvcs=false", "-o", work+"/out",
		fmt.Sprintf("-gcflags=example.org/bench/...=-trimpath=%d", builds), ".")
}

func work(dir string) string { return filepath.Join(dir, "work") }

func makeWork(_ *system, dir string) error { return os.MkdirAll(work(dir), 0o755) }

func removeWork(_ *system, dir string) error { return os.RemoveAll(work(dir)) }

func removeTimed(_ *system, dir string) (time.Duration, error) {
	return quiet(dir, "rm", "-rf", "work")
}

func (s *source) gitClone(_ *system, dir string) (time.Duration, error) {
	return quiet(dir, "git", "clone", "-q", "--no-hardlinks", s.bare, work(dir))
}

func (s *source) untar(_ *system, dir string) (time.Duration, error) {
	return quiet(work(dir), "tar", "-xf", s.tar)
}

func (s *source) untarFirst(sys *system, dir string) error {
	if err := makeWork(sys, dir); err != nil {
		return err
	}
	_, err := s.untar(sys, dir)
	return err
}
