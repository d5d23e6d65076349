package exec

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mendProc is for containers that mask parts of their /proc, which the kernel
// then does not let a nested sandbox mount in full.
const mendProc = "in a container, start it with --security-opt systempaths=unconfined (podman: unmask=ALL)"

// Probe finds out what this host and this process can do, by trying. extra
// names paths that a Spec.System will ask for.
func Probe(extra ...string) Host {
	h := Host{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	h.OuterUID, h.Initial = outer("/proc/self/uid_map", h.UID)
	h.OuterGID, _ = outer("/proc/self/gid_map", h.GID)
	h.Paths = probePaths(append(append(append([]string{goToolchain}, systemDirs...), etcPaths...), extra...))
	h.Layers = append(h.Layers, probeNamespaces(h)...)
	h.Layers = append(h.Layers, probeIdmap(h), probeSeccomp())
	var missing []Layer
	h.Controllers, missing = probeControllers()
	h.Layers = append(h.Layers, missing...)
	return h
}

// outer translates an id by an id map, and says whether the map is that of the
// initial user namespace.
func outer(file string, id uint32) (uint32, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	return translate(string(text), id)
}

func translate(idMap string, id uint32) (uint32, bool) {
	for line := range strings.Lines(idMap) {
		var n [3]uint64
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		for i := range n {
			n[i], _ = strconv.ParseUint(f[i], 10, 64)
		}
		if inside, size := n[0], n[2]; uint64(id) >= inside && uint64(id) < inside+size {
			initial := inside == 0 && n[1] == 0 && size == 1<<32-1
			return uint32(n[1] + uint64(id) - inside), initial
		}
	}
	return 0, false
}

func probePaths(paths []string) []HostPath {
	var found []HostPath
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		p := HostPath{Path: path, Dir: info.IsDir()}
		if info.Mode()&os.ModeSymlink != 0 {
			p.Link, err = os.Readlink(path)
		}
		if err == nil {
			found = append(found, p)
		}
	}
	return found
}

// probeNamespaces starts a first process and has it try what it will need.
func probeNamespaces(h Host) []Layer {
	err := tryNamespaces(h)
	if err == nil {
		return []Layer{{Name: layerNS, OK: true}, {Name: layerProc, OK: true}}
	}
	e := asError(err)
	layers := []Layer{{Name: layerNS, OK: true}, {Name: layerProc, OK: true}}
	bad := &layers[0]
	if e.Layer == layerProc {
		bad = &layers[1]
	}
	bad.OK, bad.Detail, bad.Mend = false, e.Message, e.Mend
	return layers
}

func tryNamespaces(h Host) error {
	p := &Plan{IDs: IDs{Kernel: Owner{h.UID, h.GID}}}
	if h.Root() {
		p.IDs = IDs{Kernel: Owner{SandboxID, SandboxID}, Map: true}
	}
	r := &run{plan: p, streams: &streams{dead: make(chan struct{})}}
	defer r.abort(context.Background())
	if err := r.streams.nullStreams(); err != nil {
		return err
	}
	if err := r.spawn(nil); err != nil {
		return err
	}
	if err := r.send(&message{Probe: true}); err != nil {
		return err
	}
	m, err := decode(&pollReader{file: r.link})
	if err != nil {
		return fail(layerNS, "hear from the sandbox's first process", err).withMend(mendNamespaces())
	}
	if m.Error != nil {
		return m.Error
	}
	return nil
}

// probeInside is stage 1's side of the trial.
func probeInside() *message {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return &message{Error: fail(layerNS, "make mounts private", err).withMend(mendNamespaces())}
	}
	if _, err := newMount("tmpfs", safeMount); err != nil {
		return &message{Error: fail(layerNS, "mount tmpfs", err).withMend(mendNamespaces())}
	}
	if _, err := newMount("proc", safeMount); err != nil {
		return &message{Error: fail(layerProc, "mount proc", err).withMend(mendProc)}
	}
	if err := loopbackUp(); err != nil {
		return &message{Error: fail(layerNS, "raise loopback", err)}
	}
	return &message{Started: true}
}

// mendNamespaces names the setting that keeps user namespaces from working.
func mendNamespaces() string {
	switch {
	case sysctl("user/max_user_namespaces") == "0":
		return "sysctl -w user.max_user_namespaces=15000"
	case sysctl("kernel/unprivileged_userns_clone") == "0":
		return "sysctl -w kernel.unprivileged_userns_clone=1"
	case sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile with userns for winkfs"
	default:
		return "in a container, start it with --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
	}
}

func sysctl(name string) string {
	text, err := os.ReadFile(filepath.Join("/proc/sys", name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// probeIdmap says whether a FUSE mount can be id-mapped. Only a mount can tell
// for certain; the kernel's version is what can be known without one.
func probeIdmap(h Host) Layer {
	l := Layer{Name: layerIdmap, OK: true}
	if !h.Root() {
		return l
	}
	if major, minor := kernelVersion(); major < 6 || major == 6 && minor < 12 {
		l.OK, l.Mend = false, mendIdmap
		l.Detail = "this kernel can't id-map a FUSE mount"
	}
	return l
}

func kernelVersion() (major, minor int) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return 0, 0
	}
	first, rest, _ := strings.Cut(unix.ByteSliceToString(u.Release[:]), ".")
	second, _, _ := strings.Cut(rest, ".")
	major, _ = strconv.Atoi(first)
	minor, _ = strconv.Atoi(second)
	return major, minor
}

// probeSeccomp asks for a filter without giving one: EFAULT says that filters
// are known, EINVAL that the kernel was built without them.
func probeSeccomp() Layer {
	l := Layer{Name: layerSeccomp, OK: true}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, 0)
	if !errors.Is(errno, unix.EFAULT) {
		l.OK, l.Detail, l.Mend = false, "the kernel has no seccomp filters", "use a kernel with CONFIG_SECCOMP_FILTER"
	}
	return l
}
