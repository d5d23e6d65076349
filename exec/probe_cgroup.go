package exec

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// limitFiles are what a leaf must have for a controller to be usable, for each
// version of cgroups.
var limitFiles = []struct {
	controller, layer string
	file              [3]string
}{
	{"memory", layerMemory, [3]string{1: "memory.limit_in_bytes", 2: "memory.max"}},
	{"pids", layerPids, [3]string{1: "pids.max", 2: "pids.max"}},
	{"cpu", layerCPU, [3]string{1: "cpu.cfs_quota_us", 2: "cpu.max"}},
}

// probeControllers finds where leaves with each controller can be made.
func probeControllers() (found []Controller, layers []Layer) {
	own, _ := os.ReadFile("/proc/self/cgroup")
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	candidates := controllerDirs(string(own), string(mounts))
	for _, l := range limitFiles {
		c, ok := usable(l.controller, l.file, candidates)
		if ok {
			found = append(found, c)
			layers = append(layers, Layer{Name: l.layer, OK: true})
		} else {
			layers = append(layers, missingController(l.layer, l.controller))
		}
	}
	return found, layers
}

// usable tries a leaf at each place where one may be made.
func usable(name string, file [3]string, candidates []Controller) (Controller, bool) {
	for _, c := range candidates {
		if c.Name != name {
			continue
		}
		leaf := filepath.Join(c.Dir, fmt.Sprintf("%s%d-probe", leafPrefix, os.Getpid()))
		if os.Mkdir(leaf, 0o755) != nil {
			continue
		}
		_, err := os.Stat(filepath.Join(leaf, file[c.Version]))
		if err == nil {
			err = tryWritable(leaf)
		}
		_ = os.Remove(leaf)
		if err == nil {
			return c, true
		}
	}
	return Controller{}, false
}

func tryWritable(leaf string) error {
	f, err := os.OpenFile(filepath.Join(leaf, "cgroup.procs"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// controllerDirs lists, for each controller, the directories below which this
// process may hope to make leaves: its own cgroup and, where that one holds
// processes and so can't have controllers below it (cgroups v2), the one above.
func controllerDirs(own, mounts string) []Controller {
	var out []Controller
	for line := range strings.Lines(own) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if parts[0] == "0" && parts[1] == "" {
			out = append(out, unifiedDirs(parts[2], mounts)...)
			continue
		}
		for _, name := range strings.Split(parts[1], ",") {
			if dir := cgroupDir(mounts, "cgroup", name, parts[2]); dir != "" {
				out = append(out, Controller{Name: name, Version: 1, Dir: dir})
			}
		}
	}
	return out
}

func unifiedDirs(own, mounts string) []Controller {
	var out []Controller
	for _, path := range slices.Compact([]string{own, filepath.Dir(own)}) {
		dir := cgroupDir(mounts, "cgroup2", "", path)
		if dir == "" {
			continue
		}
		for _, l := range limitFiles {
			out = append(out, Controller{Name: l.controller, Version: 2, Dir: dir})
		}
	}
	return out
}

// cgroupDir finds a cgroup in the mounted hierarchies: of the file system type,
// with the option name among its super options. A mount may show a part of the
// hierarchy only.
func cgroupDir(mounts, fstype, option, path string) string {
	for line := range strings.Lines(mounts) {
		left, right, ok := strings.Cut(strings.TrimSpace(line), " - ")
		f, g := strings.Fields(left), strings.Fields(right)
		if !ok || len(f) < 5 || len(g) < 3 || g[0] != fstype {
			continue
		}
		if option != "" && !slices.Contains(strings.Split(g[2], ","), option) {
			continue
		}
		if root := f[3]; below(path, root) {
			return filepath.Join(f[4], strings.TrimPrefix(path, strings.TrimSuffix(root, "/")))
		}
	}
	return ""
}
