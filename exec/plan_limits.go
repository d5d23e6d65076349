package exec

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// cpuPeriod is the kernel's default bandwidth period, in microseconds.
const cpuPeriod = 100_000

// planLimits turns Limits into cgroup settings where the host has the
// controller, else into the nearest rlimit, by name.
func (p *Plan) planLimits(s Spec, h Host) {
	p.Rlimits = baseRlimits()
	p.limitMemory(s.Limits.Memory, h)
	p.limitPids(s.Limits.Pids, h)
	p.limitCPU(s.Limits.CPUs, h)
}

func baseRlimits() []Rlimit {
	return []Rlimit{
		{"core", unix.RLIMIT_CORE, 0, 0},
		{"nofile", unix.RLIMIT_NOFILE, 65536, 65536},
		{"memlock", unix.RLIMIT_MEMLOCK, 8 << 20, 8 << 20},
		{"msgqueue", unix.RLIMIT_MSGQUEUE, 0, 0},
		{"nice", unix.RLIMIT_NICE, 0, 0},
		{"rtprio", unix.RLIMIT_RTPRIO, 0, 0},
	}
}

func (p *Plan) limitMemory(bytes int64, h Host) {
	if bytes <= 0 {
		return
	}
	value := strconv.FormatInt(bytes, 10)
	c, ok := h.controller("memory")
	switch {
	case !ok:
		// Not RLIMIT_AS: runtimes reserve far more address space than they use
		// (Go, Node, Java) and fail to start under it.
		p.Rlimits = append(p.Rlimits, Rlimit{"data", unix.RLIMIT_DATA, uint64(bytes), uint64(bytes)})
		p.degradeLimit(layerMemory, "memory", "only each process's data is limited", h)
	case c.Version == 1:
		p.group(c, Setting{File: "memory.limit_in_bytes", Value: value},
			Setting{File: "memory.memsw.limit_in_bytes", Value: value, Optional: true})
	default:
		p.group(c, Setting{File: "memory.max", Value: value},
			Setting{File: "memory.swap.max", Value: "0", Optional: true})
	}
}

func (p *Plan) limitPids(n int, h Host) {
	if n <= 0 {
		return
	}
	// Stage 1 and its threads count too.
	if c, ok := h.controller("pids"); ok {
		p.group(c, Setting{File: "pids.max", Value: strconv.Itoa(n + stageThreads)})
		return
	}
	p.Rlimits = append(p.Rlimits, Rlimit{"nproc", unix.RLIMIT_NPROC, uint64(n), uint64(n)})
	p.degradeLimit(layerPids, "pids", "it is enforced by RLIMIT_NPROC", h)
}

// stageThreads is how many threads stage 1 may have, beyond the payload's.
const stageThreads = 16

func (p *Plan) limitCPU(cpus float64, h Host) {
	if cpus <= 0 {
		return
	}
	quota := strconv.Itoa(max(1000, int(cpus*cpuPeriod)))
	c, ok := h.controller("cpu")
	switch {
	case !ok:
		p.degradeLimit(layerCPU, "cpu", "processor time is not limited", h)
	case c.Version == 1:
		p.group(c, Setting{File: "cpu.cfs_period_us", Value: strconv.Itoa(cpuPeriod)},
			Setting{File: "cpu.cfs_quota_us", Value: quota})
	default:
		p.group(c, Setting{File: "cpu.max", Value: fmt.Sprintf("%s %d", quota, cpuPeriod)})
	}
}

// group adds settings to the leaf in the controller's directory.
func (p *Plan) group(c Controller, settings ...Setting) {
	for i := range p.Groups {
		if p.Groups[i].Dir == c.Dir {
			p.Groups[i].Controller += "," + c.Name
			p.Groups[i].Settings = append(p.Groups[i].Settings, settings...)
			return
		}
	}
	p.Groups = append(p.Groups, Group{Controller: c.Name, Dir: c.Dir, Settings: settings})
}

func (p *Plan) degradeLimit(layer, controller, instead string, h Host) {
	l := h.Layer(layer)
	if l.OK {
		l = missingController(layer, controller)
	}
	l.Detail += "; " + instead
	p.degrade(l)
}

// missingController is the layer of a limit for which no cgroup can be made.
func missingController(layer, controller string) Layer {
	return Layer{
		Name:   layer,
		Detail: fmt.Sprintf("no cgroup with the %s controller can be made here", controller),
		Mend:   "start winkfs as root, or under systemd-run --user --scope -p Delegate=yes",
	}
}
