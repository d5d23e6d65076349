package exec

import (
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// spawner is the one thread that forks sandboxes. PDEATHSIG tells of the death
// of the thread that forked, so that thread must live as long as the daemon:
// it is locked to a goroutine that never ends.
var spawner = sync.OnceValue(func() chan<- func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		for job := range jobs {
			job()
		}
	}()
	return jobs
})

// onSpawner runs f on the spawner's thread and waits for it.
func onSpawner(f func()) {
	done := make(chan struct{})
	spawner() <- func() {
		defer close(done)
		f()
	}
	<-done
}

// spawnInit starts stage 1 with its link, streams and mounts. The descriptors
// stay the caller's.
func spawnInit(p *Plan, stdio [3]*os.File, link *os.File, mounts []*os.File) (proc *os.Process, err error) {
	attr := &os.ProcAttr{
		Dir:   "/",
		Env:   stageEnv,
		Files: append([]*os.File{stdio[0], stdio[1], stdio[2], link}, mounts...),
		Sys:   initAttr(p),
	}
	onSpawner(func() { proc, err = os.StartProcess(selfExe, []string{stage1Name}, attr) })
	if err != nil {
		return nil, fail(layerNS, "start the sandbox's first process", err).withMend(mendNamespaces())
	}
	return proc, nil
}

// initAttr maps the payload's kernel id to 0 for stage 1, which keeps its
// capabilities over execve by that.
func initAttr(p *Plan) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Cloneflags:  p.cloneFlags(),
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(p.IDs.Kernel.UID), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(p.IDs.Kernel.GID), Size: 1}},
		Setsid:      true,
		Pdeathsig:   syscall.SIGKILL,
	}
	if p.IDs.Map {
		// Root's groups must go, which the namespace has to allow until then.
		attr.GidMappingsEnableSetgroups = true
		attr.Credential = &syscall.Credential{Uid: 0, Gid: 0}
	}
	return attr
}

// pidNamespace gives the inode number by which actor knows the sandbox.
func pidNamespace(pid int) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/"+itoa(pid)+"/ns/pid", &st); err != nil {
		return 0, fail(layerNS, "identify the sandbox's pid namespace", err)
	}
	return st.Ino, nil
}
