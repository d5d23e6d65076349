package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/cmd/winkfs/internal/control"
	"github.com/winkfs/winkfs/workspace"
)

type daemonOptions struct {
	id, mountpoint, at                   string
	private, readOnly, allowOther, ready bool
	noSuid, noDev, noExec, noWalk        bool
	overlay, fill                        bool
}

// newDaemonCommand is what a daemon's process runs; people don't.
func newDaemonCommand(e *env) *cli.Command {
	var o daemonOptions
	return &cli.Command{
		Name: "daemon", Hidden: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "id", Required: true, Destination: &o.id},
			&cli.StringFlag{Name: "mountpoint", Required: true, Destination: &o.mountpoint},
			&cli.StringFlag{Name: "at", Destination: &o.at},
			&cli.BoolFlag{Name: "private", Destination: &o.private},
			&cli.BoolFlag{Name: "read-only", Destination: &o.readOnly},
			&cli.BoolFlag{Name: "allow-other", Destination: &o.allowOther},
			&cli.BoolFlag{Name: "ready", Destination: &o.ready},
			&cli.BoolFlag{Name: "nosuid", Destination: &o.noSuid},
			&cli.BoolFlag{Name: "nodev", Destination: &o.noDev},
			&cli.BoolFlag{Name: "noexec", Destination: &o.noExec},
			&cli.BoolFlag{Name: "nowalk", Destination: &o.noWalk},
			&cli.BoolFlag{Name: "overlay", Destination: &o.overlay},
			&cli.BoolFlag{Name: "fill", Destination: &o.fill},
		},
		Action: func(c *cli.Context) error { return runDaemon(c.Context, e, o) },
	}
}

func runDaemon(ctx context.Context, e *env, o daemonOptions) error {
	var f *os.File
	if o.ready {
		unix.CloseOnExec(readyFD)
		f = os.NewFile(readyFD, "ready")
	}
	reg, err := e.registry()
	if err != nil {
		tellReady(f, err)
		return err
	}
	entry, err := reg.Find(o.id)
	if err != nil {
		tellReady(f, err)
		return err
	}
	return e.serve(ctx, daemonSpec{
		entry: entry, spawned: o.ready, at: o.at, mountpoint: o.mountpoint, private: o.private, readOnly: o.readOnly, allowOther: o.allowOther,
		noSuid: o.noSuid, noDev: o.noDev, noExec: o.noExec, noWalk: o.noWalk,
		overlay: o.overlay, fill: o.fill,
	}, f)
}

// serve mounts the workspace and serves it until it is unmounted or the
// process is told to end. f, if any, is told when the mount is usable or why
// it isn't.
func (e *env) serve(ctx context.Context, d daemonSpec, f *os.File) error {
	log := slog.New(slog.NewTextHandler(e.stderr, &slog.HandlerOptions{Level: logLevel(e.getenv("WINKFS_LOG"))}))
	go tendHeap(ctx)
	if d.at != "" {
		return e.servePast(ctx, d, log, f)
	}
	ws, srv, err := e.startServing(d, log)
	if err != nil {
		tellReady(f, err)
		return err
	}
	if f != nil {
		tellReady(f, nil, ws.Degraded()...)
	}
	log.Info("mounted", "id", d.entry.ID, "mountpoint", d.mountpoint, "pid", os.Getpid())
	select {
	case <-ws.Done():
	case <-ctx.Done():
		log.Info("told to end")
	}
	return stopServing(ws, srv, log)
}

func (e *env) startServing(d daemonSpec, log *slog.Logger) (*workspace.Workspace, *control.Server, error) {
	if d.private {
		if err := privateMounts(); err != nil {
			return nil, nil, err
		}
	}
	ws, err := workspace.Open(d.entry, workspace.OpenOptions{Mode: workspace.Serving, Logger: log, OnWrite: faults(e), Detach: d.overlay})
	if err != nil {
		return nil, nil, err
	}
	if d.overlay && d.spawned {
		if err := logTo(ws.StateDir()); err != nil {
			return nil, nil, closeAfter(ws, err)
		}
	}
	l, err := control.Listen(ws.StateDir())
	if err == nil {
		err = ws.Mount(workspace.MountOptions{
			Mountpoint: d.mountpoint, Private: d.private, ReadOnly: d.readOnly, AllowOther: d.allowOther,
			NoSuid: d.noSuid, NoDev: d.noDev, NoExec: d.noExec, NoWalk: d.noWalk,
		})
		if err != nil {
			l.Close()
		}
	}
	if err != nil {
		return nil, nil, closeAfter(ws, err)
	}
	if d.fill {
		if err := ws.Fill(); err != nil {
			l.Close()
			return nil, nil, closeAfter(ws, errors.Join(err, ws.Shutdown()))
		}
	}
	srv := control.NewServer(ws, log)
	go func() {
		if err := srv.Serve(l); err != nil {
			log.Error("control socket failed", "err", err)
		}
	}()
	return ws, srv, nil
}

func closeAfter(ws *workspace.Workspace, err error) error {
	if cerr := ws.Close(); cerr != nil {
		return fmt.Errorf("%w (and %w)", err, cerr)
	}
	return err
}

// stopServing unmounts, even when the mount is in use, and closes the journal.
func stopServing(ws *workspace.Workspace, srv *control.Server, log *slog.Logger) error {
	err := ws.Shutdown()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if serr := srv.Shutdown(ctx); serr != nil {
		log.Warn("control socket did not come to rest", "err", serr)
	}
	if cerr := ws.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		log.Error("ended", "err", err)
		return err
	}
	log.Info("ended")
	return nil
}

// privateMounts keeps mounts of this namespace from reaching any other.
func privateMounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return workspace.Wrap(workspace.CodeEnvironment, err, "make mounts private")
	}
	return nil
}

func logLevel(name string) slog.Level {
	var l slog.Level
	if l.UnmarshalText([]byte(name)) != nil {
		return slog.LevelInfo
	}
	return l
}
