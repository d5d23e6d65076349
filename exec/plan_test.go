package exec

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

// testHost is a machine with everything; tests take away from it.
func testHost(uid uint32) Host {
	return Host{
		UID: uid, GID: uid, Initial: true, OuterUID: uid, OuterGID: uid,
		Paths: []HostPath{
			{Path: "/usr", Dir: true}, {Path: "/bin", Link: "usr/bin"}, {Path: "/lib", Dir: true}, {Path: goToolchain, Dir: true},
			{Path: "/etc/ssl/certs", Dir: true}, {Path: "/etc/localtime", Link: "/usr/share/zoneinfo/UTC"}, {Path: "/opt", Dir: true},
		},
		Controllers: []Controller{
			{"memory", 1, "/sys/fs/cgroup/memory/d"}, {"pids", 2, "/sys/fs/cgroup/unified/d"}, {"cpu", 2, "/sys/fs/cgroup/unified/d"},
		},
	}
}

func testSpec() Spec {
	return Spec{
		Command: []string{"make", "a b"}, Mount: "/run/winkfs/mount", MountDev: 42, At: []string{"/workspace"}, Owner: Owner{1001, 1001},
	}
}

func TestPlanGolden(t *testing.T) {
	tests := []struct {
		name string
		spec func(*Spec)
		host func(*Host)
	}{
		{"root", nil, nil},
		{"root-owner-root", func(s *Spec) { s.Owner = Owner{0, 0} }, nil},
		{"user", nil, func(h *Host) { *h = testHost(1001); h.Controllers = nil }},
		{"mapped-root", nil, func(h *Host) { h.Initial, h.OuterUID, h.OuterGID = false, 1001, 1001 }},
		{"everything", func(s *Spec) {
			s.At = []string{"/workspace", "/home/winkfs/src", "/var/tmp/x"}
			s.Cwd = "/home/winkfs/src/sub"
			s.Env = []string{"A=b\nc", "PATH=/bin"}
			s.Timeout, s.Network, s.TTY, s.Size = time.Minute, "host", true, Winsize{24, 80}
			s.Limits = Limits{CPUs: 1.5, Memory: 1 << 30, Tmpfs: 1 << 20, Pids: 100}
			s.System = []string{"/opt", "/absent"}
			s.Hidden = []string{"/usr/src/x", "/home/u", "/opt/secret"}
		}, nil},
		{"degraded", func(s *Spec) { s.Limits = Limits{CPUs: 1, Memory: 1 << 30, Pids: 100} }, func(h *Host) {
			h.Controllers = nil
			h.Layers = []Layer{{Name: layerSeccomp, Detail: "no filters", Mend: "another kernel"}}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, h := testSpec(), testHost(0)
			if tt.spec != nil {
				tt.spec(&s)
			}
			if tt.host != nil {
				tt.host(&h)
			}
			p, err := NewPlan(s, h)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, tt.name, p.String())
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if got != string(want) {
		t.Errorf("the plan differs from %s:\n%s", file, got)
	}
}

func TestPlanRefuses(t *testing.T) {
	tests := []struct {
		name string
		spec func(*Spec)
		host func(*Host)
		want string
	}{
		{"no command", func(s *Spec) { s.Command = nil }, nil, "no command"},
		{"NUL in command", func(s *Spec) { s.Command = []string{"a\x00b"} }, nil, "NUL"},
		{"NUL in environment", func(s *Spec) { s.Env = []string{"A=\x00"} }, nil, "NUL"},
		{"bad environment", func(s *Spec) { s.Env = []string{"=x"} }, nil, "environment"},
		{"no mount", func(s *Spec) { s.Mount = "" }, nil, "mount"},
		{"relative mount", func(s *Spec) { s.Mount = "x" }, nil, "mount"},
		{"no device", func(s *Spec) { s.MountDev = 0 }, nil, "mount"},
		{"nowhere", func(s *Spec) { s.At = nil }, nil, "no path"},
		{"at root", func(s *Spec) { s.At = []string{"/"} }, nil, "shown at"},
		{"at proc", func(s *Spec) { s.At = []string{"/proc/x"} }, nil, "sandbox needs /proc"},
		{"at relative", func(s *Spec) { s.At = []string{"w"} }, nil, "shown at"},
		{"at unclean", func(s *Spec) { s.At = []string{"/w/../etc"} }, nil, "shown at"},
		{"cwd outside", func(s *Spec) { s.Cwd = "/etc" }, nil, "not inside"},
		{"cwd beside", func(s *Spec) { s.Cwd = "/workspace2" }, nil, "not inside"},
		{"cwd unclean", func(s *Spec) { s.Cwd = "/workspace/../etc" }, nil, "not inside"},
		{"unknown network", func(s *Spec) { s.Network = "hots" }, nil, "network"},
		{"system root", func(s *Spec) { s.System = []string{"/"} }, nil, "below /"},
		{"root in a namespace", nil, func(h *Host) { h.Initial = false }, "host's root"},
		{"no id map", nil, func(h *Host) { h.Layers = []Layer{{Name: layerIdmap, Detail: "old kernel", Mend: mendIdmap}} }, "never does"},
		{"no namespaces", nil, func(h *Host) { h.Layers = []Layer{{Name: layerNS, Detail: "forbidden", Mend: "sysctl"}} }, "forbidden (sysctl)"},
		{"required", func(s *Spec) { s.RequireOSSandbox, s.Limits.CPUs = true, 1 }, func(h *Host) { h.Controllers = nil }, "require_os_sandbox"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, h := testSpec(), testHost(0)
			if tt.spec != nil {
				tt.spec(&s)
			}
			if tt.host != nil {
				tt.host(&h)
			}
			_, err := NewPlan(s, h)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err != nil && asError(err).Code != ExitSandbox {
				t.Errorf("got code %d", asError(err).Code)
			}
		})
	}
}

// TestPlanKernelID looks at every kind of daemon for a payload with kernel id 0.
func TestPlanKernelID(t *testing.T) {
	for _, uid := range []uint32{0, 1, 1001} {
		for _, outer := range []uint32{0, 1001} {
			for _, initial := range []bool{true, false} {
				h := testHost(uid)
				h.Initial, h.OuterUID, h.OuterGID = initial, outer, outer
				if initial {
					h.OuterUID, h.OuterGID = uid, uid
				}
				p, err := NewPlan(testSpec(), h)
				if err != nil {
					continue
				}
				kernel := p.IDs.Kernel.UID
				if !initial {
					kernel = h.OuterUID
				}
				if kernel == 0 || p.IDs.Shown.UID == 0 {
					t.Errorf("uid %d, outer %d, initial %v: the command has kernel id %d and shows as %d", uid, outer, initial, kernel, p.IDs.Shown.UID)
				}
			}
		}
	}
}
