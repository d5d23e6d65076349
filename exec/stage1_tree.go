package exec

import (
	"fmt"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"
)

// tree is the sandbox's root while stage 1 builds it. Everything is done by
// descriptor; targets resolve inside the root, whatever links it has.
type tree struct {
	plan    *Plan
	root    int         // its root directory
	sources map[int]int // by step: what to mount there, opened before anything covers it
	copies  map[int][]byte
	shown   int  // how often the workspace has been opened
	null    int  // /dev/null, attached
	inside  bool // the root is the process's root
}

// safeMount are the attributes of all that is shown of the host.
const safeMount = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV

// bases are directories to hang the new root under until it is the root; any
// that exists will do.
var bases = []string{"/tmp", "/usr", "/proc"}

// buildTree carries out the plan's steps.
func (p *initProc) buildTree() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fail(layerRoot, "make mounts private", err).withMend(mendNamespaces())
	}
	t := &tree{plan: p.plan, root: -1, sources: map[int]int{}, copies: map[int][]byte{}}
	if err := t.openSources(); err != nil {
		return err
	}
	unix.Umask(0)
	for i, s := range p.plan.Steps {
		if err := t.do(i, s); err != nil {
			if s.Optional && isMissing(err) {
				continue
			}
			return stepError(s, err)
		}
	}
	unix.Umask(0o022)
	t.close()
	return nil
}

func stepError(s Step, err error) error {
	if e, ok := err.(*Error); ok {
		return e
	}
	layer := map[Op]string{OpProc: layerProc, OpSysctl: layerUserNSes, OpDevice: layerDev, OpDevpts: layerTTY, OpWorkspace: layerMount}[s.Op]
	if layer == "" {
		layer = layerRoot
	}
	e := fail(layer, fmt.Sprintf("%s %s", s.Op, s.Target), err)
	if s.Op == OpProc {
		e.Mend = mendProc
	}
	return e
}

func (t *tree) do(i int, s Step) error {
	switch s.Op {
	case OpTmpfs:
		return t.doTmpfs(s)
	case OpBind, OpDevice, OpWorkspace:
		return t.doAttach(i, s)
	case OpSymlink:
		return t.doSymlink(s)
	case OpFile:
		return t.doFile(s.Target, []byte(s.Data))
	case OpCopy:
		if _, ok := t.copies[i]; !ok {
			return unix.ENOENT
		}
		return t.doFile(s.Target, t.copies[i])
	case OpProc:
		return t.doMount(s.Target, "proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	case OpDevpts:
		return t.doMount(s.Target, "devpts", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC,
			"newinstance", "", "ptmxmode", "0666", "mode", "0620")
	case OpSysctl:
		return t.doSysctl(s)
	case OpReadonly:
		return t.doReadonly(s)
	case OpMask:
		return t.doMask(s)
	case OpPivot:
		return t.doPivot()
	}
	return fmt.Errorf("unknown step %q", s.Op)
}

// open opens a path inside without leaving the root.
func (t *tree) open(target string, flags uint64) (int, error) {
	if t.inside {
		return unix.Open(target, int(flags)|unix.O_CLOEXEC, 0)
	}
	return unix.Openat2(t.root, target, &unix.OpenHow{
		Flags:   flags | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// place opens a mount point and makes it and its parents first where they lack.
func (t *tree) place(target string, dir bool) (int, error) {
	fd, err := t.open(target, unix.O_PATH)
	if err != unix.ENOENT {
		return fd, err
	}
	parent, err := t.place(path.Dir(target), true)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(parent) }()
	name := path.Base(target)
	if dir {
		err = unix.Mkdirat(parent, name, 0o755)
	} else {
		err = unix.Mknodat(parent, name, unix.S_IFREG|0o444, 0)
	}
	if err != nil {
		return -1, fmt.Errorf("make mount point: %w", err)
	}
	return t.open(target, unix.O_PATH)
}

func (t *tree) doSymlink(s Step) error {
	parent, err := t.place(path.Dir(s.Target), true)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(parent) }()
	return unix.Symlinkat(s.Data, parent, path.Base(s.Target))
}

func (t *tree) doFile(target string, content []byte) error {
	at, err := t.place(target, false)
	if err != nil {
		return err
	}
	_ = unix.Close(at)
	fd, err := t.open(target, unix.O_WRONLY|unix.O_TRUNC|unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), target)
	defer func() { _ = f.Close() }()
	_, err = f.Write(content)
	return err
}

func (t *tree) doSysctl(s Step) error {
	fd, err := t.open(s.Target, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	_, err = unix.Write(fd, []byte(s.Data))
	return err
}

// close lets go of every descriptor into the tree but for the payload's way.
func (t *tree) close() {
	for _, fd := range t.sources {
		_ = unix.Close(fd)
	}
	_ = unix.Close(t.root)
}

// hideSelf takes stage 1 out of the payload's sight: its descriptors, its
// program and its memory. Preconditions: stage 2 has been forked, which needs
// /proc/self.
func (p *initProc) hideSelf() error {
	empty, err := emptyDir()
	if err != nil {
		return fail(layerProc, "hide the first process", err)
	}
	defer func() { _ = unix.Close(empty) }()
	target := "/proc/" + strconv.Itoa(unix.Getpid())
	if err := unix.MoveMount(empty, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fail(layerProc, "hide the first process", err)
	}
	return nil
}
