package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func now(t *testing.T) Time {
	t.Helper()
	return Time{time.Now().UTC()}
}

// fake makes a workspace's directory without a journal.
func fake(t *testing.T, root, id, name, mountpoint string) {
	t.Helper()
	dir := filepath.Join(root, dirPrefix+id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c := DefaultConfig()
	c.ID, c.Name, c.Created = id, name, now(t)
	c.Sources = []Source{{Host: "/src", At: "/", Mode: "rw"}}
	if err := c.freeze(dir); err != nil {
		t.Fatal(err)
	}
	if err := (&Runtime{Mountpoint: mountpoint}).save(dir); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	mnt := filepath.Join(root, "mnt")
	fake(t, root, "aaaa1111", "one", mnt)
	fake(t, root, "aaaa2222", "two", "")
	fake(t, root, "bbbb3333", "aaaa", "")
	if err := os.Mkdir(filepath.Join(root, dirPrefix+"unborn"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := NewRegistry(root)
	for ref, want := range map[string]string{
		"aaaa1111": "aaaa1111", "wink-aaaa1111": "aaaa1111", "one": "aaaa1111", "aaaa2": "aaaa2222",
		"aaaa": "bbbb3333", "b": "bbbb3333", mnt: "aaaa1111", mnt + "/": "aaaa1111",
	} {
		e, err := r.Find(ref)
		if err != nil || e.ID != want {
			t.Errorf("%s: got %v, %v, want %s", ref, e, err, want)
		}
	}
	for ref, text := range map[string]string{"aaa": "ambiguous", "zzz": "there is none", "": "there is none", "unborn": "there is none"} {
		_, err := r.Find(ref)
		if err == nil || !strings.Contains(err.Error(), text) || CodeOf(err) != CodeUnknown {
			t.Errorf("%q: got %v, want %q", ref, err, text)
		}
	}
}

func TestStateRoot(t *testing.T) {
	env := func(kv map[string]string) func(string) string { return func(k string) string { return kv[k] } }
	tests := []struct {
		flag string
		env  map[string]string
		want string
	}{
		{"/f", map[string]string{"WINKFS_STATE_DIR": "/e"}, "/f"},
		{"", map[string]string{"WINKFS_STATE_DIR": "/e", "XDG_STATE_HOME": "/x"}, "/e"},
		{"", map[string]string{"XDG_STATE_HOME": "/x", "HOME": "/h"}, "/x/winkfs"},
		{"", map[string]string{"XDG_STATE_HOME": "rel", "HOME": "/h"}, "/h/.local/state/winkfs"},
	}
	for _, tt := range tests {
		if got, err := StateRoot(tt.flag, env(tt.env)); err != nil || got != tt.want {
			t.Errorf("%v: got %q, %v, want %q", tt, got, err, tt.want)
		}
	}
	if _, err := StateRoot("", env(nil)); err == nil {
		t.Error("no home: no error")
	}
}

func TestCheckMountOverlap(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"src/in", "state", "mnt", "full/x"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	at := func(p string) string { return filepath.Join(dir, p) }
	cfg := &Config{Sources: []Source{{Host: at("src"), At: "/", Mode: "rw"}}}
	if err := CheckMount(at("state"), cfg, at("mnt")); err != nil {
		t.Errorf("good mount point: %v", err)
	}
	for mnt, text := range map[string]string{
		"src": "the source itself", "src/in": "inside the source", "state": "state directory", "state/mnt": "state directory",
		"": "inside", "full": "not empty",
	} {
		err := CheckMount(at("state"), cfg, at(mnt))
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: got %v, want %q", mnt, err, text)
		}
	}
}

func TestCreateRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"src/state", "src2"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	at := func(p string) string { return filepath.Join(dir, p) }
	tests := []struct{ source, root, name, text string }{
		{"missing", "state", "", "does not exist"},
		{"file", "state", "", "not a directory"},
		{"src", "src/state", "", "lies inside the source"},
		{"src", "src", "", "is the state directory"},
		{"src/state", "src", "", "inside the state directory"},
		{"src", "state", "a/b", "name workspace"},
		{"src", "state", "-x", "name workspace"},
	}
	for _, tt := range tests {
		cfg := DefaultConfig()
		cfg.Name, cfg.Sources = tt.name, []Source{{Host: at(tt.source), At: "/", Mode: "rw"}}
		_, err := Create(NewRegistry(at(tt.root)), cfg)
		if err == nil || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%+v: got %v", tt, err)
		}
		if left, _ := filepath.Glob(at(tt.root) + "/wink-*"); len(left) > 0 {
			t.Errorf("%+v: left %v", tt, left)
		}
	}
}

func TestRunSource(t *testing.T) {
	for _, dir := range []string{"/", "/proc", "/proc/self", "/dev", "/sys/kernel"} {
		if _, err := RunSource(dir); err == nil {
			t.Errorf("%s: no error", dir)
		}
	}
	if _, err := RunSource(t.TempDir()); err != nil {
		t.Error(err)
	}
}
