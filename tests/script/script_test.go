package script

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/winkfs/winkfs/tests/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

func TestScripts(t *testing.T) {
	run(t, testscript.Params{Dir: "."})
}

// run runs scripts with winkfs in their PATH.
func run(t *testing.T, p testscript.Params) {
	t.Helper()
	harness.Require(t, "binary", "fuse", "userns", "git")
	bin, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	p.Setup = func(env *testscript.Env) error { return setup(env, bin) }
	p.Condition = condition
	p.Cmds = map[string]func(*testscript.TestScript, bool, []string){
		"status":    status,
		"unchanged": unchanged,
		"flip":      flip,
		"newest":    newest,
		"newer":     newer,
	}
	p.RequireExplicitExec = true
	testscript.Run(t, p)
}

func setup(env *testscript.Env, bin string) error {
	dir := filepath.Join(env.WorkDir, ".bin")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(bin, filepath.Join(dir, "winkfs")); err != nil {
		return err
	}
	env.Setenv("PATH", dir+string(os.PathListSeparator)+env.Getenv("PATH"))
	env.Setenv("HOME", filepath.Join(env.WorkDir, ".home"))
	env.Setenv("WINKFS_STATE_DIR", filepath.Join(env.WorkDir, ".state"))
	env.Setenv("NO_COLOR", "1")
	env.Values[treesKey{}] = map[string]harness.Tree{}
	env.Defer(func() { end(env, bin) })
	return os.Mkdir(env.Getenv("HOME"), 0o700)
}

// end unmounts what a script left mounted.
func end(env *testscript.Env, bin string) {
	points, _ := filepath.Glob(filepath.Join(env.WorkDir, "*"))
	for _, p := range points {
		if harness.IsMounted(p) {
			cmd := osexec.Command(bin, "umount", p)
			cmd.Env = env.Vars
			cmd.Run()
		}
	}
	harness.UnmountBelow(env.WorkDir)
}

func condition(name string) (bool, error) {
	switch name {
	case "root":
		return os.Geteuid() == 0, nil
	case "userns":
		return true, nil // required of every script
	}
	return false, errors.New("unknown condition")
}

// status runs a command that must end with the exit status.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N CMD...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *osexec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("exit status: got %d, want %d", got, want)
	}
}

type treesKey struct{}

// unchanged remembers a tree the first time and compares after that.
func unchanged(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: unchanged DIR")
	}
	tree, err := harness.Dump(ts.MkAbs(args[0]))
	ts.Check(err)
	trees := ts.Value(treesKey{}).(map[string]harness.Tree)
	before, seen := trees[args[0]]
	if !seen {
		trees[args[0]] = tree
		return
	}
	for _, d := range harness.Differences(tree, before, 0) {
		ts.Logf("%s", d)
	}
	if len(harness.Differences(tree, before, 0)) > 0 {
		ts.Fatalf("%s has changed", args[0])
	}
}

func flip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: flip FILE")
	}
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	if len(data) == 0 {
		ts.Fatalf("%s is empty", args[0])
	}
	data[len(data)/2] ^= 0x10
	ts.Check(os.WriteFile(path, data, 0o600))
}

// newer gives a log segment the header of a later format (journal/FORMAT.md).
func newer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: newer FILE")
	}
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	if len(data) < 80 || string(data[:4]) != "WINK" {
		ts.Fatalf("%s has no header", args[0])
	}
	binary.LittleEndian.PutUint32(data[8:], 999)
	binary.LittleEndian.PutUint32(data[76:], crc32.Checksum(data[:76], crc32.MakeTable(crc32.Castagnoli)))
	ts.Check(os.WriteFile(path, data, 0o600))
}

// newest finds a file of the state directory whose name the script can't know.
func newest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: newest DIR PATTERN")
	}
	var best string
	var bestTime int64
	err := filepath.WalkDir(ts.MkAbs(args[0]), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if ok, err := filepath.Match(args[1], d.Name()); err != nil || !ok {
			return err
		}
		info, err := d.Info()
		if err == nil && info.ModTime().UnixNano() >= bestTime {
			best, bestTime = path, info.ModTime().UnixNano()
		}
		return err
	})
	ts.Check(err)
	if best == "" {
		ts.Fatalf("nothing below %s matches %s", args[0], args[1])
	}
	ts.Setenv("NEWEST", best)
}
