package exec

// Host is what NewPlan must know of the machine and of the process that will
// call Run. Probe fills it; tests write it by hand.
type Host struct {
	UID, GID uint32 // effective ids of the daemon, in its own user namespace
	// Initial says that the daemon is in the initial user namespace.
	Initial bool
	// OuterUID and OuterGID are UID and GID as the parent user namespace
	// numbers them; equal to them when Initial.
	OuterUID, OuterGID uint32

	Paths       []HostPath   // what there is of the paths that a plan may show
	Controllers []Controller // of cgroups that this process may create leaves under
	Layers      []Layer
}

// Root says that the daemon is the initial user namespace's root, the one case
// in which the payload needs other ids than the daemon's.
func (h Host) Root() bool { return h.Initial && h.UID == 0 }

// HostPath is a path of the host that exists.
type HostPath struct {
	Path string
	Link string // its target when it is a symlink
	Dir  bool
}

// Controller is a cgroup controller whose limits this process can set.
type Controller struct {
	Name    string // "memory", "pids" or "cpu"
	Version int    // 1 or 2
	Dir     string // directory to make leaves in
}

// Layer is one part of the sandbox and whether this host can do it.
type Layer struct {
	Name   string
	OK     bool
	Detail string // why not
	Mend   string // what would change that
}

// Layer returns the layer of this name; one that was not probed is taken to
// work, and fails by its name when it does not.
func (h Host) Layer(name string) Layer {
	for _, l := range h.Layers {
		if l.Name == name {
			return l
		}
	}
	return Layer{Name: name, OK: true}
}

func (h Host) path(path string) (HostPath, bool) {
	for _, p := range h.Paths {
		if p.Path == path {
			return p, true
		}
	}
	return HostPath{}, false
}

func (h Host) controller(name string) (Controller, bool) {
	for _, c := range h.Controllers {
		if c.Name == name {
			return c, true
		}
	}
	return Controller{}, false
}
