package exec

import (
	"fmt"
	"strings"
)

// Op says what a Step does.
type Op string

// Steps, in the order in which a plan has them.
const (
	OpTmpfs     Op = "tmpfs"     // a bounded tmpfs at Target; Data has its options
	OpBind      Op = "bind"      // Source and all below it, read-only, at Target
	OpSymlink   Op = "symlink"   // Target is a link to Data
	OpFile      Op = "file"      // Target is a file with the content Data
	OpCopy      Op = "copy"      // Target is a copy of the host's file Source
	OpProc      Op = "proc"      // a proc of the sandbox's pid namespace
	OpSysctl    Op = "sysctl"    // writes Data to Target
	OpReadonly  Op = "readonly"  // Target and all below it become read-only
	OpMask      Op = "mask"      // Target shows as an empty file or directory
	OpDevice    Op = "device"    // the character device Source, checked to be number Data
	OpDevpts    Op = "devpts"    // a devpts instance of its own
	OpWorkspace Op = "workspace" // the workspace
	OpPivot     Op = "pivot"     // the host's tree goes out of reach
)

// Step is one thing that stage 1 does to the mount namespace. Targets are paths
// inside.
type Step struct {
	Op       Op     `json:"op"`
	Target   string `json:"target,omitempty"`
	Source   string `json:"source,omitempty"` // a path of the host
	Data     string `json:"data,omitempty"`
	Optional bool   `json:"optional,omitempty"` // skipped when it does not exist
}

// systemDirs are the host's read-only system, where they exist.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// etcPaths are the parts of the host's /etc that programs need and that hold no
// secret.
var etcPaths = []string{
	"/etc/alternatives", "/etc/bash.bashrc", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/crypto-policies",
	"/etc/debian_version", "/etc/fonts", "/etc/inputrc", "/etc/java-17-openjdk", "/etc/java-21-openjdk",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/magic", "/etc/mime.types",
	"/etc/os-release", "/etc/perl", "/etc/pki/ca-trust", "/etc/pki/tls/certs", "/etc/profile", "/etc/profile.d", "/etc/protocols",
	"/etc/services", "/etc/shells", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/terminfo", "/etc/timezone", "/etc/xml",
}

// hostNetworkFiles are needed to resolve names when the host's network is used.
var hostNetworkFiles = []string{"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/gai.conf"}

var procReadonly = []string{"/proc/sys", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/tty"}

var procMasked = []string{
	"/proc/acpi", "/proc/asound", "/proc/config.gz", "/proc/driver", "/proc/kallsyms", "/proc/kcore", "/proc/key-users", "/proc/keys",
	"/proc/kmsg", "/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags", "/proc/latency_stats", "/proc/modules",
	"/proc/sched_debug", "/proc/scsi", "/proc/slabinfo", "/proc/sysrq-trigger", "/proc/sysvipc", "/proc/timer_list",
	"/proc/timer_stats", "/proc/vmallocinfo",
}

// devices are the nodes of /dev with their numbers.
var devices = []struct{ name, number string }{
	{"null", "1:3"}, {"zero", "1:5"}, {"full", "1:7"}, {"random", "1:8"}, {"urandom", "1:9"}, {"tty", "5:0"},
}

const (
	rootTmpfs    = "size=8m,nr_inodes=4096,mode=0755"
	defaultTmpfs = 2 << 30
	tmpfsInodes  = 262_144
)

// planSteps builds the sandbox's tree: system, devices and temporary
// directories first, covers over what must not show, then the workspace on top
// of whatever lies at its paths.
func planSteps(s Spec, h Host, ids IDs, home string) []Step {
	steps := []Step{{Op: OpTmpfs, Target: "/", Data: rootTmpfs}}
	steps = append(steps, systemSteps(s, h)...)
	steps = append(steps, etcSteps(s, h, ids, home)...)
	steps = append(steps, devSteps(s)...)
	steps = append(steps, procSteps()...)
	steps = append(steps, tempSteps(s, home)...)
	steps = append(steps, hiddenSteps(s)...)
	for _, at := range parentsFirst(s.At) {
		steps = append(steps, Step{Op: OpWorkspace, Source: s.Mount, Target: at})
	}
	return append(steps, Step{Op: OpPivot}, Step{Op: OpReadonly, Target: "/"})
}

func systemSteps(s Spec, h Host) []Step {
	var steps []Step
	for _, dir := range append(append([]string{}, systemDirs...), s.System...) {
		p, ok := h.path(dir)
		switch {
		case !ok:
		case p.Link != "":
			steps = append(steps, Step{Op: OpSymlink, Target: dir, Data: p.Link})
		default:
			steps = append(steps, Step{Op: OpBind, Source: dir, Target: dir})
		}
	}
	return steps
}

func etcSteps(s Spec, h Host, ids IDs, home string) []Step {
	steps := []Step{
		{Op: OpFile, Target: "/etc/passwd", Data: passwd(ids, home)},
		{Op: OpFile, Target: "/etc/group", Data: group(ids)},
		{Op: OpFile, Target: "/etc/hostname", Data: hostname + "\n"},
	}
	steps = append(steps, resolverSteps(s)...)
	for _, path := range etcPaths {
		p, ok := h.path(path)
		switch {
		case !ok:
		case p.Link != "":
			steps = append(steps, Step{Op: OpSymlink, Target: path, Data: p.Link})
		default:
			steps = append(steps, Step{Op: OpBind, Source: path, Target: path, Optional: true})
		}
	}
	return steps
}

// hostname is the sandbox's own.
const hostname = "winkfs"

func resolverSteps(s Spec) []Step {
	if network(s) == networkHost {
		var steps []Step
		for _, path := range hostNetworkFiles {
			steps = append(steps, Step{Op: OpCopy, Source: path, Target: path, Optional: true})
		}
		return steps
	}
	return []Step{
		{Op: OpFile, Target: "/etc/resolv.conf"},
		{Op: OpFile, Target: "/etc/hosts", Data: "127.0.0.1 localhost " + hostname + "\n::1 localhost\n"},
		{Op: OpFile, Target: "/etc/nsswitch.conf", Data: "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n"},
	}
}

func procSteps() []Step {
	steps := []Step{
		{Op: OpProc, Target: "/proc"},
		// One user namespace may still be made: stage 2's.
		{Op: OpSysctl, Target: "/proc/sys/user/max_user_namespaces", Data: "1"},
	}
	for _, path := range procReadonly {
		steps = append(steps, Step{Op: OpReadonly, Target: path, Optional: true})
	}
	for _, path := range procMasked {
		steps = append(steps, Step{Op: OpMask, Target: path, Optional: true})
	}
	return steps
}

func devSteps(s Spec) []Step {
	var steps []Step
	for _, d := range devices {
		steps = append(steps, Step{Op: OpDevice, Source: "/dev/" + d.name, Target: "/dev/" + d.name, Data: d.number})
	}
	return append(steps,
		Step{Op: OpDevpts, Target: "/dev/pts"},
		Step{Op: OpSymlink, Target: "/dev/ptmx", Data: "pts/ptmx"},
		Step{Op: OpSymlink, Target: "/dev/fd", Data: "/proc/self/fd"},
		Step{Op: OpSymlink, Target: "/dev/stdin", Data: "/proc/self/fd/0"},
		Step{Op: OpSymlink, Target: "/dev/stdout", Data: "/proc/self/fd/1"},
		Step{Op: OpSymlink, Target: "/dev/stderr", Data: "/proc/self/fd/2"},
		tmpfs("/dev/shm", "1777", s.Limits.Tmpfs))
}

func tempSteps(s Spec, home string) []Step {
	steps := []Step{tmpfs("/tmp", "1777", s.Limits.Tmpfs)}
	if !covered("/var/tmp", s.At) {
		steps = append(steps, Step{Op: OpSymlink, Target: "/var/tmp", Data: "../tmp"})
	}
	return append(steps, tmpfs(home, "0700", s.Limits.Tmpfs))
}

func tmpfs(target, mode string, size int64) Step {
	if size <= 0 {
		size = defaultTmpfs
	}
	return Step{Op: OpTmpfs, Target: target, Data: fmt.Sprintf("size=%d,nr_inodes=%d,mode=%s", size, tmpfsInodes, mode)}
}

// hiddenSteps cover what a system directory would show although it must not.
func hiddenSteps(s Spec) []Step {
	var steps []Step
	for _, dir := range parentsFirst(s.Hidden) {
		if showsThrough(dir, s.System) {
			steps = append(steps, Step{Op: OpMask, Target: dir, Optional: true})
		}
	}
	return steps
}

func showsThrough(path string, system []string) bool {
	for _, dir := range append(append([]string{}, systemDirs...), system...) {
		if below(path, dir) {
			return true
		}
	}
	return false
}

// parentsFirst orders paths so that none is mounted over by a later one above
// it, each once.
func parentsFirst(paths []string) []string {
	var out []string
	for _, p := range paths {
		i := 0
		for i < len(out) && strings.Compare(out[i], p) < 0 {
			i++
		}
		if i < len(out) && out[i] == p {
			continue
		}
		out = append(out[:i], append([]string{p}, out[i:]...)...)
	}
	return out
}
