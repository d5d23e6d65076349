package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/winkfs/winkfs/workspace"
)

func testApp() (*env, func(args ...string) ([]string, error)) {
	e := &env{stdin: nil}
	app := newApp(e)
	return e, func(args ...string) ([]string, error) {
		return reorder(app, append([]string{"winkfs"}, args...))
	}
}

func TestReorder(t *testing.T) {
	_, run := testApp()
	tests := []struct{ in, want string }{
		{"status", "winkfs status --"},
		{"diff --json", "winkfs diff --json --"},
		{"diff a b --json", "winkfs diff --json -- a b"},
		{"diff a --stat b -w x", "winkfs diff --stat --workspace=x -- a b"},
		{"diff a -- --json", "winkfs diff -- a --json"},
		{"--state-dir d status", "winkfs --state-dir=d status --"},
		{"status --state-dir d", "winkfs --state-dir=d status --"},
		{"status x --state-dir=d --json", "winkfs --state-dir=d status --json -- x"},
		{"exec -w x -- ls -l --json", "winkfs exec --workspace=x -- ls -l --json"},
		{"exec -- -x", "winkfs exec -- -x"},
		{"exec --stdin - -- cat", "winkfs exec --stdin=- -- cat"},
		{"exec --env A=B=C -- true", "winkfs exec --env=A=B=C -- true"},
		{"diff -", "winkfs diff -- -"},
		{"diff --json=false", "winkfs diff --json=false --"},
		{"mount s m -o ro,allow_other", "winkfs mount --options=ro,allow_other -- s m"},
		{"-q status", "winkfs --quiet status --"},
		{"apply p --yes", "winkfs apply --yes -- p"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			got, err := run(strings.Fields(tt.in)...)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Fields(tt.want)
			if !equalButNames(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// equalButNames compares argument lists; a flag may come back under its short
// name, which urfave/cli reads the same.
func equalButNames(got, want []string) bool {
	for i, g := range got {
		for short, long := range map[string]string{"--w": "--workspace", "--o": "--options", "--q": "--quiet", "--e": "--env"} {
			if g == short || strings.HasPrefix(g, short+"=") {
				got[i] = long + strings.TrimPrefix(g, short)
			}
		}
	}
	return slices.Equal(got, want)
}

func TestReorderRefuses(t *testing.T) {
	_, run := testApp()
	for in, text := range map[string]string{
		"diff --no-such":        "unknown flag --no-such",
		"diff -json":            "unknown flag -json",
		"--no-such diff":        "unknown flag --no-such",
		"status a -x":           "unknown flag -x",
		"diff -w":               "needs a value",
		"diff --stat=5":         "takes no value",
		"no-such":               "unknown command",
		"exec ls -l":            "unknown flag -l",
		"shell --json":          "unknown flag --json",
		"mount s m -o":          "needs a value",
		"checkpoint a --delet":  "unknown flag --delet",
		"rollback 5 --dry-runs": "unknown flag --dry-runs",
	} {
		t.Run(in, func(t *testing.T) {
			_, err := run(strings.Fields(in)...)
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Fatalf("got %v, want an error with %q", err, text)
			}
			if got := exitCode(err); got != exitUsage {
				t.Errorf("exit code %d, want %d", got, exitUsage)
			}
		})
	}
}

func TestMountForm(t *testing.T) {
	app := newApp(&env{})
	for in, want := range map[string]string{
		"winkfs /src /mnt -o ro":                          "winkfs mount --mount8 -o ro -- /src /mnt",
		"winkfs ./src /mnt":                               "winkfs mount --mount8 -- ./src /mnt",
		"winkfs -s /src /mnt -o x":                        "winkfs mount --mount8 -o x -- /src /mnt",
		"winkfs winkfs mnt -orw,lowerdir=l,upperdir=u":    "winkfs mount --mount8 -o rw,lowerdir=l,upperdir=u -- winkfs mnt",
		"winkfs /src /mnt -rnf":                           "winkfs mount --mount8 -o ro --fake -- /src /mnt",
		"/sbin/mount.fuse.winkfs s m -o a -t fuse.winkfs": "/sbin/mount.fuse.winkfs mount --mount8 -o a -- s m",
		"winkfs src mnt":                                  "winkfs src mnt",
		"winkfs diff /mnt":                                "winkfs diff /mnt",
		"winkfs mount /src /mnt -o ro":                    "winkfs mount /src /mnt -o ro",
		"winkfs status":                                   "winkfs status",
	} {
		got := mountForm(app, strings.Fields(in))
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

func TestMountWords(t *testing.T) {
	var o mountOptions
	o.options = []string{`rw,suid,lowerdir=/a\,b\:c:/d,x-y=z`, `upperdir=/u,workdir=/w,profile=posix-full,nodev,ro`}
	e := &env{}
	if err := o.words(e); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.lower, []string{"/a,b:c", "/d"}) || o.upper != "/u" || e.globals.stateDir != "/u" ||
		o.profile != "posix-full" || !o.noDev || !o.readOnly || o.noSuid {
		t.Errorf("got %+v", o)
	}
	for _, bad := range []string{"lowerdir=/a::/b", "nosuch", "nosuch=1"} {
		o := mountOptions{options: []string{bad}}
		if err := o.words(&env{}); exitCode(err) != exitUsage {
			t.Errorf("%s: got %v, want a usage error", bad, err)
		}
	}
}

// Every command must be reachable with each of its flags in any place.
func TestEveryFlagAnywhere(t *testing.T) {
	app := newApp(&env{})
	for _, c := range app.Commands {
		table := flagTable{}
		table.add(c.Flags)
		for name, spec := range table {
			args := []string{"winkfs", c.Name, "positional", name}
			if spec.takesValue {
				args = append(args, "1")
			}
			got, err := reorder(app, args)
			if err != nil {
				t.Errorf("%s %s: %v", c.Name, name, err)
				continue
			}
			if got[len(got)-1] != "positional" || got[len(got)-2] != "--" {
				t.Errorf("%s %s: got %q", c.Name, name, got)
			}
		}
	}
}

func TestWantsJSON(t *testing.T) {
	for in, want := range map[string]bool{"diff --json": true, "exec -- x --json": false, "diff": false} {
		if got := wantsJSON(strings.Fields(in)); got != want {
			t.Errorf("%s: %v", in, got)
		}
	}
}

func FuzzReorder(f *testing.F) {
	f.Add("diff a --json -- b")
	f.Add("--state-dir exec -w")
	app := newApp(&env{})
	f.Fuzz(func(t *testing.T, line string) {
		args := append([]string{"winkfs"}, strings.Split(line, " ")...)
		got, err := reorder(app, args)
		var e *workspace.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("error without a code: %v", err)
		}
		if err == nil && len(got) == 0 {
			t.Fatal("arguments vanished")
		}
	})
}
