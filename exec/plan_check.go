package exec

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	networkNone = "none"
	networkHost = "host"
)

// reserved are paths that the sandbox itself needs: a workspace may not cover
// them.
var reserved = []string{"/proc", "/dev", "/sys"}

func checkSpec(s Spec) error {
	if len(s.Command) == 0 || s.Command[0] == "" {
		return refuse(layerSpec, "name a command", "no command given")
	}
	for _, text := range append(append([]string{s.Cwd, s.Mount}, s.Command...), s.Env...) {
		if strings.ContainsRune(text, 0) {
			return refuse(layerSpec, "", "a NUL byte in %q", text)
		}
	}
	for _, env := range s.Env {
		if name, _, ok := strings.Cut(env, "="); !ok || name == "" {
			return refuse(layerSpec, "write NAME=value", "bad environment entry %q", env)
		}
	}
	if n := network(s); n != networkNone && n != networkHost {
		return refuse(layerNet, `use "none" or "host"`, "unknown network %q", n)
	}
	return checkPaths(s)
}

func checkPaths(s Spec) error {
	if !clean(s.Mount) || s.MountDev == 0 {
		return refuse(layerSpec, "", "the mount needs a clean absolute path and its device number")
	}
	if len(s.At) == 0 {
		return refuse(layerSpec, "", "no path to show the workspace at")
	}
	for _, at := range s.At {
		if err := checkAt(at); err != nil {
			return err
		}
	}
	for _, dir := range append(append([]string{}, s.System...), s.Hidden...) {
		if !clean(dir) || dir == "/" {
			return refuse(layerSpec, "", "not a clean absolute path below /: %q", dir)
		}
	}
	return checkCwd(s)
}

func checkAt(at string) error {
	if !clean(at) || at == "/" {
		return refuse(layerSpec, "", "the workspace can't be shown at %q: not a clean absolute path below /", at)
	}
	for _, dir := range reserved {
		if below(at, dir) {
			return refuse(layerSpec, "show it elsewhere", "the workspace can't be shown at %s: the sandbox needs %s", at, dir)
		}
	}
	return nil
}

func checkCwd(s Spec) error {
	if s.Cwd == "" {
		return nil
	}
	if clean(s.Cwd) {
		for _, at := range s.At {
			if below(s.Cwd, at) {
				return nil
			}
		}
	}
	return refuse(layerCwd, "give a directory below "+strings.Join(s.At, " or "), "%q is not inside the workspace", s.Cwd)
}

func clean(path string) bool { return filepath.IsAbs(path) && filepath.Clean(path) == path }

func network(s Spec) string {
	if s.Network == "" {
		return networkNone
	}
	return s.Network
}

func mountType(s Spec) int64 {
	if s.MountType == 0 {
		return unix.FUSE_SUPER_MAGIC
	}
	return s.MountType
}

// planCwd gives the working directory and the deepest workspace path above it.
func planCwd(s Spec) (cwd, base string) {
	cwd = s.Cwd
	if cwd == "" {
		cwd = s.At[0]
	}
	for _, at := range s.At {
		if below(cwd, at) && len(at) > len(base) {
			base = at
		}
	}
	return cwd, base
}
