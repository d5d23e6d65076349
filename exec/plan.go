package exec

import (
	"strings"
	"syscall"
	"time"
)

// Plan is a Spec with every decision made: what is shown where, in order, under
// which ids and limits. It crosses to the stages as JSON; String shows it.
type Plan struct {
	Command []string      `json:"command"`
	Cwd     string        `json:"cwd"`
	Base    string        `json:"base"` // the workspace path that holds Cwd
	Env     []string      `json:"env"`
	Timeout time.Duration `json:"timeout,omitempty"`
	Network string        `json:"network"`
	TTY     bool          `json:"tty,omitempty"`
	Size    Winsize       `json:"size"`

	IDs       IDs      `json:"ids"`
	Mount     string   `json:"mount"`
	MountDev  uint64   `json:"mount_dev"`
	MountType int64    `json:"mount_type"`
	Steps     []Step   `json:"steps"`
	Rlimits   []Rlimit `json:"rlimits"`

	Groups   []Group    `json:"groups,omitempty"`
	Degraded []Degraded `json:"degraded,omitempty"`

	spec Spec // streams and OnStart; stays in the daemon
}

// IDs are who the payload is.
type IDs struct {
	Kernel Owner `json:"kernel"` // as the daemon's user namespace numbers them
	Shown  Owner `json:"shown"`  // as the payload sees them
	// Map is set when the mount must be id-mapped from Files to Kernel.
	Map   bool  `json:"map,omitempty"`
	Files Owner `json:"files"`
}

// Rlimit is one resource limit, soft and hard; a lower hard limit of the daemon
// stays.
type Rlimit struct {
	Name     string `json:"name"`
	Resource int    `json:"resource"`
	Soft     uint64 `json:"soft"`
	Hard     uint64 `json:"hard"`
}

// Group is a cgroup leaf to make and the limits to write to it.
type Group struct {
	Controller string    `json:"controller"`
	Dir        string    `json:"dir"`
	Settings   []Setting `json:"settings"`
}

// Setting is one file of a cgroup leaf.
type Setting struct {
	File     string `json:"file"`
	Value    string `json:"value"`
	Optional bool   `json:"optional,omitempty"` // absent on some kernels
}

// Degraded is a layer that this run goes without.
type Degraded struct {
	Layer  string `json:"layer"`
	Detail string `json:"detail"`
	Mend   string `json:"mend"`
}

// NewPlan checks a Spec and decides everything about its run. It touches
// nothing: what it knows of the machine is in h. Errors are *Error.
func NewPlan(s Spec, h Host) (*Plan, error) {
	if err := checkSpec(s); err != nil {
		return nil, err
	}
	if err := checkLayers(h); err != nil {
		return nil, err
	}
	ids, err := planIDs(s, h)
	if err != nil {
		return nil, err
	}
	p := &Plan{
		Command: s.Command, Timeout: s.Timeout, Network: network(s), TTY: s.TTY, Size: s.Size,
		IDs: ids, Mount: s.Mount, MountDev: s.MountDev, MountType: mountType(s), spec: s,
	}
	p.Cwd, p.Base = planCwd(s)
	home := planHome(s.At)
	p.Env = planEnv(s, h, home, p.Cwd)
	p.Steps = planSteps(s, h, ids, home)
	p.planLimits(s, h)
	p.planDegraded(h)
	if s.RequireOSSandbox && len(p.Degraded) > 0 {
		d := p.Degraded[0]
		return nil, refuse(d.Layer, d.Mend, "require_os_sandbox is set and %s", d.Detail)
	}
	return p, nil
}

// checkLayers refuses when a layer is missing that no sandbox can do without.
func checkLayers(h Host) error {
	for _, name := range []string{layerNS, layerProc} {
		if l := h.Layer(name); !l.OK {
			return refuse(name, l.Mend, "%s", l.Detail)
		}
	}
	return nil
}

// planDegraded records the layers that are missing but not needed to start.
func (p *Plan) planDegraded(h Host) {
	for _, name := range []string{layerSeccomp} {
		if l := h.Layer(name); !l.OK {
			p.degrade(l)
		}
	}
}

func (p *Plan) degrade(l Layer) {
	p.Degraded = append(p.Degraded, Degraded{Layer: l.Name, Detail: l.Detail, Mend: l.Mend})
}

// cloneFlags are the namespaces that the first process is born into. The
// cgroup namespace follows in stage 1, once its process is in its leaf.
func (p *Plan) cloneFlags() uintptr {
	flags := uintptr(syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID |
		syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS)
	if p.Network != networkHost {
		flags |= syscall.CLONE_NEWNET
	}
	return flags
}

// places says at how many paths the workspace shows.
func (p *Plan) places() int {
	n := 0
	for _, s := range p.Steps {
		if s.Op == OpWorkspace {
			n++
		}
	}
	return n
}

// seccomp says whether the filter is part of the plan.
func (p *Plan) seccomp() bool {
	for _, d := range p.Degraded {
		if d.Layer == layerSeccomp {
			return false
		}
	}
	return true
}

// below says that path is dir or lies under it. Both are clean and absolute.
func below(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}
