package exec

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

func itoa(n int) string { return strconv.Itoa(n) }

// mendIdmap is for kernels and mounts that can't be id-mapped.
const mendIdmap = "use Linux 6.12 or later, or start winkfs as an ordinary user"

// mappings keeps the user namespaces that describe an id mapping: they cost a
// process each to make and nothing to keep.
var mappings = struct {
	mu sync.Mutex
	ns map[IDs]*os.File // protected by mu; entries are never removed
}{ns: map[IDs]*os.File{}}

// mappedMounts makes detached instances of the plan's mount, one for each place
// that shows it, in which the files' owner is the payload. Nothing of the mount
// is looked at: in the daemon, that would be a request to itself.
func mappedMounts(p *Plan) (mounts []*os.File, err error) {
	ns, err := mapping(p.IDs)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			closeAll(mounts)
			mounts = nil
		}
	}()
	for range p.places() {
		fd, err := unix.OpenTree(unix.AT_FDCWD, p.Mount, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return mounts, fail(layerMount, "clone "+p.Mount, err)
		}
		mounts = append(mounts, os.NewFile(uintptr(fd), p.Mount))
		attr := unix.MountAttr{
			Attr_set:    unix.MOUNT_ATTR_IDMAP | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV,
			Propagation: unix.MS_PRIVATE,
			Userns_fd:   uint64(ns.Fd()),
		}
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
			return mounts, idmapError(p.Mount, err)
		}
	}
	return mounts, nil
}

func idmapError(mount string, err error) error {
	e := fail(layerIdmap, "map the owner's id of "+mount, err)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		e.Mend = mendIdmap
	}
	return e
}

// mapping gives a user namespace that maps the files' owner to the payload.
func mapping(ids IDs) (*os.File, error) {
	key := IDs{Kernel: ids.Kernel, Files: ids.Files}
	mappings.mu.Lock()
	defer mappings.mu.Unlock()
	if ns := mappings.ns[key]; ns != nil {
		return ns, nil
	}
	ns, err := newMapping(key)
	if err != nil {
		return nil, fail(layerIdmap, "make a user namespace", err)
	}
	mappings.ns[key] = ns
	return ns, nil
}

// newMapping starts a process in a new user namespace, takes hold of the
// namespace and ends the process. Main makes that process do nothing.
func newMapping(ids IDs) (ns *os.File, err error) {
	attr := &os.ProcAttr{Dir: "/", Env: stageEnv, Sys: &syscall.SysProcAttr{
		Cloneflags:                 syscall.CLONE_NEWUSER,
		UidMappings:                []syscall.SysProcIDMap{{ContainerID: int(ids.Files.UID), HostID: int(ids.Kernel.UID), Size: 1}},
		GidMappings:                []syscall.SysProcIDMap{{ContainerID: int(ids.Files.GID), HostID: int(ids.Kernel.GID), Size: 1}},
		GidMappingsEnableSetgroups: true,
		Pdeathsig:                  syscall.SIGKILL,
	}}
	onSpawner(func() {
		var proc *os.Process
		if proc, err = os.StartProcess(selfExe, []string{mapperName}, attr); err != nil {
			return
		}
		ns, err = os.Open("/proc/" + itoa(proc.Pid) + "/ns/user")
		_ = proc.Kill()
		_, _ = proc.Wait()
	})
	return ns, err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
