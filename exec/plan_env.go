package exec

import (
	"fmt"
	"strings"
)

// userName is what the sandbox's passwd calls the payload.
const userName = "winkfs"

const (
	basePath    = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	goToolchain = "/usr/local/go/bin"
)

// planEnv gives the minimal environment with the Spec's entries over it, each
// name once, in order.
func planEnv(s Spec, h Host, home, cwd string) []string {
	path := basePath
	if _, ok := h.path(goToolchain); ok {
		path += ":" + goToolchain
	}
	env := []string{
		"PATH=" + path, "HOME=" + home, "USER=" + userName, "LOGNAME=" + userName,
		"LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1", "WINKFS=1", "PWD=" + cwd,
	}
	if s.TTY {
		env = append(env, "TERM=xterm-256color")
	}
	return override(env, s.Env)
}

// override lays entries over a base; the last of a name wins and keeps the
// first one's place.
func override(base, over []string) []string {
	at := map[string]int{}
	var out []string
	for _, entry := range append(append([]string{}, base...), over...) {
		name, _, _ := strings.Cut(entry, "=")
		if i, ok := at[name]; ok {
			out[i] = entry
			continue
		}
		at[name] = len(out)
		out = append(out, entry)
	}
	return out
}

// planHome gives the first candidate that lies neither above nor below a
// workspace path: a home inside the workspace would fill it with caches, and
// one above it would be a part of it.
func planHome(at []string) string {
	for _, home := range []string{"/home/" + userName, "/tmp/home", "/root"} {
		if !covered(home, at) {
			return home
		}
	}
	return "/dev/shm"
}

// covered says that a workspace is shown at path, above it or below it.
func covered(path string, at []string) bool {
	for _, a := range at {
		if below(path, a) || below(a, path) {
			return true
		}
	}
	return false
}

// passwd and group name the payload's ids, root and nobody, which is how the
// files of everyone else show.
func passwd(ids IDs, home string) string {
	return fmt.Sprintf("root:x:0:0:root:/:/bin/sh\n%s:x:%d:%d:%s:%s:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
		userName, ids.Shown.UID, ids.Shown.GID, userName, home)
}

func group(ids IDs) string {
	return fmt.Sprintf("root:x:0:\n%s:x:%d:\nnogroup:x:65534:\n", userName, ids.Shown.GID)
}
