package tests

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// module is the prefix of our own import paths.
const module = "github.com/winkfs/winkfs/"

// arrows lists for each package what of ours it may import. A name ending in
// "/..." stands for all below it. Arrows point down only.
var arrows = []struct {
	from string
	to   []string
}{
	{"cmd/winkfs", []string{"cmd/winkfs/internal/...", "workspace", "fs/...", "fs", "exec", "diffview", "hydrate", "apply", "actor", "journal", "policy"}},
	{"cmd/winkfs/internal/...", []string{"cmd/winkfs/internal/...", "workspace", "diffview", "exec", "journal"}},
	{"workspace", []string{"fs", "fs/...", "exec", "diffview", "hydrate", "apply", "actor", "journal", "policy"}},
	{"fs", []string{"fs/dev", "fs/tree", "journal", "policy"}},
	{"hydrate", []string{"fs/tree", "fs/lower", "journal", "policy"}},
	{"apply", []string{"fs/tree", "fs/lower", "diffview", "journal", "policy"}},
	{"actor", []string{"journal"}},
	{"exec", []string{"journal"}},
	{"exec/...", []string{"exec", "journal"}},
	{"diffview", []string{"journal"}},
	{"fs/tree", []string{"fs/lower", "journal", "policy"}},
	{"fs/tree/...", []string{"fs/tree", "fs/lower", "journal", "policy"}},
	{"fs/lower", nil},
	{"fs/dev", nil},
	{"journal", nil},
	{"journal/...", []string{"journal"}},
	{"policy", nil},
}

// libraries lists who alone may import what of others.
var libraries = []struct {
	library string
	by      []string
}{
	{"github.com/urfave/cli/v2", []string{"cmd/winkfs"}},
	{"go.etcd.io/bbolt", []string{"journal"}},
	{"github.com/hanwen/go-fuse/v2/fuse", []string{"fs", "fs/dev"}},
	{"github.com/hanwen/go-fuse/v2/fs", nil},
	{"gopkg.in/yaml.v3", []string{"workspace", "policy", "cmd/winkfs"}},
}

type goPackage struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	CgoFiles   []string
	Imports    []string
}

// ours returns all packages of the module but those of tests.
func ours(t *testing.T) []goPackage {
	t.Helper()
	if _, err := osexec.LookPath("go"); err != nil {
		t.Skip("no go command: these tests read the source, which root's run covers")
	}
	cmd := osexec.Command("go", "list", "-e", "-json=ImportPath,Dir,GoFiles,CgoFiles,Imports", "./...")
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []goPackage
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p goPackage
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		p.ImportPath = strings.TrimPrefix(p.ImportPath, module)
		if p.ImportPath != "tests" && !strings.HasPrefix(p.ImportPath, "tests/") {
			all = append(all, p)
		}
	}
}

func matches(pattern, path string) bool {
	if below, ok := strings.CutSuffix(pattern, "/..."); ok {
		return strings.HasPrefix(path, below+"/")
	}
	return pattern == path
}

func anyMatches(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, path) })
}

// allowed returns what the package may import, by the closest line of arrows.
func allowed(path string) ([]string, bool) {
	for _, a := range arrows {
		if a.from == path {
			return a.to, true
		}
	}
	for _, a := range arrows {
		if matches(a.from, path) {
			return a.to, true
		}
	}
	return nil, false
}

func TestArrowsPointDown(t *testing.T) {
	for _, p := range ours(t) {
		to, known := allowed(p.ImportPath)
		if !known {
			t.Errorf("%s has no line in arrows", p.ImportPath)
		}
		for _, imp := range p.Imports {
			path, own := strings.CutPrefix(imp, module)
			if own && !anyMatches(to, path) {
				t.Errorf("%s imports %s", p.ImportPath, path)
			}
		}
	}
}

func TestLibrariesStayWhereTheyBelong(t *testing.T) {
	for _, p := range ours(t) {
		for _, l := range libraries {
			if slices.Contains(p.Imports, l.library) && !slices.Contains(l.by, p.ImportPath) {
				t.Errorf("%s imports %s", p.ImportPath, l.library)
			}
		}
	}
}

func TestNoCgo(t *testing.T) {
	for _, p := range ours(t) {
		if len(p.CgoFiles) > 0 || slices.Contains(p.Imports, "C") {
			t.Errorf("%s uses cgo", p.ImportPath)
		}
	}
}

// exit matches calls that end the process.
var exit = regexp.MustCompile(`\bos\.Exit\(|\blog\.Fatal|\bsyscall\.Exit\(|\bunix\.Exit\(`)

// mayExit lists the packages that may end the process: the program itself and
// the init of a sandbox, which is a process of its own and never returns.
var mayExit = []string{"cmd/winkfs", "exec"}

func TestOnlyTheProgramExits(t *testing.T) {
	forEachFile(t, func(t *testing.T, pkg, name, source string) {
		if exit.MatchString(source) && !slices.Contains(mayExit, pkg) {
			t.Errorf("%s ends the process", name)
		}
	})
}

func TestEveryPackageHasDoc(t *testing.T) {
	for _, p := range ours(t) {
		if !slices.Contains(p.GoFiles, "doc.go") {
			t.Errorf("%s has no doc.go", p.ImportPath)
		}
	}
}

func TestFilesSayWhatIsInside(t *testing.T) {
	vague := []string{"utils.go", "util.go", "helpers.go", "helper.go", "common.go", "misc.go", "types.go"}
	forEachFile(t, func(t *testing.T, _, name, source string) {
		if slices.Contains(vague, filepath.Base(name)) {
			t.Errorf("%s: the name does not say what is inside", name)
		}
		if n := strings.Count(source, "\n"); n > 600 {
			t.Errorf("%s has %d lines", name, n)
		}
	})
}

func forEachFile(t *testing.T, fn func(t *testing.T, pkg, name, source string)) {
	t.Helper()
	for _, p := range ours(t) {
		for _, f := range p.GoFiles {
			b, err := os.ReadFile(filepath.Join(p.Dir, f))
			if err != nil {
				t.Fatal(err)
			}
			fn(t, p.ImportPath, p.ImportPath+"/"+f, string(b))
		}
	}
}

func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		pattern, path string
		want          bool
	}{
		{"fs", "fs", true}, {"fs", "fs/tree", false}, {"fs/...", "fs/tree", true}, {"fs/...", "fs", false}, {"fs/...", "fsx/a", false},
	} {
		if got := matches(tt.pattern, tt.path); got != tt.want {
			t.Errorf("%s %s: got %v, want %v", tt.pattern, tt.path, got, tt.want)
		}
	}
}
