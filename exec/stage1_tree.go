package exec

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

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

// openSources opens what the host contributes, before the new root covers any
// of it.
func (t *tree) openSources() (err error) {
	for i, s := range t.plan.Steps {
		switch s.Op {
		case OpBind:
			err = t.openSource(i, s, safeMount, unix.AT_RECURSIVE)
		case OpDevice:
			err = t.openSource(i, s, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, 0)
			if err == nil {
				err = checkDevice(t.sources[i], s)
			}
		case OpWorkspace:
			err = t.openWorkspace(i, s)
		case OpCopy:
			t.copies[i], err = os.ReadFile(s.Source)
		}
		if err != nil && !(s.Optional && isMissing(err)) {
			return stepError(s, err)
		}
	}
	return nil
}

// openSource clones a mount of the host's tree and sets its attributes before
// it is visible anywhere.
func (t *tree) openSource(i int, s Step, attrs uint64, flags uint) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, s.Source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|flags)
	if err != nil {
		return err
	}
	attr := unix.MountAttr{Attr_set: attrs, Propagation: unix.MS_PRIVATE}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|flags, &attr); err != nil {
		_ = unix.Close(fd)
		return fmt.Errorf("set attributes: %w", err)
	}
	t.sources[i] = fd
	if s.Source == "/dev/null" {
		t.null = fd
	}
	return nil
}

// openWorkspace takes the workspace from the descriptors that the daemon passed,
// one for each place, or from its path, and makes sure that it is the mount
// that was meant.
func (t *tree) openWorkspace(i int, s Step) error {
	if t.plan.IDs.Map {
		t.sources[i] = mountFD + t.shown
		t.shown++
		return t.verifyWorkspace(t.sources[i])
	}
	fd, err := cloneWorkspace(s.Source)
	if err != nil {
		return err
	}
	t.sources[i] = fd
	return t.verifyWorkspace(fd)
}

// cloneWorkspace makes a detached instance of the mount at path.
func cloneWorkspace(path string) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err == unix.EINVAL {
		return -1, refuse(layerMount, "unmount what lies below "+path, "something is mounted inside the workspace's mount")
	}
	if err != nil {
		return -1, err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("set attributes: %w", err)
	}
	return fd, nil
}

func (t *tree) verifyWorkspace(fd int) error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if fs.Type != t.plan.MountType || st.Dev != t.plan.MountDev {
		return refuse(layerMount, "mount the workspace again",
			"%s is not the workspace's mount (type %#x device %d, expected type %#x device %d)",
			t.plan.Mount, fs.Type, st.Dev, t.plan.MountType, t.plan.MountDev)
	}
	return nil
}

// checkDevice makes sure that a descriptor is the device that it is called.
func checkDevice(fd int, s Step) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	number := fmt.Sprintf("%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev))
	if st.Mode&unix.S_IFMT != unix.S_IFCHR || number != s.Data {
		return refuse(layerDev, "", "%s is not the device %s", s.Source, s.Data)
	}
	return nil
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

// doTmpfs mounts a tmpfs; the first one becomes the root of the tree.
func (t *tree) doTmpfs(s Step) error {
	var options []string
	for _, o := range strings.Split(s.Data, ",") {
		key, value, _ := strings.Cut(o, "=")
		options = append(options, key, value)
	}
	attrs := unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	if t.root >= 0 {
		return t.doMount(s.Target, "tmpfs", attrs, options...)
	}
	fd, err := newMount("tmpfs", attrs, options...)
	if err != nil {
		return err
	}
	t.root = fd
	for _, base := range bases {
		err = unix.MoveMount(fd, "", unix.AT_FDCWD, base, unix.MOVE_MOUNT_F_EMPTY_PATH)
		if err == nil {
			break
		}
	}
	return err
}

func (t *tree) doMount(target, fstype string, attrs int, options ...string) error {
	fd, err := newMount(fstype, attrs, options...)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return t.attach(fd, target)
}

// newMount makes a mount that is attached nowhere. Options are pairs of key and
// value; a key without a value is a flag.
func newMount(fstype string, attrs int, options ...string) (int, error) {
	fs, err := unix.Fsopen(fstype, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(fs) }()
	for i := 0; i < len(options); i += 2 {
		if options[i+1] == "" {
			err = unix.FsconfigSetFlag(fs, options[i])
		} else {
			err = unix.FsconfigSetString(fs, options[i], options[i+1])
		}
		if err != nil {
			return -1, fmt.Errorf("option %s: %w", options[i], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attrs)
}

func (t *tree) doAttach(i int, s Step) error {
	fd, ok := t.sources[i]
	if !ok {
		return unix.ENOENT
	}
	return t.attach(fd, s.Target)
}

// attach moves a detached mount to a path inside, which is made if it does not
// exist.
func (t *tree) attach(fd int, target string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	at, err := t.place(target, st.Mode&unix.S_IFMT == unix.S_IFDIR)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(at) }()
	return unix.MoveMount(fd, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// cloneTo attaches another instance of a mount.
func (t *tree) cloneTo(fd int, at int) error {
	clone, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(clone) }()
	return unix.MoveMount(clone, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
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

// doReadonly makes a mount read-only, or a part of one by a bind of it on
// itself.
func (t *tree) doReadonly(s Step) error {
	fd, err := t.open(s.Target, unix.O_PATH)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if s.Target == "/" {
		return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr)
	}
	clone, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(clone) }()
	if err := unix.MountSetattr(clone, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return err
	}
	return unix.MoveMount(clone, "", fd, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// doMask covers a directory with an empty one and anything else with /dev/null.
func (t *tree) doMask(s Step) error {
	at, err := t.open(s.Target, unix.O_PATH)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(at) }()
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		empty, err := emptyDir()
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(empty) }()
		return unix.MoveMount(empty, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	}
	return t.cloneTo(t.null, at)
}

// emptyDir makes a detached read-only mount with nothing in it.
func emptyDir() (int, error) {
	return newMount("tmpfs", safeMount|unix.MOUNT_ATTR_NOEXEC, "size", "4k", "nr_inodes", "2", "mode", "0555")
}

// doPivot makes the tree the root of the mount namespace and lets go of the
// host's. pivot_root(2) describes the form with the same directory twice.
func (t *tree) doPivot() error {
	if err := unix.Fchdir(t.root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	t.inside = true
	return unix.Chdir("/")
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

func isMissing(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
}
