package main

import (
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// system is one way to have a writable view of the lower directory.
type system struct {
	name    string
	dir     string // the view
	missing error  // why it is left out
	up      bool
	// start mounts at dir with the upper state in the directory given, which
	// may be that of an earlier mount. stop undoes it.
	start func(s *system, upper string) error
	stop  func(s *system) error

	base  string // holds the uppers
	upper int    // number of the present one
}

// Names of the systems, in the order of the table.
const (
	native  = "native"
	winkfs  = "winkfs"
	overlay = "overlayfs"
	fuseovl = "fuse-overlayfs"
	audited = "winkfs-opens" // with openings journaled
)

func allSystems(c *config, s *source) []*system {
	named := func(name string, start func(*system, string) error, stop func(*system) error) *system {
		base := filepath.Join(c.dir, name)
		return &system{name: name, base: base, dir: filepath.Join(base, "view"), start: start, stop: stop}
	}
	return []*system{
		named(native, func(sys *system, _ string) error { return copyOnce(s.dir, sys.dir) }, func(*system) error { return nil }),
		named(winkfs, c.startWinkfs(s, nil), c.stopWinkfs),
		named(overlay, s.startOverlay, unmount),
		named(fuseovl, s.startFuseOverlay, unmount),
		named(audited, c.startWinkfs(s, auditConfig), c.stopWinkfs),
	}
}

// copyOnce copies the source for the native system.
func copyOnce(from, to string) error {
	if entries, err := os.ReadDir(to); err == nil && len(entries) > 0 {
		return nil
	}
	return run("", "cp", "-a", "--", from+"/.", to)
}

func (c *config) winkfsEnv(sys *system) []string {
	return append(os.Environ(), "WINKFS_STATE_DIR="+filepath.Join(sys.base, "state"))
}

// auditConfig returns a configuration that journals openings.
func auditConfig(s *source) string {
	return fmt.Sprintf("audit: opens\nsandbox: {paths: {all: {root: %q, at: /, mode: rw}}}\n", s.dir)
}

// startWinkfs mounts with the configuration, nil for the default.
func (c *config) startWinkfs(s *source, configure func(*source) string) func(*system, string) error {
	return func(sys *system, upper string) error {
		name := filepath.Base(upper)
		args := []string{"mount", "--name", name, s.dir, sys.dir}
		if configure != nil {
			file := upper + "/config.yaml"
			if err := os.WriteFile(file, []byte(configure(s)), 0o644); err != nil {
				return err
			}
			args = []string{"mount", "--name", name, "--config", file, sys.dir}
		}
		if _, err := os.Stat(upper + "/made"); err == nil {
			args = []string{"mount", "-w", name, sys.dir}
		}
		if err := runEnv(c.winkfsEnv(sys), "", c.winkfs, args...); err != nil {
			return err
		}
		return os.WriteFile(upper+"/made", nil, 0o644)
	}
}

func (c *config) stopWinkfs(sys *system) error {
	return runEnv(c.winkfsEnv(sys), "", c.winkfs, "umount", sys.dir)
}

func upperDirs(upper string) (up, work string, err error) {
	up, work = filepath.Join(upper, "upper"), filepath.Join(upper, "work")
	return up, work, errors.Join(os.MkdirAll(up, 0o755), os.MkdirAll(work, 0o755))
}

func (s *source) startOverlay(sys *system, upper string) error {
	up, work, err := upperDirs(upper)
	if err != nil {
		return err
	}
	return unix.Mount("overlay", sys.dir, "overlay", 0, fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", s.dir, up, work))
}

func (s *source) startFuseOverlay(sys *system, upper string) error {
	up, work, err := upperDirs(upper)
	if err != nil {
		return err
	}
	return run("", "fuse-overlayfs", "-o", fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", s.dir, up, work), sys.dir)
}

func unmount(sys *system) error {
	if err := unix.Unmount(sys.dir, 0); err == nil {
		return nil
	}
	return run("", "fusermount3", "-u", sys.dir)
}

// mount mounts over a fresh upper.
func (s *system) mount() error {
	s.upper++
	upper := s.upperDir()
	if err := errors.Join(os.MkdirAll(upper, 0o755), os.MkdirAll(s.dir, 0o755)); err != nil {
		return err
	}
	err := s.start(s, upper)
	s.up = err == nil
	return err
}

func (s *system) upperDir() string { return filepath.Join(s.base, fmt.Sprintf("bench-%d", s.upper)) }

// remount unmounts and mounts with the same upper, with cold caches.
func (s *system) remount() error {
	if err := s.unmount(); err != nil {
		return err
	}
	dropCaches()
	err := s.start(s, s.upperDir())
	s.up = err == nil
	return err
}

// fresh unmounts and mounts over a fresh upper.
func (s *system) fresh() error {
	if err := s.unmount(); err != nil {
		return err
	}
	return s.mount()
}

func (s *system) unmount() error {
	if !s.up {
		return nil
	}
	s.up = false
	return s.stop(s)
}

// end unmounts whatever works.
func (s *system) end() {
	if err := s.unmount(); err != nil {
		unix.Unmount(s.dir, unix.MNT_DETACH)
		osexec.Command("fusermount3", "-uz", s.dir).Run()
	}
}

// dropCaches does nothing for an ordinary user.
func dropCaches() {
	unix.Sync()
	os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0)
}

func run(dir, name string, args ...string) error { return runEnv(nil, dir, name, args...) }

func runEnv(env []string, dir, name string, args ...string) error {
	cmd := osexec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, env
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w %s", filepath.Base(name), args[0], err, strings.TrimSpace(errs.String()))
	}
	return nil
}
