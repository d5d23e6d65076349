package workspace

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const runtimeFile = "runtime.json"

// SocketName is the name of the control socket in the state directory.
const SocketName = "control.sock"

// Runtime is what a daemon leaves for others to read: where the workspace is
// mounted. It is advice; only a daemon that answers on the socket is alive.
type Runtime struct {
	PID        int    `json:"pid"`
	Mountpoint string `json:"mountpoint"`
	Private    bool   `json:"private"` // mounted in a mount namespace of the daemon's own
	StartedAt  Time   `json:"started_at"`
	LastUsedAt Time   `json:"last_used_at"`
}

func loadRuntime(dir string) *Runtime {
	r := &Runtime{}
	b, err := os.ReadFile(filepath.Join(dir, runtimeFile))
	if err != nil || json.Unmarshal(b, r) != nil {
		return &Runtime{}
	}
	return r
}

func (r *Runtime) save(dir string) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode runtime: %w", err)
	}
	return writeFile(dir, runtimeFile, append(b, '\n'))
}

// writeFile replaces a file of the state directory as a whole: a reader sees
// the old bytes or the new ones, after a crash too.
func writeFile(dir, name string, data []byte) error {
	f, err := os.CreateTemp(dir, "."+name+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// SocketPath returns a path to the socket in the directory that fits into a
// socket address, which holds 108 bytes, and a function that releases what the
// path leans on.
func SocketPath(dir string) (string, func(), error) {
	path := filepath.Join(dir, SocketName)
	if len(path) < 100 {
		return path, func() {}, nil
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, fmt.Errorf("open state directory: %w", err)
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", fd, SocketName), func() { unix.Close(fd) }, nil
}

// socketAnswers reports whether a daemon listens in the state directory.
func socketAnswers(dir string) bool {
	path, release, err := SocketPath(dir)
	if err != nil {
		return false
	}
	defer release()
	c, err := net.DialTimeout("unix", path, 2*time.Second)
	if err != nil {
		return false
	}
	c.Close()
	return true
}
