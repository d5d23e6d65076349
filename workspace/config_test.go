package workspace

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParseConfig(t *testing.T) {
	c, err := ParseConfig("/etc/w/c.yaml", []byte(`
sandbox:
  paths:
    portfolio: {root: ./p, at: /workspace/in/p, mode: rw}
    other: {root: /data}
  network: host
  require_os_sandbox: false
exec: {timeout: 2.5, memory: 512MiB, env: {A: b}, pids: 10, workdir: /w, allow: []}
symlinks: allow
rules: []
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Source{{Host: "/etc/w/p", At: "in/p", Mode: "rw"}, {Host: "/data", At: "other", Mode: "ro"}}
	if !reflect.DeepEqual(c.Sources, want) {
		t.Errorf("sources %+v, want %+v", c.Sources, want)
	}
	e := c.Exec
	if e.Network != "host" || e.RequireOSSandbox || e.Timeout != 2.5 || e.Memory != 512<<20 || e.Pids != 10 || e.Workdir != "/w" || e.Env["A"] != "b" {
		t.Errorf("exec %+v", e)
	}
}

func TestParseConfigEmpty(t *testing.T) {
	for _, doc := range []string{"", "# nothing\n", "---\n"} {
		if _, err := ParseConfig("c.yaml", []byte(doc)); err != nil {
			t.Errorf("%q: %v", doc, err)
		}
	}
}

func TestParseConfigRefuses(t *testing.T) {
	for doc, want := range map[string]string{
		"bogus: 1":                                              "c.yaml:1:1: unknown key",
		"exec:\n  timeout: x":                                   "c.yaml:2:12: exec.timeout has the wrong type",
		"exec: {timeout: -1}":                                   "must be at least 0",
		"exec: {timeout: 1, timeout: 2}":                        "occurs twice",
		"exec: {memory: lots}":                                  "must be a number of bytes",
		"exec: {workdir: rel}":                                  "must be an absolute path",
		"exec: {runner: podman}":                                "must be one of auto, ns",
		"exec: {allow: [ls]}":                                   "exec.allow is not supported yet",
		"exec: {env: {A: [b]}}":                                 "wrong type",
		"exec: {env: {\"A=B\": c}}":                             "impossible variable",
		"exec: 5":                                               "exec must be a mapping",
		"rules: [{match: x, access: hidden}]":                   "c.yaml:1:8: rules is not supported yet",
		"symlinks: deny":                                        "symlinks is not supported yet",
		"limits: {max_bytes: 1}":                                "limits.max_bytes is not supported yet",
		"limits: {nonsense: 1}":                                 "unknown key \"limits.nonsense\"",
		"sandbox: {network: [\"a:1\"]}":                         "a list of hosts is not supported yet",
		"sandbox: {network: maybe}":                             "must be false, none or host",
		"sandbox: {paths: {a: {mode: rw}}}":                     "root is missing",
		"sandbox: {paths: {a: {root: x, at: ../y}}}":            "must be a path inside",
		"sandbox: {paths: {a: {root: x}, b: {root: y, at: a}}}": "both show at",
		"sandbox: {paths: {a: {root: x, suffixes: [.md]}}}":     "not supported yet",
		"a: &x 1\nb: *x":                                        "unknown key",
		"exec: &e {pids: 1}\nlimits: *e":                        "aliases",
		"exec:\n\t- x":                                          "c.yaml:2:1:",
		"{}\n---\n{}":                                           "a second document",
		"retention: {age: soon}":                                "c.yaml:1:18: retention.age must be a duration",
		"retention: {bytes: many}":                              "must be a number of bytes",
		"retention: {records: -1}":                              "must be at least 0",
		"retention: {days: 3}":                                  "unknown key \"retention.days\"",
		"permissions: {by_tool: {x: ask}}":                      "permissions is not supported yet",
		"guard: default":                                        "guard is not supported yet",
	} {
		_, err := ParseConfig("c.yaml", []byte(doc))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", doc, err, want)
			continue
		}
		if !strings.Contains(err.Error(), "c.yaml:") || CodeOf(err) != CodeConfig {
			t.Errorf("%q: error without place or code: %v", doc, err)
		}
	}
}

func TestRetention(t *testing.T) {
	c, err := ParseConfig("c.yaml", []byte("retention: {age: 30d, bytes: 1GiB, records: 5}"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Retention{Age(720 * time.Hour), 1 << 30, 5}); c.Retention != want {
		t.Errorf("got %+v, want %+v", c.Retention, want)
	}
	dir := t.TempDir()
	if err := c.freeze(dir); err != nil {
		t.Fatal(err)
	}
	if got, err := loadFrozen(dir); err != nil || got.Retention != c.Retention {
		t.Errorf("frozen: got %+v, %v", got, err)
	}
	for _, s := range []string{"", "x", "-1h", "1.5d", "-3d"} {
		if a, err := ParseAge(s); err == nil {
			t.Errorf("%q: got %v, want an error", s, a)
		}
	}
}

func TestFreeze(t *testing.T) {
	dir := t.TempDir()
	c := DefaultConfig()
	c.ID, c.Name, c.Created = "abc", "n", now(t)
	c.Sources = []Source{{Host: "/src", At: "/", Mode: "rw"}}
	if err := c.freeze(dir); err != nil {
		t.Fatal(err)
	}
	got, err := loadFrozen(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != c.ID || !reflect.DeepEqual(got.Sources, c.Sources) || !got.Created.Equal(c.Created.Time) || got.Exec.Memory != c.Exec.Memory {
		t.Errorf("got %+v, want %+v", got, c)
	}
}

func TestParseSize(t *testing.T) {
	for in, want := range map[string]int64{"0": 0, "12": 12, "1KiB": 1024, "2 GiB": 2 << 30, "3MB": 3e6, "4k": 4096} {
		if got, err := ParseSize(in); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "x", "-1", "1XB", "1.5G", "99999999999T"} {
		if got, err := ParseSize(in); err == nil {
			t.Errorf("%q: got %d, want an error", in, got)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte("sandbox: {paths: {a: {root: b}}}"))
	f.Add([]byte("exec: {memory: 1GiB}\nrules: []\n"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		c, err := ParseConfig("c.yaml", doc)
		if err != nil && CodeOf(err) != CodeConfig {
			t.Fatalf("error without a code: %v", err)
		}
		if err == nil && c == nil {
			t.Fatal("neither a configuration nor an error")
		}
	})
}
