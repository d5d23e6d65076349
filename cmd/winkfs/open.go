package main

import (
	"errors"
	"log/slog"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/cmd/winkfs/internal/control"
	"github.com/winkfs/winkfs/workspace"
)

// open returns the operations of a workspace: the daemon's where one answers,
// else those of its state directory.
func (e *env) open(entry *workspace.Entry, mode workspace.OpenMode) (workspace.Operations, func() error, error) {
	if entry.Live {
		c := control.NewClient(entry.Dir)
		return c, c.Close, nil
	}
	log := slog.New(slog.NewTextHandler(e.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	ws, err := workspace.Open(entry, workspace.OpenOptions{Mode: mode, Logger: log, OnWrite: faults(e)})
	if err != nil {
		return nil, nil, err
	}
	return ws, ws.Close, nil
}

// isBrokenPipe reports whether the reader of the output went away.
func isBrokenPipe(err error) bool { return errors.Is(err, unix.EPIPE) }
