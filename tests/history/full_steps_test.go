package history

import (
	"fmt"
	"maps"
	"os"
	osexec "os/exec"
	"slices"
	"strings"

	"github.com/winkfs/winkfs/tests/harness"
)

// command is what a command did that stands: it made a directory below execs/,
// or removed one.
type command struct {
	dir     string
	removed int // identity of what it removed, 0 if it made it
}

// exec runs a command that makes a directory of its own, or removes one that
// there are many of.
func (s *space) exec() {
	s.Helper()
	s.execs++
	if made := keys(s.now.made); len(made) > 12 {
		dir := made[s.r.IntN(len(made))]
		s.both("rm -r execs/" + dir)
		s.now.live[s.execs] = command{dir, s.now.made[dir]}
		delete(s.now.made, dir)
	} else {
		id := s.next()
		dir := fmt.Sprint("u", id)
		s.both(fmt.Sprintf("mkdir execs/%[1]s && echo %[1]s > execs/%[1]s/file && ln execs/%[1]s/file execs/%[1]s/link", dir))
		s.now.live[s.execs], s.now.made[dir] = command{dir: dir}, id
	}
	s.compare("a command")
}

// both runs a script as a command in the workspace, and in the reference.
func (s *space) both(script string) {
	s.Helper()
	mustExec(s.T, s.w, script)
	cmd := osexec.Command("sh", "-ec", script)
	cmd.Dir = s.ref
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Fatalf("%s: %v %s", script, err, out)
	}
}

// undo takes a command back that stands, and now and then redoes it. What
// another command did to the same directory is in its way, and what a merge did
// to it may be.
func (s *space) undo() {
	s.Helper()
	ids := slices.Sorted(maps.Keys(s.now.live))
	if len(ids) == 0 {
		return
	}
	id := ids[s.r.IntN(len(ids))]
	c := s.now.live[id]
	before := harness.MustDump(s.T, s.w.Mount)
	r := s.w.In("undo", fmt.Sprintf("exec:%d", id))
	inWay := (s.now.made[c.dir] == 0) != (c.removed != 0)
	switch {
	case r.Code == 3 && strings.Contains(r.Stderr, "gc"):
		s.counts["undo of what gc dropped"]++
		delete(s.now.live, id)
	case r.Code == 5 && (inWay || s.merges[c.dir]), r.Code == 3 && s.merges[c.dir]:
		s.counts["undo refused"]++
		s.exactly("a refused undo", before)
	case r.Code != 0 || inWay && !s.merges[c.dir]:
		s.Errorf("undo exec:%d: exit status %d, something in its way: %v\n%s", id, r.Code, inWay, r.Stderr)
	case s.r.IntN(3) == 0:
		s.w.MustIn("redo")
		s.exactly("a redo", before)
	default:
		s.undone(id, c)
	}
	s.compare("an undo")
}

// undone does in the reference what the undo of a command does.
func (s *space) undone(id uint64, c command) {
	s.Helper()
	delete(s.now.live, id)
	dir := s.ref + "/execs/" + c.dir
	if c.removed == 0 {
		delete(s.now.made, c.dir)
		if err := harness.RemoveTree(dir); err != nil {
			s.Fatal(err)
		}
		return
	}
	s.now.made[c.dir] = c.removed
	harness.Write(s.T, dir, map[string]string{"file": c.dir + "\n"})
	if err := os.Link(dir+"/file", dir+"/link"); err != nil {
		s.Fatal(err)
	}
}

func (s *space) checkpoint() {
	s.Helper()
	if len(s.points) >= 6 {
		s.deleteCheckpoint()
	}
	if s.r.IntN(3) == 0 {
		s.points[fmt.Sprint(s.w.Head())] = s.copyOf()
		return
	}
	name := fmt.Sprintf("c%d", s.next())
	s.w.MustIn("checkpoint", name)
	s.points[name] = s.copyOf()
	s.compare("a checkpoint")
}

func (s *space) deleteCheckpoint() {
	s.Helper()
	name, _, ok := s.somePoint()
	if !ok {
		return
	}
	if name[0] == 'c' {
		s.w.MustIn("checkpoint", "--delete", name)
		if r := s.w.In("checkpoint", "--delete", name); r.Code != 3 {
			s.Errorf("a checkpoint can be deleted twice: exit status %d", r.Code)
		}
	}
	delete(s.points, name)
	s.compare("the end of a checkpoint")
}

func (s *space) somePoint() (string, *fullCopy, bool) {
	names := slices.Sorted(maps.Keys(s.points))
	if len(names) == 0 {
		return "", nil, false
	}
	name := names[s.r.IntN(len(names))]
	return name, s.points[name], true
}

func (s *space) rollback() {
	s.Helper()
	name, p, ok := s.somePoint()
	if !ok {
		return
	}
	before, head := harness.MustDump(s.T, s.w.Mount), s.w.Head()
	r := s.w.In("rollback", "--yes", name)
	if s.dropped(name, r) {
		s.exactly("a refused rollback", before)
		return
	}
	if r.Code != 0 {
		s.Fatalf("rollback %s: exit status %d\n%s", name, r.Code, r.Stderr)
	}
	s.exactly("a rollback to "+name, p.tree)
	if s.r.IntN(3) == 0 && s.w.Head() > head {
		s.w.MustIn("redo")
		s.exactly("a redo", before)
		return
	}
	s.become(p)
	s.compare("a rollback to " + name)
}

// dropped reports whether a command failed because gc dropped a point that has
// no name.
func (s *space) dropped(name string, r harness.Result) bool {
	if name[0] == 'c' || r.Code != 3 || !strings.Contains(r.Stderr, "gc") {
		return false
	}
	s.counts["points that gc dropped"]++
	delete(s.points, name)
	return true
}

// view mounts a point beside the workspace.
func (s *space) view() {
	s.Helper()
	if name, p, ok := s.somePoint(); ok {
		s.viewOf(name, p)
	}
}

func (s *space) viewOf(name string, p *fullCopy) {
	s.Helper()
	dir := s.e.Dir + "/view"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.Fatal(err)
	}
	r := s.w.In("mount", "--at", name, dir)
	if s.dropped(name, r) {
		return
	}
	if r.Code != 0 {
		s.Fatalf("mount --at %s: exit status %d\n%s", name, r.Code, r.Stderr)
	}
	s.same("the view of "+s.w.Name+" at "+name, harness.MustDump(s.T, dir), p.tree, recorded)
	s.w.Must("umount", dir)
}

func (s *space) gc() {
	s.Helper()
	s.w.MustIn("gc", "--bytes", "1")
	s.compare("gc")
}

// crash kills the daemon.
func (s *space) crash() {
	s.Helper()
	before := harness.MustDump(s.T, s.w.Mount)
	s.w.Kill()
	harness.UnmountBelow(s.w.Mount)
	s.w.Remount()
	s.exactly("a crash", before)
	s.compare("a crash")
}

func (s *space) remount() {
	s.Helper()
	before := harness.MustDump(s.T, s.w.Mount)
	s.w.Umount()
	s.w.Remount()
	s.exactly("a remount", before)
}

func (s *space) verify() {
	s.Helper()
	s.w.MustIn("verify")
}

// newArea makes an area of the workspace's own.
func (s *space) newArea() string {
	s.Helper()
	name := fmt.Sprint("area", s.next())
	for _, dir := range []string{s.w.Mount, s.ref} {
		if err := os.Mkdir(dir+"/ops/"+name, 0o755); err != nil {
			s.Fatal(err)
		}
	}
	s.now.areas[name] = s.next()
	s.owned = append(s.owned, name)
	return name
}

// owner returns the workspace that an area belongs to, nil if there is none.
func (f *full) owner(area string) *space {
	for _, s := range f.spaces {
		if slices.Contains(s.owned, area) {
			return s
		}
	}
	return nil
}

// clear removes an area that is no other workspace's.
func (s *space) clear() {
	s.Helper()
	areas := slices.DeleteFunc(keys(s.now.areas), func(a string) bool { o := s.owner(a); return o != nil && o != s })
	if len(areas) < 3 {
		return
	}
	area := areas[s.r.IntN(len(areas))]
	for _, dir := range []string{s.w.Mount, s.ref} {
		if err := harness.RemoveTree(dir + "/ops/" + area); err != nil {
			s.Fatal(err)
		}
	}
	delete(s.now.areas, area)
	s.owned = slices.DeleteFunc(s.owned, func(a string) bool { return a == area })
	s.compare("the removal of " + area)
}
