package coherence

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
)

// TestRandomEdits makes random edits to a tree of which everything is cached,
// one after the other, and then many at once.
func TestRandomEdits(t *testing.T) {
	n := setting(t, "COHERENCE_EDITS", 200)
	seed := uint64(setting(t, "COHERENCE_SEED", int(rand.Uint64()>>1)))
	t.Logf("COHERENCE_SEED=%d", seed)
	e := harness.New(t)
	source := filepath.Join(e.Dir, "source")
	check(t, os.Mkdir(source, 0o755))
	h := &host{dir: source, rng: rand.New(rand.NewPCG(seed, 0))}
	for range 60 {
		h.edit()
	}
	w := e.NewWorkspace("random", source)
	// What is held open makes nodes outlive their names.
	look := func() (string, string) { return everything(w.Mount), everything(source) }
	var took []time.Duration
	missedOnes := 0
	for i := range n {
		release := holdSome(h, w.Mount)
		what := h.edit()
		d, diff := await(look)
		release()
		took = append(took, d)
		if diff != "" {
			missedOnes++
			t.Errorf("edit %d, %s, is missed:\n%s", i, what, firstDifference(look()))
			break
		}
	}
	t.Logf("%d random edits, %d missed, p50 %v, p99 %v, max %v", len(took), missedOnes, percentile(took, 50), percentile(took, 99), percentile(took, 100))
	if p50 := percentile(took, 50); p50 > slow {
		t.Errorf("seen after %v, want %v at most", p50, slow)
	}
	for range n {
		h.edit()
	}
	if _, diff := await(look); diff != "" {
		t.Errorf("%d edits at once are not all seen:\n%s", n, firstDifference(look()))
	}
}

// holdSome keeps a few files and directories of the mount open.
func holdSome(h *host, mount string) (release func()) {
	var fds []int
	for range 4 {
		fd, err := unix.Open(mount+"/"+h.some(), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil {
			unix.Pread(fd, make([]byte, 10), 0)
			fds = append(fds, fd)
		}
	}
	return func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}
}

// everything says all that can be seen of a tree.
func everything(dir string) string {
	var b strings.Builder
	filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		own := attr(path)
		if rel == "." { // whose number is the workspace's own
			_, own, _ = strings.Cut(own, "mode")
		}
		fmt.Fprintf(&b, "%s: %s %s %s %v\n", rel, own, content(path), listing(path), err != nil)
		return nil
	})
	return b.String()
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("mount:  %s\nsource: %s", g[i], w[i])
		}
	}
	return fmt.Sprintf("mount has %d lines, source %d", len(g), len(w))
}

// host makes random edits below a directory.
type host struct {
	dir string
	rng *rand.Rand
	n   int
}

// paths returns all paths below the directory, and those of directories.
func (h *host) paths() (all, dirs []string) {
	filepath.WalkDir(h.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		rel, _ := filepath.Rel(h.dir, path)
		if d.IsDir() {
			dirs = append(dirs, rel)
		}
		if rel != "." {
			all = append(all, rel)
		}
		return nil
	})
	return all, dirs
}

// some returns a random path that exists, "." if there is none.
func (h *host) some() string {
	all, _ := h.paths()
	if len(all) == 0 {
		return "."
	}
	return all[h.rng.IntN(len(all))]
}

// fresh returns a path in some directory. Few names make many collisions.
func (h *host) fresh() string {
	_, dirs := h.paths()
	return filepath.Join(dirs[h.rng.IntN(len(dirs))], string(rune('a'+h.rng.IntN(8))))
}

// edit makes one edit that changes something and says which.
func (h *host) edit() string {
	for {
		old, name := h.some(), h.fresh()
		what, err := h.try(h.rng.IntN(14), h.dir+"/"+old, h.dir+"/"+name)
		if err == nil {
			return fmt.Sprintf("%s (%s, %s)", what, old, name)
		}
	}
}

func (h *host) try(op int, old, name string) (string, error) {
	h.n++
	text := fmt.Sprintf("text %d\n", h.n)
	deep := strings.Count(name, "/") > strings.Count(h.dir, "/")+5
	switch op {
	case 0, 1:
		return "create", excl(name, text)
	case 2:
		if deep {
			return "", os.ErrInvalid
		}
		return "mkdir", os.Mkdir(name, 0o755)
	case 3:
		return "symlink", os.Symlink("a", name)
	case 4:
		return "link", os.Link(old, name)
	case 5:
		return "write", overwrite(old, int64(h.rng.IntN(20)), text)
	case 6:
		return "append", appendTo(old, text)
	case 7:
		return "truncate", os.Truncate(old, int64(h.rng.IntN(30)))
	case 8:
		return "chmod", os.Chmod(old, os.FileMode(0o600+h.rng.IntN(64)))
	case 9:
		return "save", replace(name, text)
	case 10:
		if deep {
			return "", os.ErrInvalid
		}
		return "rename", os.Rename(old, name)
	case 11:
		if h.rng.IntN(2) == 0 {
			return "remove", os.Remove(old)
		}
		return "rm -r", os.RemoveAll(old)
	case 12:
		return "exchange", unix.Renameat2(unix.AT_FDCWD, old, unix.AT_FDCWD, name, unix.RENAME_EXCHANGE)
	}
	return "utimes", os.Chtimes(old, time.Unix(int64(h.n), 0), time.Unix(int64(h.n), 5))
}

func excl(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return first(err, f.Close())
}

// TestWorkspaceChangesStay makes random edits below a workspace that has changes
// of its own: those stay, and everything else follows the host.
func TestWorkspaceChangesStay(t *testing.T) {
	e := harness.New(t)
	source := filepath.Join(e.Dir, "source")
	harness.Write(t, source, map[string]string{
		"p/q/mine": "host's\n", "p/q/theirs": "one\n", "p/other": "two\n", "p/q/r/s": "three\n", "gone": "four\n", "moved/x": "five\n",
	})
	w := e.NewWorkspace("changes", source)
	check(t, os.WriteFile(w.Mount+"/p/q/mine", []byte("workspace's\n"), 0o644))
	check(t, os.WriteFile(w.Mount+"/p/q/new", []byte("new\n"), 0o644))
	check(t, os.Remove(w.Mount+"/gone"))
	check(t, os.Rename(w.Mount+"/moved", w.Mount+"/here"))
	everything(w.Mount)
	steps := []struct {
		name string
		do   func() error
		want string // paths of regular files, with content
	}{
		{"nothing", func() error { return nil },
			`here/x five p/other two p/q/mine workspace's p/q/new new p/q/r/s three p/q/theirs one`},
		{"write beside", func() error { return os.WriteFile(source+"/p/q/theirs", []byte("1\n"), 0o644) },
			`here/x five p/other two p/q/mine workspace's p/q/new new p/q/r/s three p/q/theirs 1`},
		{"write the hidden and the moved", func() error {
			return first(os.WriteFile(source+"/gone", []byte("again\n"), 0o644), os.WriteFile(source+"/moved/x", []byte("5\n"), 0o644))
		}, `here/x 5 p/other two p/q/mine workspace's p/q/new new p/q/r/s three p/q/theirs 1`},
		{"replace below the change", func() error { return replace(source+"/p/q/mine", "host's own\n") },
			`here/x 5 p/other two p/q/mine workspace's p/q/new new p/q/r/s three p/q/theirs 1`},
		{"delete the tree", func() error { return os.RemoveAll(source + "/p") },
			`here/x 5 p/q/mine workspace's p/q/new new`},
		{"make it again", func() error {
			return first(os.MkdirAll(source+"/p/q", 0o755), os.WriteFile(source+"/p/q/theirs", []byte("2\n"), 0o644), os.WriteFile(source+"/p/later", []byte("l\n"), 0o644))
		}, `here/x 5 p/later l p/q/mine workspace's p/q/new new p/q/theirs 2`},
		{"write there", func() error { return os.WriteFile(source+"/p/q/theirs", []byte("3\n"), 0o644) },
			`here/x 5 p/later l p/q/mine workspace's p/q/new new p/q/theirs 3`},
		{"rename a directory of it", func() error { return os.Rename(source+"/p", source+"/p2") },
			`here/x 5 p/q/mine workspace's p/q/new new p2/later l p2/q/theirs 3`},
		{"put it back", func() error { return os.Rename(source+"/p2", source+"/p") },
			`here/x 5 p/later l p/q/mine workspace's p/q/new new p/q/theirs 3`},
		{"put a file there", func() error {
			return first(os.RemoveAll(source+"/p"), os.WriteFile(source+"/p", []byte("file\n"), 0o644))
		}, `here/x 5 p/q/mine workspace's p/q/new new`},
		{"and a directory again", func() error {
			return first(os.Remove(source+"/p"), os.MkdirAll(source+"/p", 0o755), os.WriteFile(source+"/p/z", []byte("z\n"), 0o644))
		}, `here/x 5 p/q/mine workspace's p/q/new new p/z z`},
		{"replace the moved", func() error {
			return first(os.RemoveAll(source+"/moved"), os.MkdirAll(source+"/moved", 0o755), os.WriteFile(source+"/moved/y", []byte("y\n"), 0o644))
		}, `here/y y p/q/mine workspace's p/q/new new p/z z`},
	}
	for _, s := range steps {
		check(t, s.do())
		took, diff := await(func() (string, string) { return files(w.Mount), s.want })
		if diff != "" {
			t.Errorf("%s: %s", s.name, diff)
		}
		t.Logf("%s: %v", s.name, took)
	}
	w.Umount()
	w.Remount()
	if got, want := files(w.Mount), steps[len(steps)-1].want; got != want {
		t.Errorf("after a remount: got %s, want %s", got, want)
	}
}

// files lists the regular files of a tree with what they hold.
func files(dir string) string {
	var all []string
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		switch {
		case err != nil:
			all = append(all, rel+" can't be read")
		case d.Type().IsRegular():
			b, err := os.ReadFile(path)
			text := strings.TrimSuffix(string(b), "\n")
			if err != nil {
				text = err.Error()
			}
			all = append(all, rel+" "+text)
		}
		return nil
	})
	slices.Sort(all)
	return strings.Join(all, " ")
}
