package workspace

import (
	"errors"
	"fmt"
	"os"
	"time"

	fusefs "github.com/winkfs/winkfs/fs"
	"github.com/winkfs/winkfs/fs/dev"
)

// MountOptions say how to mount.
type MountOptions struct {
	Mountpoint string // without symbolic links, see Mountpoint
	Private    bool   // the process has a mount namespace of its own
	ReadOnly   bool
	AllowOther bool
	// NoSuid, NoDev and NoExec are as in mount(8). The first two only mean
	// something where the profile would let set-id bits and devices work.
	NoSuid, NoDev, NoExec bool
	// NoWalk leaves out the walk that fills the kernel's caches, which holds the
	// mount while it lasts: umount(8) would find it busy.
	NoWalk bool
}

// mounted is a workspace's mount.
type mounted struct {
	*fusefs.Mount
	private  bool
	stopWalk func()
}

// Mount mounts the workspace, which must be open for Serving. On return it is
// usable.
func (w *Workspace) Mount(o MountOptions) error {
	if err := CheckMount(w.root(), w.cfg, o.Mountpoint); err != nil {
		return err
	}
	if err := w.cfg.checkProfile(); err != nil {
		return err
	}
	m, err := fusefs.Serve(fusefs.MountConfig{
		Dir: o.Mountpoint, ID: w.entry.ID, ReadOnly: o.ReadOnly, AllowOther: o.AllowOther,
		Suid: w.cfg.full() && !o.NoSuid, Dev: w.cfg.full() && !o.NoDev, NoExec: o.NoExec,
		AuditOpens: w.cfg.Audit == AuditOpens,
	}, w.tree, w.log)
	if err != nil {
		return mountError(o.Mountpoint, err)
	}
	if w.watcher != nil {
		w.watcher.Start(w.tree)
	}
	stop := func() {}
	if !o.NoWalk {
		stop = w.startWalk(m.Dir())
	}
	now := Time{time.Now().UTC()}
	w.mu.Lock()
	w.mnt = &mounted{Mount: m, private: o.Private, stopWalk: stop}
	w.runtime = Runtime{PID: os.Getpid(), Mountpoint: m.Dir(), Private: o.Private, StartedAt: now, LastUsedAt: now}
	err = w.runtime.save(w.entry.Dir)
	w.mu.Unlock()
	if err != nil {
		stop()
		return errors.Join(err, m.Unmount(true))
	}
	return nil
}

// mountError gives the errors of mounting their codes and what to do.
func mountError(dir string, err error) error {
	switch {
	case !isFuseDevice():
		return Wrap(CodeEnvironment, err, "mount at %s: /dev/fuse is not the FUSE device", dir).At(dir).Hinted("%s", mendDevice)
	case errors.Is(err, dev.ErrNoFusermount):
		return Wrap(CodeEnvironment, err, "mount at %s", dir).At(dir).
			Hinted("an ordinary user needs fusermount3 to mount: sudo apt-get install fuse3 (or your system's package of it); `winkfs run` may do without")
	case errors.Is(err, dev.ErrNoDevice):
		return Wrap(CodeEnvironment, err, "mount at %s", dir).At(dir).
			Hinted("%s", mendDevice)
	case errors.Is(err, dev.ErrPermission):
		return Wrap(CodeEnvironment, err, "mount at %s", dir).At(dir).Hinted("`winkfs doctor` says what is missing; the mount point must be your own")
	case errors.Is(err, dev.ErrMountPointBusy), errors.Is(err, dev.ErrMountPoint), errors.Is(err, dev.ErrBusy):
		return Wrap(CodeUsage, err, "mount at %s", dir).At(dir)
	case errors.Is(err, dev.ErrStale):
		return Wrap(CodeNotMounted, err, "mount at %s", dir).At(dir)
	}
	return fmt.Errorf("mount at %s: %w", dir, err)
}

func (w *Workspace) root() string { return stateRootOf(w.entry) }

// mount returns the mount, or an error with the code "not mounted".
func (w *Workspace) mount() (*mounted, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mnt == nil {
		return nil, Fail(CodeNotMounted, "workspace %s is not mounted", w.entry.ID).
			Hinted("winkfs mount -w %s MOUNTPOINT", w.entry.ID)
	}
	return w.mnt, nil
}

// Done is closed when the mount is gone, whoever unmounted it. The workspace
// must be mounted.
func (w *Workspace) Done() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mnt.Done()
}

// touchRuntime notes that the workspace was used.
func (w *Workspace) touchRuntime() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mnt == nil {
		return
	}
	w.runtime.LastUsedAt = Time{time.Now().UTC()}
	if err := w.runtime.save(w.entry.Dir); err != nil {
		w.log.Warn("runtime not saved", "err", err)
	}
}
