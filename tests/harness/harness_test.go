package harness

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestDifferences(t *testing.T) {
	tests := []struct {
		name string
		do   func(dir string) error
		omit Omit
		want string // part of the only difference, "" = none
	}{
		{"nothing", func(string) error { return nil }, 0, ""},
		{"content", func(d string) error { return write(d+"/a", "xyz") }, OmitMtime, "content"},
		{"mode", func(d string) error { return os.Chmod(d+"/a", 0o600) }, 0, "mode"},
		{"mode that git ignores", func(d string) error { return os.Chmod(d+"/a", 0o600) }, OmitModes, ""},
		{"mtime", func(d string) error { return os.Chtimes(d+"/a", time.Time{}, time.Unix(1, 1)) }, 0, "mtime"},
		{"mtime left out", func(d string) error { return os.Chtimes(d+"/a", time.Time{}, time.Unix(1, 1)) }, OmitMtime, ""},
		{"missing", func(d string) error { return os.Remove(d + "/b") }, OmitMtime, "missing"},
		{"too much", func(d string) error { return write(d+"/c", "") }, OmitMtime, "should not"},
		{"only a directory too much", func(d string) error { return os.Mkdir(d+"/dir", 0o755) }, OmitDirs, ""},
		{"xattr", func(d string) error { return unix.Setxattr(d+"/a", "user.x", []byte("y"), 0) }, 0, "xattrs"},
		{"link count", func(d string) error { return os.Link(d+"/a", d+"/a2") }, OmitMtime, "link count"},
		{"broken hard link", func(d string) error { return relink(d+"/h1", d+"/h2") }, OmitMtime | OmitIno, "link count"},
		{"target", func(d string) error { os.Remove(d + "/l"); return os.Symlink("b", d+"/l") }, OmitMtime | OmitIno, "target"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			Write(t, dir, map[string]string{"a": "abc", "b": "", "h1": "one"})
			must(t, os.Symlink("a", dir+"/l"))
			must(t, os.Link(dir+"/h1", dir+"/h2"))
			before := MustDump(t, dir)
			must(t, tt.do(dir))
			got := Differences(MustDump(t, dir), before, tt.omit)
			all := strings.Join(got, "\n")
			if tt.want == "" && all != "" || tt.want != "" && !strings.Contains(all, tt.want) {
				t.Errorf("got %q, want %q", all, tt.want)
			}
		})
	}
}

func TestCopyTreeIsEqual(t *testing.T) {
	dir := t.TempDir()
	Write(t, dir+"/from", map[string]string{"a/b": "x", "odd\nname": "y"})
	must(t, os.Link(dir+"/from/a/b", dir+"/from/a/c"))
	must(t, unix.Setxattr(dir+"/from/a/b", "user.k", []byte("v"), 0))
	CopyTree(t, dir+"/from", dir+"/to")
	Same(t, "copy", MustDump(t, dir+"/to"), MustDump(t, dir+"/from"), OmitIno)
}

func TestMountTable(t *testing.T) {
	if !IsMounted("/proc") {
		t.Error("proc counts as not mounted")
	}
	if IsMounted(t.TempDir()) {
		t.Error("a plain directory counts as mounted")
	}
	if got, want := unescape(`/a\040b\134c`), `/a b\c`; got != want {
		t.Errorf("unescape: got %q, want %q", got, want)
	}
}

func TestRequired(t *testing.T) {
	t.Setenv("WINKFS_REQUIRE", "binary,fuse")
	for name, want := range map[string]bool{"fuse": true, "userns": false, "fus": false} {
		if got := Required(name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestAlive(t *testing.T) {
	if !alive(os.Getpid()) || alive(1<<22+1) {
		t.Error("can't tell what runs")
	}
}

func write(path, s string) error { return os.WriteFile(path, []byte(s), 0o644) }

func relink(keep, split string) error {
	if err := os.Remove(split); err != nil {
		return err
	}
	return write(split, "one")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
