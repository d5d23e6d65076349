package exec

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stage2 turns its process into the payload. It returns when that failed.
func stage2() {
	link := endpoint{fd: linkFD}
	unix.CloseOnExec(linkFD)
	m, err := decode(&link)
	if err != nil || m.Plan == nil {
		return
	}
	err = becomePayload(m.Plan)
	_ = link.send(&message{Error: asError(err)}, -1)
	unix.Exit(asError(err).Code)
}

// becomePayload gives up every privilege, in the order in which each step is
// still allowed, and executes the command. It returns only with an error.
func becomePayload(p *Plan) error {
	// No descriptor but the standard streams outlives execve.
	if err := unix.CloseRange(linkFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fail(layerLink, "close descriptors", err)
	}
	preferForOOM()
	unix.Umask(0o022) // the daemon's is 0
	if err := applyRlimits(p.Rlimits); err != nil {
		return fail(layerRlimits, "set rlimits", err)
	}
	if err := dropCaps(); err != nil {
		return fail(layerCaps, "drop capabilities", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fail(layerNNP, "set no_new_privs", err)
	}
	if err := enterCwd(p); err != nil {
		return err
	}
	file, err := lookPath(p.Command[0], p.Env)
	if err != nil {
		return err
	}
	if p.seccomp() {
		if err := installFilter(); err != nil {
			return fail(layerSeccomp, "filter system calls", err)
		}
	}
	defaultSignals()
	return invokeError(file, syscall.Exec(file, p.Command, p.Env))
}

// preferForOOM makes the payload, not stage 1, what the kernel kills first when
// memory is short. Raising the score needs no privilege.
func preferForOOM() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)
}

// applyRlimits sets limits, and lowers what asks for more than the hard limit.
func applyRlimits(limits []Rlimit) error {
	for _, r := range limits {
		var have syscall.Rlimit
		if err := syscall.Getrlimit(r.Resource, &have); err != nil {
			return fmt.Errorf("read %s: %w", r.Name, err)
		}
		hard := min(r.Hard, have.Max)
		want := syscall.Rlimit{Cur: min(r.Soft, hard), Max: hard}
		if err := syscall.Setrlimit(r.Resource, &want); err != nil {
			return fmt.Errorf("set %s: %w", r.Name, err)
		}
	}
	return nil
}

// enterCwd goes to the working directory without leaving the workspace, and
// makes sure that it has a path inside.
func enterCwd(p *Plan) error {
	base, err := unix.Open(p.Base, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail(layerCwd, "open "+p.Base, err)
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(p.Cwd, p.Base), "/")
	if rel == "" {
		rel = "."
	}
	fd, err := unix.Openat2(base, rel, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return fail(layerCwd, "enter "+p.Cwd, err).withMend("give a directory that exists below " + p.Base)
	}
	if err := unix.Fchdir(fd); err != nil {
		return fail(layerCwd, "enter "+p.Cwd, err)
	}
	var buf [unix.PathMax]byte
	n, err := unix.Getcwd(buf[:])
	if err != nil {
		return fail(layerCwd, "read the working directory", err)
	}
	if n == 0 || buf[0] != '/' {
		return refuse(layerCwd, "", "%s has no path inside", p.Cwd)
	}
	return nil
}

// defaultSignals takes away the runtime's handlers, and undoes what the daemon's
// parent had set to be ignored, which would outlive execve.
func defaultSignals() {
	var act [4]uint64 // struct kernel_sigaction with SIG_DFL, of any architecture
	for sig := uintptr(1); sig <= 64; sig++ {
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&act)), 0, 8, 0, 0)
	}
}

// invokeError makes a shell's exit code of execve's error.
func invokeError(file string, err error) error {
	code := ExitInvoke
	if errors.Is(err, unix.ENOENT) {
		code = ExitNotFound // the interpreter of the script is missing
	}
	return &Error{Layer: layerCommand, Message: fmt.Sprintf("invoke %s: %v", file, err), Code: code, cause: err}
}
