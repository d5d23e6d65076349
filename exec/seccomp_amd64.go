package exec

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// lastSyscall is the highest number known when the list was written.
const lastSyscall = 471

// deniedHere exist on this architecture only.
var deniedHere = []uint32{
	unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_CREATE_MODULE, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS,
}
