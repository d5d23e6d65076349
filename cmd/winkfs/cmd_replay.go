package main

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/workspace"
)

// newReplayCommand is what the daemon starts to let those who watch the mount
// know what an undo changed.
func newReplayCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: workspace.ReplayCommand, Hidden: true,
		Action: func(c *cli.Context) error { return runReplay(e, c.Args().First()) },
	}
}

// runReplay makes system calls that the daemon only agrees with. Those that
// fail are left to it: it notifies the kernel of what was not replayed.
func runReplay(e *env, dir string) error {
	runtime.LockOSThread() // the daemon knows our requests by the thread
	root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open mount: %w", err)
	}
	fmt.Fprintln(e.stdout, unix.Gettid())
	var ops []workspace.ReplayOp
	if err := json.NewDecoder(e.stdin).Decode(&ops); err != nil {
		return nil // the change was not made
	}
	for i := range ops {
		_ = replayOp(root, &ops[i])
	}
	return nil
}

func replayOp(root int, op *workspace.ReplayOp) error {
	dir, name, err := openParent(root, op.Path)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	switch op.Op {
	case workspace.ReplayRemove:
		flags := 0
		if op.Mode&unix.S_IFMT == unix.S_IFDIR {
			flags = unix.AT_REMOVEDIR
		}
		return unix.Unlinkat(dir, name, flags)
	case workspace.ReplayRename:
		toDir, toName, err := openParent(root, op.To)
		if err != nil {
			return err
		}
		defer unix.Close(toDir)
		return unix.Renameat2(dir, name, toDir, toName, unix.RENAME_NOREPLACE)
	case workspace.ReplayMake:
		return makeFile(dir, name, op)
	case workspace.ReplayTouch:
		return touchFile(dir, name, op)
	case workspace.ReplayStat:
		var st unix.Statx_t
		return unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_STATX_FORCE_SYNC, unix.STATX_BASIC_STATS, &st)
	}
	return fmt.Errorf("unknown operation %q", op.Op)
}

// openParent opens the directory that a path lies in, without leaving the mount
// or following a symbolic link.
func openParent(root int, path []byte) (int, string, error) {
	dir, name := ".", string(path)
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			dir, name = string(path[:i]), string(path[i+1:])
			break
		}
	}
	fd, err := openInside(root, dir, unix.O_PATH|unix.O_DIRECTORY)
	return fd, name, err
}

// openInside opens what lies below a directory in the same mount.
func openInside(dir int, path string, flags uint64) (int, error) {
	return unix.Openat2(dir, path, &unix.OpenHow{
		Flags:   flags | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	})
}

func makeFile(dir int, name string, op *workspace.ReplayOp) error {
	switch op.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return unix.Mkdirat(dir, name, op.Mode&0o7777)
	case unix.S_IFLNK:
		return unix.Symlinkat(string(op.Target), dir, name)
	}
	return unix.Mknodat(dir, name, op.Mode, 0)
}

// touchFile cuts a file to the size that it has, which is a change to whoever
// watches it, or sets the mode that it has.
func touchFile(dir int, name string, op *workspace.ReplayOp) error {
	if op.Mode&unix.S_IFMT == unix.S_IFREG {
		fd, err := openInside(dir, name, unix.O_WRONLY|unix.O_NONBLOCK)
		if err == nil {
			defer unix.Close(fd)
			return unix.Ftruncate(fd, int64(op.Size))
		}
	}
	fd, err := openInside(dir, name, unix.O_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), op.Mode&0o7777)
}
