package workspace

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/winkfs/winkfs/fs/dev"
)

// Unmount makes everything durable and unmounts. When the mount is busy and
// the request isn't lazy, the result lists who holds it and it stays.
func (w *Workspace) Unmount(_ context.Context, req *UnmountRequest) (*UnmountResult, error) {
	m, err := w.mount()
	if err != nil {
		return nil, err
	}
	res := &UnmountResult{Schema: "winkfs.umount/v1", Mountpoint: m.Dir()}
	if !req.Lazy && w.busy() {
		return nil, Fail(CodeFailure, "unmount %s: commands are running in the sandbox", m.Dir()).Hinted("wait for them, or use --lazy, which ends them")
	}
	if err := w.store.Sync(); err != nil {
		return nil, err
	}
	w.endCommands()
	m.stopWalk()
	err = m.Unmount(req.Lazy)
	if errors.Is(err, dev.ErrBusy) {
		w.allowCommands()
		res.Holders = holders(m.Dir())
		return res, nil
	}
	if err != nil {
		w.allowCommands()
		return nil, mountError(m.Dir(), err)
	}
	w.touchRuntime()
	return res, w.settle(m)
}

// settleTime is how long the last users of a lazily detached mount may take.
const settleTime = 2 * time.Second

// settle waits until the mount's last request is answered and then closes the
// journal, so that whoever asked finds it free.
func (w *Workspace) settle(m *mounted) error {
	select {
	case <-m.Done():
		return w.Close()
	case <-time.After(settleTime):
		return nil
	}
}

// Shutdown unmounts because the process ends: a busy mount is detached, after
// everything was made durable.
func (w *Workspace) Shutdown() error {
	m, err := w.mount()
	if err != nil {
		return err
	}
	w.endCommands()
	m.stopWalk()
	select {
	case <-m.Done():
		return nil
	default:
	}
	if err := w.store.Sync(); err != nil {
		w.log.Error("not all is durable", "err", err)
	}
	err = m.Unmount(false)
	if errors.Is(err, dev.ErrBusy) {
		for _, h := range holders(m.Dir()) {
			w.log.Warn("mount is busy; it is detached", "pid", h.PID, "comm", h.Comm, "what", h.What, "path", h.Path)
		}
		err = m.Unmount(true)
	}
	return err
}

func stateRootOf(e *Entry) string { return filepath.Dir(e.Dir) }
