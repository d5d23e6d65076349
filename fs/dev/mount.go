package dev

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Method is a way to mount.
type Method uint8

const (
	// MethodAuto mounts directly where the process may, else by fusermount3.
	MethodAuto Method = iota
	// MethodDirect calls mount(2).
	MethodDirect
	// MethodFusermount asks the setuid helper fusermount3.
	MethodFusermount
)

// Config says what to mount where.
type Config struct {
	Dir      string // mount point, an existing directory
	ID       string // workspace's id, shown as the mount's source
	ReadOnly bool   // the kernel refuses all writes
	// AllowOther lets other users in, as the files' modes say. Root's mounts
	// always do. An ordinary user needs user_allow_other in /etc/fuse.conf;
	// without it the mount is made for the user alone, and Degraded says so.
	AllowOther bool
	// NoIDMap leaves out the offer of id-mapped binds of the mount, which root
	// makes by default where the kernel can.
	NoIDMap bool
	// Suid and Dev let set-id bits and device nodes take effect, which only
	// root's mounts can; NoExec forbids to execute files.
	Suid, Dev, NoExec bool
	Method            Method
	Logger            *slog.Logger // must be set
	// Prepare, if set, gets the queue before the first request is served, so
	// that no change goes untold.
	Prepare func(*Queue)
}

// mounted is a mount that nobody serves yet.
type mounted struct {
	fd       int
	dir      string // resolved mount point
	entry    MountEntry
	direct   bool
	initial  bool // superblock belongs to the initial user namespace
	degraded []string
}

// mount makes the mount and returns the descriptor to serve it by.
func mount(cfg *Config) (*mounted, error) {
	dir, err := resolve(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if err := checkFree(dir); err != nil {
		return nil, err
	}
	m := &mounted{fd: -1, dir: dir, initial: initialUserNS()}
	m.direct = cfg.Method == MethodDirect || cfg.Method == MethodAuto && canMount()
	opts := m.options(cfg)
	if m.direct {
		m.fd, err = mountDirect(dir, opts)
	} else {
		m.fd, err = mountFusermount(dir, opts)
	}
	if err != nil {
		return nil, err
	}
	if err := m.find(opts.source); err != nil {
		unix.Close(m.fd)
		return nil, err
	}
	return m, nil
}

// options are what is told to whoever mounts.
type options struct {
	source     string
	readOnly   bool
	allowOther bool
	suid, dev  bool
	noExec     bool
}

func (m *mounted) options(cfg *Config) options {
	o := options{source: "winkfs:" + cfg.ID, readOnly: cfg.ReadOnly, allowOther: cfg.AllowOther, suid: cfg.Suid, dev: cfg.Dev, noExec: cfg.NoExec}
	switch {
	case m.direct && m.initial && os.Geteuid() == 0:
		o.allowOther = true
	case !m.direct && o.allowOther && os.Getuid() != 0 && !userAllowOther():
		o.allowOther = false
		m.degraded = append(m.degraded, "allow_other: /etc/fuse.conf lacks user_allow_other; only the mounting user gets in")
	}
	return o
}

// find looks up the mount that was just made.
func (m *mounted) find(source string) error {
	e, err := top(m.dir)
	if err != nil {
		return err
	}
	if e == nil || e.Type != FSType || e.Source != source {
		return fmt.Errorf("mount %q: %w: the mount does not show in /proc/self/mountinfo", m.dir, ErrMountPoint)
	}
	m.entry = *e
	return nil
}

// resolve returns the mount point without symbolic links.
func resolve(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolve mount point: %w", err)
	}
	path, err := filepath.EvalSymlinks(abs)
	switch {
	case errors.Is(err, unix.ENOTCONN):
		return "", fmt.Errorf("mount %q: %w", dir, ErrStale)
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("mount %q: %w: it does not exist", dir, ErrMountPoint)
	case err != nil:
		return "", fmt.Errorf("mount %q: %w: %w", dir, ErrMountPoint, err)
	}
	return path, nil
}

// checkFree refuses a directory that has a workspace on it, alive or dead.
func checkFree(dir string) error {
	e, err := top(dir)
	if err != nil {
		return err
	}
	if e == nil || e.Type != FSType {
		return nil
	}
	if dead(dir) {
		return fmt.Errorf("mount %q: %w", dir, ErrStale)
	}
	return fmt.Errorf("mount %q: %w: %s", dir, ErrMountPointBusy, e.Source)
}
