package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/winkfs/winkfs/workspace"
)

// runMountAt mounts a past state: by the workspace's daemon if there is one,
// else by a process of its own, which only reads.
func runMountAt(ctx context.Context, e *env, o mountOptions, args []string) error {
	if len(args) != 1 || o.name != "" || o.config != "" || o.ephemeral || len(o.mounts) > 0 {
		return usage("mount --at takes the workspace (-w) and one mount point: winkfs mount -w WS --at POINT MOUNTPOINT")
	}
	mountpoint, err := workspace.Mountpoint(args[0])
	if err != nil {
		return err
	}
	entry, err := e.find(o.workspace)
	if err != nil {
		return err
	}
	if entry.Live {
		return e.withWorkspace(ctx, entry.ID, workspace.ReadOnly, func(ops workspace.Operations) error {
			res, err := ops.MountAt(ctx, &workspace.MountAtRequest{Point: o.at, Mountpoint: mountpoint, AllowOther: o.allowOther})
			if err != nil {
				return err
			}
			if e.globals.json {
				return e.emit(res)
			}
			e.pastNote(entry, o.at, res.Mountpoint)
			return nil
		})
	}
	d := daemonSpec{entry: entry, mountpoint: mountpoint, allowOther: o.allowOther, at: o.at}
	if o.foreground {
		return e.serve(ctx, d, nil)
	}
	if _, err := e.spawn(ctx, d); err != nil {
		return err
	}
	if e.globals.json {
		return e.emit(&workspace.MountAtResult{Schema: "winkfs.mount-at/v1", ID: entry.ID, Mountpoint: mountpoint})
	}
	e.pastNote(entry, o.at, mountpoint)
	return nil
}

func (e *env) pastNote(entry *workspace.Entry, at, mountpoint string) {
	fmt.Fprintln(e.stdout, entry.ID)
	e.note("%s as of %s is mounted read-only at %s", printable(shown(entry)), printable(at), printable(mountpoint))
}

// servePast serves the past state of a workspace that nobody has mounted, until
// it is unmounted or the process is told to end.
func (e *env) servePast(ctx context.Context, d daemonSpec, log *slog.Logger, f *os.File) error {
	ws, err := workspace.Open(d.entry, workspace.OpenOptions{Mode: workspace.ReadOnly, Logger: log})
	if err == nil {
		_, err = ws.MountAt(ctx, &workspace.MountAtRequest{Point: d.at, Mountpoint: d.mountpoint, AllowOther: d.allowOther})
		if err != nil {
			err = closeAfter(ws, err)
		}
	}
	tellReady(f, err)
	if err != nil {
		return err
	}
	log.Info("mounted past state", "id", d.entry.ID, "at", d.at, "mountpoint", d.mountpoint, "pid", os.Getpid())
	select {
	case <-ws.PastDone():
	case <-ctx.Done():
		log.Info("told to end")
	}
	return ws.Close()
}
