package workspace

import (
	"bytes"
	"os"
	osexec "os/exec"
	"strings"
	"syscall"
)

// FillCommand is the hidden command that takes over what an upper directory
// holds: winkfs __fill MOUNT UPPER.
const FillCommand = "__fill"

// IsState reports whether a name in the state root is winkfs's own.
func IsState(name string) bool {
	return strings.HasPrefix(name, dirPrefix) || strings.HasPrefix(name, snapPrefix)
}

// holdsOthers reports whether a state root holds what is not winkfs's.
func holdsOthers(root string) (bool, error) {
	list, err := os.ReadDir(root)
	if err != nil {
		return false, err
	}
	for _, e := range list {
		if !IsState(e.Name()) {
			return true, nil
		}
	}
	return false, nil
}

// Fill takes over what the state root held before it became one: as an upper
// directory of overlayfs, it is part of what the mount shows, and the
// workspace's first changes. The workspace must be mounted. It is done by a
// process of its own, since the daemon must not wait for its own mount.
func (w *Workspace) Fill() error {
	m, err := w.mount()
	if err != nil {
		return err
	}
	others, err := holdsOthers(w.root())
	if err != nil || !others {
		return err
	}
	var said bytes.Buffer
	c := osexec.Command("/proc/self/exe", FillCommand, m.Dir(), w.root())
	c.Dir, c.Stderr = "/", &said
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := c.Run(); err != nil {
		return Wrap(CodeFailure, err, "show what the upper directory holds: %s", bytes.TrimSpace(said.Bytes())).At(w.root()).
			Hinted("name an empty upper directory; device nodes, set-id bits and trusted attributes need profile=posix-full")
	}
	return nil
}
