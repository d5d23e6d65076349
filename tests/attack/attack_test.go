package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winkfs/winkfs/tests/harness"
)

// probes are what this binary does inside the sandbox, by name. They try what
// would harm a host, so they only run in namespaces of their own (isolated).
var probes = map[string]func(args []string){}

// harmless lists the probes that only look. The tests run them on the host too,
// where they must find something: a probe that finds nothing anywhere proves
// nothing.
var harmless = map[string]func(args []string){}

// The first arguments of a probe's process.
const (
	probeMark = "probe:"
	hostMark  = "on-host:"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && strings.HasPrefix(os.Args[1], probeMark) {
		runInside(strings.TrimPrefix(os.Args[1], probeMark), os.Args[2], os.Args[3:])
		return
	}
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], hostMark) {
		harmless[strings.TrimPrefix(os.Args[1], hostMark)](os.Args[2:])
		return
	}
	os.Exit(harness.Main(m))
}

// runInside runs a probe unless it finds itself in a namespace of the host's.
func runInside(name, host string, args []string) {
	for _, mine := range strings.Fields(namespaces()) {
		if strings.Contains(host, mine) {
			breach("shares the namespace %s with the host", mine)
			return
		}
	}
	if look := harmless[name]; look != nil {
		look(args)
	}
	if try := probes[name]; try != nil {
		try(args)
	}
	fmt.Println("done")
}

// namespaces names the namespaces that this process is in.
func namespaces() string {
	var all []string
	for _, kind := range []string{"user", "mnt", "pid", "net", "ipc", "uts"} {
		ns, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			ns = kind + ":unknown"
		}
		all = append(all, ns)
	}
	return strings.Join(all, " ")
}

// breach reports something that the sandbox should have prevented.
func breach(format string, args ...any) { fmt.Printf("BREACH "+format+"\n", args...) }

// jail is a workspace with the probe in it.
type jail struct {
	*harness.Workspace
	t *testing.T
}

func newJail(t *testing.T) *jail {
	t.Helper()
	harness.Require(t, "binary", "fuse", "userns")
	e := harness.New(t)
	source := filepath.Join(e.Dir, "source")
	if err := os.Mkdir(source, 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(source, "probe"), self, 0o755); err != nil {
		t.Fatal(err)
	}
	return &jail{Workspace: e.NewWorkspace("jail", source), t: t}
}

// probe runs a probe inside and returns what it printed. Each breach fails the
// test, and so does a probe that did not get to its end.
func (j *jail) probe(name string, args ...string) string {
	j.t.Helper()
	r := j.Exec(append([]string{"./probe", probeMark + name, namespaces()}, args...)...)
	for line := range strings.Lines(r.Stdout) {
		if strings.HasPrefix(line, "BREACH ") {
			j.t.Errorf("%s", strings.TrimSpace(line))
		}
	}
	if r.Code != 0 || !strings.HasSuffix(r.Stdout, "done\n") {
		j.t.Fatalf("the probe did not end well: exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// onHost runs a harmless probe on the host.
func onHost(t *testing.T, name string, args ...string) string {
	t.Helper()
	return harness.Output(t, append([]string{"/proc/self/exe", hostMark + name}, args...)...)
}
