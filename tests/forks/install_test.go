package forks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winkfs/winkfs/tests/harness"
)

// installer makes what a package manager makes: many small files in ignored
// directories, links to commands, a lock file, and a change of the manifest.
// Its argument is the package to add.
const installer = `set -e
pkg=$1
for i in $(seq 60); do
  d=node_modules/$pkg-dep$i
  mkdir -p $d/lib $d/bin
  echo "{\"name\": \"$pkg-dep$i\"}" > $d/package.json
  seq $i 300 > $d/lib/index.js
  printf '#!/bin/sh\necho %s\n' $i > $d/bin/run
  chmod 755 $d/bin/run
  mkdir -p node_modules/.bin
  ln -sf ../$pkg-dep$i/bin/run node_modules/.bin/$pkg$i
done
echo "$pkg=1.0.0" >> node_modules/.lock.tmp
mv node_modules/.lock.tmp node_modules/$pkg.lock
sed -i "s/\"dependencies\": {/&\n    \"$pkg\": \"1.0.0\",/" package.json
touch node_modules/.stamp-$pkg
rm -rf node_modules/.cache
`

// TestTwoInstalls runs a package install in two forks of one live workspace at
// the same time, in the sandbox; one is merged, the other removed.
func TestTwoInstalls(t *testing.T) {
	harness.Require(t, "binary", "fuse", "userns")
	e := harness.New(t)
	source := filepath.Join(e.Dir, "project")
	mkdir(t, source)
	harness.Write(t, source, map[string]string{
		"package.json":              "{\n  \"name\": \"p\",\n  \"dependencies\": {\n    \"old\": \"1.0.0\"\n  }\n}\n",
		".gitignore":                "node_modules\n",
		"node_modules/old/index.js": "old\n",
		"node_modules/.cache/x":     "x\n",
		"install.sh":                installer,
		"src/main.js":               "main\n",
	})
	w := e.NewWorkspace("project", source)
	untouched := harness.MustDump(t, source)
	left, right := fork(w, "left"), fork(w, "right")
	results := make(chan harness.Result, 2)
	for f, pkg := range map[*harness.Workspace]string{left: "alpha", right: "beta"} {
		go func() { results <- f.Exec("sh", "install.sh", pkg) }()
	}
	for range 2 {
		if r := <-results; r.Code != 0 {
			t.Fatalf("install: exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
		}
	}
	// Somebody edits in the parent meanwhile.
	if err := os.WriteFile(w.Mount+"/src/main.js", []byte("main, edited\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	want := harness.MustDump(t, left.Mount)
	want["src/main.js"] = harness.MustDump(t, w.Mount)["src/main.js"]
	w.Must("merge", "left")
	harness.Same(t, "after the merge", harness.MustDump(t, w.Mount), want, harness.OmitIno|harness.OmitDirMtime)
	if _, err := os.Stat(w.Mount + "/node_modules/.bin/alpha7"); err != nil {
		t.Error(err)
	}
	right.Umount()
	w.Must("rm", "--yes", "right")
	left.Umount()
	w.Must("rm", "--yes", "left")
	whole(t, w)
	harness.Same(t, "after the forks' removal", harness.MustDump(t, w.Mount), want, harness.OmitIno|harness.OmitDirMtime)
	harness.Same(t, "the source", harness.MustDump(t, source), untouched, 0)
	entries, err := os.ReadDir(e.State)
	if err != nil || len(entries) != 1 || !strings.HasPrefix(entries[0].Name(), "wink-") {
		t.Errorf("left in the state root: %v, %v", entries, err)
	}
}

// TestBothInstallsMerge merges the second install, too: what both changed in
// the manifest is a conflict, and without that both come together.
func TestBothInstallsMerge(t *testing.T) {
	harness.Require(t, "binary", "fuse", "userns")
	e := harness.New(t)
	source := filepath.Join(e.Dir, "project")
	mkdir(t, source)
	harness.Write(t, source, map[string]string{"package.json": "{\n  \"dependencies\": {\n  }\n}\n", "install.sh": installer})
	w := e.NewWorkspace("project", source)
	left, right := fork(w, "left"), fork(w, "right")
	for f, pkg := range map[*harness.Workspace]string{left: "alpha", right: "beta"} {
		if r := f.Exec("sh", "install.sh", pkg); r.Code != 0 {
			t.Fatalf("install: %s%s", r.Stdout, r.Stderr)
		}
	}
	w.Must("merge", "left")
	before := harness.MustDump(t, w.Mount)
	r := w.Run("merge", "right")
	if r.Code != 5 || !strings.Contains(r.Stderr, "package.json") || !strings.Contains(r.Stderr, `"sh install.sh beta"`) {
		t.Errorf("exit status %d\n%s", r.Code, r.Stderr)
	}
	harness.Same(t, "after the refused merge", harness.MustDump(t, w.Mount), before, 0)
	right.MustIn("discard", "--yes", "package.json")
	w.Must("merge", "right")
	for _, name := range []string{"node_modules/alpha-dep3/bin/run", "node_modules/beta-dep3/bin/run", "node_modules/alpha.lock", "node_modules/beta.lock"} {
		if _, err := os.Stat(filepath.Join(w.Mount, name)); err != nil {
			t.Error(err)
		}
	}
	whole(t, w)
}
