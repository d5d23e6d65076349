package exec

import (
	"fmt"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data; arguments are 64 bits, little-endian on every
// architecture that is supported, so that the low half comes first.
const (
	offNr   = 0
	offArch = 4
	offArgs = 16
)

// denied are refused with EPERM whatever their arguments: namespaces and
// mounts, keyrings, code in the kernel, other processes' memory, handles that
// go around paths, and the machine's own state.
var denied = append([]uint32{
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_CHROOT, unix.SYS_PIVOT_ROOT,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG,
	unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_TREE_ATTR,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
	unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME,
	unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK, unix.SYS_ACCT, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
	unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG, unix.SYS_VHANGUP, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
}, deniedHere...)

// cloneSpaces are the flags of clone(2) that make namespaces.
const cloneSpaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// ioctls that reach beyond one's own terminal, compared on the low 32 bits
// since the kernel looks at no more (CVE-2019-10063).
var deniedIoctls = []uint32{unix.TIOCSTI, tiocLinux, unix.TIOCSETD}

const tiocLinux = 0x541c

// families that may be asked of socket(2): the others reach the host past the
// network namespace, or widen the kernel's surface.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6}

const (
	allow = unix.SECCOMP_RET_ALLOW
	kill  = unix.SECCOMP_RET_KILL_PROCESS
)

func errno(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

// filter is the program: foreign architectures die, calls that are unknown or
// whose arguments can't be seen do not exist, the dangerous are refused.
func filter() []bpf.Instruction {
	prog := []bpf.Instruction{
		load(offArch),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: kill},
		load(offNr),
		// Calls that are newer than this list, and x32, which sets bit 30.
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: lastSyscall, SkipFalse: 1},
		bpf.RetConstant{Val: errno(unix.ENOSYS)},
	}
	// clone3 passes its flags by pointer; libc falls back to clone.
	prog = append(prog, when(unix.SYS_CLONE3, bpf.RetConstant{Val: errno(unix.ENOSYS)})...)
	for _, nr := range denied {
		prog = append(prog, when(nr, bpf.RetConstant{Val: errno(unix.EPERM)})...)
	}
	prog = append(prog, when(unix.SYS_CLONE, cloneRule()...)...)
	prog = append(prog, when(unix.SYS_IOCTL, ioctlRule()...)...)
	prog = append(prog, when(unix.SYS_SOCKET, socketRule()...)...)
	prog = append(prog, when(unix.SYS_SOCKETPAIR, familyRule([]uint32{unix.AF_UNIX})...)...)
	return append(prog, bpf.RetConstant{Val: allow})
}

// when guards a rule by the call's number. A rule always returns.
func when(nr uint32, rule ...bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: nr, SkipTrue: uint8(len(rule))},
	}, rule...)
}

func load(off uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: off, Size: 4} }

// arg loads the low 32 bits of argument n.
func arg(n uint32) bpf.Instruction { return load(offArgs + 8*n) }

func cloneRule() []bpf.Instruction {
	return []bpf.Instruction{
		arg(0),
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: cloneSpaces, SkipFalse: 1},
		bpf.RetConstant{Val: errno(unix.EPERM)},
		bpf.RetConstant{Val: allow},
	}
}

func ioctlRule() []bpf.Instruction {
	rule := []bpf.Instruction{arg(1)}
	for _, cmd := range deniedIoctls {
		rule = append(rule,
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: cmd, SkipFalse: 1},
			bpf.RetConstant{Val: errno(unix.EPERM)})
	}
	return append(rule, bpf.RetConstant{Val: allow})
}

// socketRule allows the listed families, and of netlink the routing protocol,
// by which programs list their interfaces.
func socketRule() []bpf.Instruction {
	rule := []bpf.Instruction{
		arg(0),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.AF_NETLINK, SkipTrue: 4},
		arg(2),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.NETLINK_ROUTE, SkipFalse: 1},
		bpf.RetConstant{Val: allow},
		bpf.RetConstant{Val: errno(unix.EAFNOSUPPORT)},
	}
	return append(rule, familyRule(families)...)
}

func familyRule(families []uint32) []bpf.Instruction {
	rule := []bpf.Instruction{arg(0)}
	for _, f := range families {
		rule = append(rule,
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: f, SkipFalse: 1},
			bpf.RetConstant{Val: allow})
	}
	return append(rule, bpf.RetConstant{Val: errno(unix.EAFNOSUPPORT)})
}

// installFilter puts the calling thread, and what it executes, under the
// filter. Preconditions: no_new_privs is set.
func installFilter() error {
	raw, err := bpf.Assemble(filter())
	if err != nil {
		return fmt.Errorf("assemble filter: %w", err)
	}
	prog := make([]unix.SockFilter, len(raw))
	for i, in := range raw {
		prog[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog)))
	if e != 0 {
		return fmt.Errorf("install filter: %w", e)
	}
	return nil
}
