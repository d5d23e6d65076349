package exec

import (
	"io"
	"syscall"
	"time"
)

// SandboxID is the kernel user and group id of a payload that a daemon of the
// initial user namespace's root starts. It lies outside the ranges that
// /etc/subuid hands out to people and that systemd gives to containers, so that
// nobody else can take it on.
const SandboxID = 1_900_000_000

// ShownID is the id that a payload sees as its own when the files belong to
// root: tools that believe to be root try what they can't do here.
const ShownID = 1000

// Spec says what to run and what of the host it may see. It is plain data but
// for its streams and OnStart; NewPlan checks it.
type Spec struct {
	Command []string // argv; a name without a slash is looked up inside
	Cwd     string   // absolute path inside, at or below one of At; "" = At[0]
	Env     []string // NAME=value, on top of the minimal environment

	Mount     string   // host path of the workspace's mount
	MountDev  uint64   // its st_dev: the sandbox starts on no other
	MountType int64    // its statfs f_type; 0 = FUSE
	At        []string // absolute paths inside at which it shows
	Owner     Owner    // who owns its files, as the mount shows them

	System []string // further host directories to show read-only at their own path
	Hidden []string // host directories to cover where a system directory would show them

	Timeout time.Duration // 0 = none
	Limits  Limits
	Network string // "none" (also "") or "host"
	// RequireOSSandbox refuses to plan with any layer degraded.
	RequireOSSandbox bool

	// TTY gives the payload a terminal of its own; Stderr is then unused.
	TTY    bool
	Size   Winsize
	Resize <-chan Winsize // may be nil

	Stdin          io.Reader // nil = empty
	Stdout, Stderr io.Writer // nil = discarded; the payload never gets the writer itself
	Signals        <-chan syscall.Signal

	// OnStart is called once the first process exists and before any
	// instruction of the payload runs. It must not block for long.
	OnStart func(Started)
}

// Owner is a pair of ids.
type Owner struct{ UID, GID uint32 }

// Limits bound what one command may use. Zero is no limit of our own.
type Limits struct {
	CPUs   float64 // processors' worth of time
	Memory int64   // bytes, tmpfs contents included
	Tmpfs  int64   // bytes of each of /tmp, /dev/shm and the home directory; 0 = 2 GiB
	Pids   int     // processes and threads
}

// Winsize is a terminal's size.
type Winsize struct{ Rows, Cols uint16 }

// Started names the sandbox to the host.
type Started struct {
	PID   int    // its first process, as the host sees it
	PIDNS uint64 // inode number of its pid namespace
}

// Status is how a command ended.
type Status struct {
	// ExitCode is the command's own, 128+n when signal n ended it, 124 when it
	// timed out, 125 when the sandbox failed, 126 and 127 when the command
	// could not be invoked or was not found.
	ExitCode  int
	Signal    syscall.Signal // that ended it, 0 = none
	TimedOut  bool
	OOMKilled bool // the memory limit killed a process of it
	Duration  time.Duration
}

// Exit codes of the sandbox itself, as CLI.md has them.
const (
	ExitTimeout  = 124
	ExitSandbox  = 125
	ExitInvoke   = 126
	ExitNotFound = 127
	ExitSignal   = 128 // plus the signal's number
)
