package lower

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// newStack returns the top of a stack of fresh directories that fill has filled.
func newStack(t *testing.T, n int, fill func(dirs []string)) *Dir {
	t.Helper()
	dirs := make([]string, n)
	for i := range dirs {
		dirs[i] = t.TempDir()
	}
	fill(dirs)
	f := New(8)
	t.Cleanup(f.Close)
	var top *Dir
	for i, dir := range dirs {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err)
		if i == 0 {
			top, err = f.Add(fd)
		} else {
			_, err = f.AddBelow(top, fd)
		}
		must(t, err)
	}
	return top
}

// find returns the directory and the source that a path leads to.
func find(t *testing.T, d *Dir, path ...string) (Stat, uint32, error) {
	t.Helper()
	for {
		at, st, err := d.Lookup(path[0])
		if err != nil || len(path) == 1 {
			return st, at.Source(), err
		}
		d, path = at.Child(path[0], st.Ino), path[1:]
	}
}

func listing(t *testing.T, d *Dir) []string {
	t.Helper()
	entries, err := d.ReadDir()
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	return names
}

func TestStack(t *testing.T) {
	put := func(path string) {
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, nil, 0o644))
	}
	top := newStack(t, 3, func(d []string) {
		put(d[0] + "/both/top")
		put(d[0] + "/both/same")
		put(d[1] + "/both/same")
		put(d[1] + "/both/mid")
		put(d[1] + "/cut") // a file: hides the directory below it
		put(d[2] + "/cut/hidden")
		put(d[2] + "/both/low")
		put(d[0] + "/split/a")
		put(d[1] + "/split") // ends the merging of split
		put(d[2] + "/split/b")
		put(d[1] + "/deep/er/x")
		put(d[2] + "/deep/er/y")
	})
	tests := []struct {
		path   []string
		source uint32 // 0 = no such name
	}{
		{[]string{"both"}, 1},
		{[]string{"both", "top"}, 1},
		{[]string{"both", "same"}, 1},
		{[]string{"both", "mid"}, 2},
		{[]string{"both", "low"}, 3},
		{[]string{"cut"}, 2},
		{[]string{"split", "a"}, 1},
		{[]string{"split", "b"}, 0},
		{[]string{"deep", "er", "x"}, 2},
		{[]string{"deep", "er", "y"}, 3},
		{[]string{"nothing"}, 0},
	}
	for _, tt := range tests {
		_, source, err := find(t, top, tt.path...)
		switch {
		case tt.source == 0 && !errors.Is(err, unix.ENOENT):
			t.Errorf("%v: %v, want ENOENT", tt.path, err)
		case tt.source != 0 && (err != nil || source != tt.source):
			t.Errorf("%v: source %d, %v, want %d", tt.path, source, err, tt.source)
		}
	}
	st, _, err := find(t, top, "both")
	must(t, err)
	both := top.Child("both", st.Ino)
	if got, want := listing(t, both), []string{"low", "mid", "same", "top"}; !slices.Equal(got, want) {
		t.Errorf("merged listing %q, want %q", got, want)
	}
	if !both.Merged() || both.Watch(func(int) bool { return true }) {
		t.Error("a merged directory is not told to be one, or can be watched")
	}
	if got, want := listing(t, top), []string{"both", "cut", "deep", "split"}; !slices.Equal(got, want) {
		t.Errorf("root's listing %q, want %q", got, want)
	}
}

// TestLocateInStack finds a file again by the source that had it.
func TestLocateInStack(t *testing.T) {
	top := newStack(t, 2, func(d []string) {
		must(t, os.MkdirAll(d[1]+"/a/b", 0o755))
		must(t, os.WriteFile(d[1]+"/a/b/f", []byte("low"), 0o644))
		must(t, os.Mkdir(d[0]+"/a", 0o755))
	})
	dir, name := top.fs.Locate(2, "a/b/f")
	buf := make([]byte, 8)
	n, err := File{Dir: dir, Name: name}.ReadAt(buf, 0)
	if err != nil || string(buf[:n]) != "low" {
		t.Errorf("got %q, %v", buf[:n], err)
	}
}
