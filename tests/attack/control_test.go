package attack

import (
	iofs "io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func init() {
	probes["control"] = probeControl
	probes["descriptors"] = probeDescriptors
}

// probeControl walks all that it sees for sockets and state directories.
func probeControl(args []string) {
	for _, path := range args {
		if _, err := os.Lstat(path); err == nil {
			breach("sees %s", path)
		}
		if c, err := net.Dial("unix", path); err == nil {
			c.Close()
			breach("can connect to %s", path)
		}
	}
	filepath.WalkDir("/", func(path string, d iofs.DirEntry, err error) error {
		switch {
		case err != nil || path == "/proc" || path == "/sys":
			return iofs.SkipDir
		case d.Type()&iofs.ModeSocket != 0:
			breach("sees the socket %s", path)
		case d.IsDir() && strings.HasPrefix(d.Name(), "wink-"):
			breach("sees the state directory %s", path)
		}
		return nil
	})
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "WINKFS_") {
			breach("the environment has %s", v)
		}
	}
}

func TestNoControlSocket(t *testing.T) {
	j := newJail(t)
	var paths []string
	filepath.WalkDir(j.State, func(path string, d iofs.DirEntry, err error) error {
		paths = append(paths, path)
		return nil
	})
	if len(paths) < 3 {
		t.Fatalf("the state directory has only %q", paths)
	}
	j.probe("control", paths...)
}

// probeDescriptors looks for what was left open.
func probeDescriptors([]string) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		breach("can't list descriptors: %v", err)
	}
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		switch {
		case err != nil || len(e.Name()) == 1 && e.Name() < "3":
		case strings.HasPrefix(target, "anon_inode:[event"), strings.HasSuffix(target, "/fd"):
			// the Go runtime's own, and the listing itself
		default:
			breach("descriptor %s is open on %s", e.Name(), target)
		}
	}
}

func TestNoOpenDescriptors(t *testing.T) {
	newJail(t).probe("descriptors")
}
