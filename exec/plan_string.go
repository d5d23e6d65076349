package exec

import (
	"fmt"
	"strings"
)

// String shows the whole plan, one decision a line, for `exec --dry-run`.
// Control characters are shown escaped.
func (p *Plan) String() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("command", "%q", p.Command)
	line("cwd", "%q", p.Cwd)
	for _, e := range p.Env {
		line("env", "%q", e)
	}
	if p.Timeout > 0 {
		line("timeout", "%s", p.Timeout)
	}
	p.writeIsolation(line)
	for _, s := range p.Steps {
		line("step", "%s", s)
	}
	p.writeLimits(line)
	return b.String()
}

func (p *Plan) writeIsolation(line func(name, format string, args ...any)) {
	spaces := "user mount pid ipc uts cgroup"
	if p.Network != networkHost {
		spaces += " net"
	}
	line("namespaces", "%s, then a second user namespace without capabilities", spaces)
	line("network", "%s", p.Network)
	line("user", "%d:%d inside, %d:%d for the kernel", p.IDs.Shown.UID, p.IDs.Shown.GID, p.IDs.Kernel.UID, p.IDs.Kernel.GID)
	if p.IDs.Map {
		line("id-map", "files of %d:%d belong to the command's user", p.IDs.Files.UID, p.IDs.Files.GID)
	}
	if p.TTY {
		line("terminal", "its own, %d rows, %d columns", p.Size.Rows, p.Size.Cols)
	}
	line("privileges", "no capabilities, no_new_privs")
	if p.seccomp() {
		line("seccomp", "filter of dangerous system calls")
	}
}

func (p *Plan) writeLimits(line func(name, format string, args ...any)) {
	for _, r := range p.Rlimits {
		line("rlimit", "%s %d", r.Name, r.Hard)
	}
	for _, g := range p.Groups {
		for _, s := range g.Settings {
			line("cgroup", "%s %s = %s", g.Dir, s.File, s.Value)
		}
	}
	for _, d := range p.Degraded {
		line("degraded", "%s: %s (%s)", d.Layer, d.Detail, d.Mend)
	}
}

// String shows the step as a line of the plan.
func (s Step) String() string {
	text := fmt.Sprintf("%-9s", s.Op)
	if s.Target != "" {
		text += fmt.Sprintf(" %q", s.Target)
	}
	if s.Source != "" && s.Source != s.Target {
		text += fmt.Sprintf(" from %q", s.Source)
	}
	if s.Data != "" {
		text += fmt.Sprintf(" %q", s.Data)
	}
	if s.Optional {
		text += " if present"
	}
	return strings.TrimSpace(text)
}
