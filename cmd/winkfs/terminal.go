package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/winkfs/winkfs/workspace"
)

// onTerminal calls fn with the caller's terminal in raw mode, so that every
// key reaches the command, and with its size as it changes.
func (e *env) onTerminal(fn func(workspace.Winsize, <-chan workspace.Winsize) error) error {
	fd := int(e.stdin.Fd())
	old, err := term.MakeRaw(fd)
	if err != nil {
		return fmt.Errorf("prepare terminal: %w", err)
	}
	defer func() { _ = term.Restore(fd, old) }()
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGWINCH)
	defer signal.Stop(changed)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sizes := make(chan workspace.Winsize)
	go func() {
		for {
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
			select {
			case sizes <- terminalSize(fd):
			case <-ctx.Done():
				return
			}
		}
	}()
	return fn(terminalSize(fd), sizes)
}

func terminalSize(fd int) workspace.Winsize {
	cols, rows, err := term.GetSize(fd)
	if err != nil {
		return workspace.Winsize{Rows: 24, Cols: 80}
	}
	return workspace.Winsize{Rows: uint16(rows), Cols: uint16(cols)}
}

// relaySignals sends the signals that people end commands with to the command.
// The second one of them is not sent but calls giveUp.
func relaySignals(giveUp func()) (<-chan int, func()) {
	in := make(chan os.Signal, 4)
	signal.Notify(in, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)
	out := make(chan int, 4)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for sent := 0; ; sent++ {
			select {
			case s := <-in:
				if sent > 0 {
					giveUp()
					return
				}
				out <- int(s.(syscall.Signal))
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, func() {
		signal.Stop(in)
		cancel()
	}
}
