package posix

import (
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
)

// TestUnionMatrix makes the calls of the matrix on files that are a lower's, or
// were: copied up, replaced, in a moved directory. What is right is what the
// plain directory does, inode numbers included: a file keeps its own. Afterwards
// the mount must be the same after a remount, and the lowers unchanged.
func TestUnionMatrix(t *testing.T) {
	harness.Require(t, "binary", "fuse")
	t.Run("one lower", func(t *testing.T) { unionMatrix(t, 1, false) })
	t.Run("three lowers", func(t *testing.T) {
		dropping(t)
		unionMatrix(t, 3, false)
	})
	if os.Geteuid() == 0 {
		t.Run("full", func(t *testing.T) { unionMatrix(t, 2, true) })
	}
}

// supply hands out directories of a stack whose lowers have the matrix's
// beginning.
type supply struct {
	t     *testing.T
	stack *stack
	full  bool
	was   []map[string]seen // of the lowers
	left  []string
}

// supplySize is how many beginnings are made at once.
const supplySize = 40

func (s *supply) next() string {
	s.t.Helper()
	if len(s.left) == 0 {
		s.end()
		s.begin()
	}
	check(s.t, os.Chmod(s.stack.mnt, 0o777))
	name := s.left[0]
	s.left = s.left[1:]
	return s.stack.mnt + "/" + name
}

// begin makes a stack and mounts it.
func (s *supply) begin() {
	s.t.Helper()
	s.stack = newStack(s.t, cap(s.was), s.full)
	for _, low := range s.stack.lowers {
		w := &world{t: s.t, root: low, full: s.full, readable: os.Geteuid() != 0}
		for i := range supplySize {
			w.build(fmt.Sprint("w", i))
		}
	}
	for i := range supplySize {
		name := fmt.Sprint("w", i)
		s.stack.spread(name)
		s.left = append(s.left, name)
	}
	s.was = s.was[:0]
	for _, low := range s.stack.lowers {
		s.was = append(s.was, look(low, true))
	}
	s.stack.mount()
}

// end looks whether all is as it must be and throws the stack away.
func (s *supply) end() {
	s.t.Helper()
	if s.stack == nil {
		return
	}
	s.stack.remounted()
	s.stack.umount()
	for i, low := range s.stack.lowers {
		same(s.t, low, look(low, true), s.was[i], true)
		remove(low)
	}
	s.left = nil
}

// preparations bring a world from the lower into another state in which it
// looks the same.
var preparations = []struct {
	name string
	do   func(w *world, dir string) string // returns where the world is then
}{
	{"lower", func(_ *world, dir string) string { return dir }},
	{"copied up", copiedUp},
	{"recreated", recreated},
	{"moved", func(w *world, dir string) string {
		check(w.t, os.Rename(dir, dir+"-moved"))
		return dir + "-moved"
	}},
	{"names moved", namesMoved},
	{"listed", func(_ *world, dir string) string { look(dir, true); return dir }},
}

// copiedUp changes each file and changes it back.
func copiedUp(w *world, dir string) string {
	for _, e := range w.beginning() {
		path := dir + "/" + e.path
		if e.mode&unix.S_IFMT != unix.S_IFLNK {
			check(w.t, unix.Chmod(path, 0o700))
		}
		if e.mode&unix.S_IFMT == unix.S_IFREG {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			check(w.t, err)
			_, err = f.WriteString("!")
			check(w.t, err)
			check(w.t, f.Truncate(stat(w.t, path).Size-1))
			f.Close()
		}
		if os.Geteuid() == 0 {
			check(w.t, unix.Lchown(path, 7, 7))
			check(w.t, unix.Lchown(path, e.uid, e.gid))
		}
	}
	w.modes(dir)
	return dir
}

// recreated removes everything and makes it again.
func recreated(w *world, dir string) string {
	list, err := os.ReadDir(dir)
	check(w.t, err)
	for _, e := range list {
		remove(dir + "/" + e.Name())
	}
	w.fill(dir)
	return dir
}

// namesMoved renames each name away and back, over another file.
func namesMoved(w *world, dir string) string {
	list, err := os.ReadDir(dir)
	check(w.t, err)
	for _, e := range list {
		path := dir + "/" + e.Name()
		check(w.t, os.Rename(path, dir+"/elsewhere"))
		if !e.IsDir() {
			put(w.t, path, "in between")
		}
		check(w.t, os.Rename(dir+"/elsewhere", path))
	}
	return dir
}

// prepare brings both worlds into the same state.
func (p *pair) prepare(i int) {
	p.t.Helper()
	for k, w := range p.worlds {
		p.dirs[k] = preparations[i].do(w, p.dirs[k])
	}
}

func unionMatrix(t *testing.T, lowers int, full bool) {
	s := &supply{t: t, full: full, was: make([]map[string]seen, 0, lowers)}
	plain := public(t, harness.TempDir(t))
	p := &pair{t: t, links: lowers == 1, supply: s}
	p.worlds[0] = &world{t: t, root: plain, full: full, readable: os.Geteuid() != 0}
	p.worlds[1] = &world{t: t, full: full, readable: os.Geteuid() != 0}
	calls := make([][]func(), len(preparations))
	part, of := matrixPart(t)
	if of == matrixShare {
		of *= 10 // each call may need a world of its own to begin with
	}
	try := func(c caller, at attempt, a, b string) {
		h := fnv.New32a()
		h.Write([]byte(strings.Join([]string{"union", t.Name(), c.name, at.name, a, b}, "\x00")))
		if h.Sum32()%of == part {
			i := int(h.Sum32()/of) % len(preparations)
			calls[i] = append(calls[i], func() { p.run(c, at, a, b) })
		}
	}
	for _, c := range callers() {
		for _, at := range matrixOne(full) {
			for _, a := range matrixPaths(full) {
				try(c, at, a, "")
			}
		}
		for _, at := range matrixTwo() {
			for _, a := range matrixSources {
				for _, b := range matrixTargets {
					try(c, at, a, b)
				}
			}
		}
	}
	for i, list := range calls {
		p.dirty = true
		for _, call := range list {
			if p.dirty {
				p.fresh()
				p.prepare(i)
			}
			call()
		}
		t.Logf("%s: %d calls compared", preparations[i].name, len(list))
	}
	s.end()
}
