package main

import (
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"time"
)

// mountTime mounts over a fresh upper; unmounting does not count.
func mountTime(sys *system, _ string) (time.Duration, error) {
	if err := sys.unmount(); err != nil {
		return 0, err
	}
	begin := time.Now()
	err := sys.mount()
	return time.Since(begin), err
}

// execTrue runs `true` 40 times, in the sandbox or plainly, and returns the
// quantile.
func (c *config) execTrue(quantile float64) func(*system, string) (time.Duration, error) {
	return func(sys *system, dir string) (time.Duration, error) {
		times := make([]time.Duration, 40)
		for i := range times {
			cmd := osexec.Command("true")
			if sys.name == winkfs {
				cmd = osexec.Command(c.winkfs, "exec", "-w", dir, "--", "true")
				cmd.Env = c.winkfsEnv(sys)
			}
			begin := time.Now()
			if err := cmd.Run(); err != nil {
				return 0, err
			}
			times[i] = time.Since(begin)
		}
		slices.Sort(times)
		return times[int(quantile*float64(len(times)))], nil
	}
}

// changeMany lets one sandboxed command change 10,000 files.
func (c *config) changeMany(sys *system, dir string) error {
	if err := sys.fresh(); err != nil {
		return err
	}
	script := fmt.Sprintf("find . -type f -name 'file*' | head -n %d | xargs -n 500 touch -d 2001-01-01", scaled(c, 10_000))
	return runEnv(c.winkfsEnv(sys), "", c.winkfs, "exec", "-w", dir, "--cwd", "tree", "--", "sh", "-c", script)
}

// takeBack times undo or rollback of that command.
func (c *config) takeBack(command string) func(*system, string) (time.Duration, error) {
	return func(sys *system, dir string) (time.Duration, error) {
		begin := time.Now()
		if err := runEnv(c.winkfsEnv(sys), "", c.winkfs, command, "-w", dir, "--yes", "exec:1"); err != nil {
			return 0, err
		}
		took := time.Since(begin)
		if _, err := os.Stat(filepath.Join(dir, "tree")); err != nil {
			return 0, err
		}
		return took, nil
	}
}

// forker forks one workspace in which 100,000 files are changed.
type forker struct {
	c       *config
	changed bool
	forks   int
}

func (f *forker) prepare(sys *system, dir string) error {
	if f.changed {
		return nil
	}
	if err := sys.fresh(); err != nil {
		return err
	}
	f.changed = true
	script := fmt.Sprintf("mkdir forked && cd forked && seq %d | split -l 1 -a 5 -", scaled(f.c, 100_000))
	return runEnv(f.c.winkfsEnv(sys), "", f.c.winkfs, "exec", "-w", dir, "--timeout", "600", "--", "sh", "-c", script)
}

func (f *forker) fork(sys *system, dir string) (time.Duration, error) {
	f.forks++
	return 0, runEnv(f.c.winkfsEnv(sys), "", f.c.winkfs, "clone", "-w", dir, "--with-changes", fmt.Sprintf("fork%d", f.forks))
}
