package tree

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/journal"
)

// do makes operations that are written like shell commands, one a line.
func (g *rig) do(script string) {
	g.Helper()
	for line := range strings.Lines(script) {
		w := strings.Fields(line)
		if len(w) == 0 {
			continue
		}
		var err error
		switch w[0] {
		case "write": // PATH LINE...
			g.write(w[1], strings.Join(w[2:], "\n")+"\n")
		case "replace": // as editors do it
			g.write("replacing", strings.Join(w[2:], "\n")+"\n")
			g.rename("replacing", w[1])
		case "mv":
			g.rename(w[1], w[2])
		case "rm":
			g.unlink(w[1])
		case "rmdir":
			dir, name := g.at(w[1])
			err = g.t.Rmdir(g.r, dir, name)
		case "mkdir":
			dir, name := g.at(w[1])
			_, err = g.t.Mkdir(g.r, dir, name, 0o755)
		case "ln":
			dir, name := g.at(w[2])
			_, err = g.t.Link(g.r, g.id(w[1]), dir, name)
		case "ln-s":
			dir, name := g.at(w[2])
			_, err = g.t.Symlink(g.r, dir, name, w[1])
		case "chmod": // OCTAL PATH
			var mode uint32
			fmt.Sscanf(w[1], "%o", &mode)
			_, err = g.t.Setattr(g.r, g.id(w[2]), SetAttr{Mask: SetMode, Mode: mode})
		case "touch":
			_, err = g.t.Setattr(g.r, g.id(w[1]), SetAttr{Mask: SetMtimeNow})
		case "attr": // PATH NAME [VALUE]
			if len(w) == 3 {
				err = g.t.Removexattr(g.r, g.id(w[1]), w[2])
			} else {
				err = g.t.Setxattr(g.r, g.id(w[1]), w[2], []byte(w[3]), 0)
			}
		default:
			g.Fatalf("unknown operation %q", line)
		}
		if err != nil {
			g.Fatalf("%s: %v", line, err)
		}
	}
}

// fork returns a rig that goes on from here by itself, over the same lower.
func (g *rig) fork() (*rig, journal.ForkPoint) {
	g.Helper()
	f := &rig{T: g.T, lowerDir: g.lowerDir, stateDir: g.TempDir(), r: g.r}
	point, err := g.store.Fork(f.stateDir, func(p journal.ForkPoint) (*journal.Record, error) {
		return &journal.Record{Op: journal.OpClone, Note: &journal.Note{Point: p.Seq}}, nil
	})
	g.must(err)
	s, err := journal.Open(f.stateDir, journal.Options{})
	g.must(err)
	f.start(s)
	g.Cleanup(func() { f.stop() })
	return f, point
}

// twoStores reads theirs' data where its file number says so.
type twoStores struct{ ours, theirs *journal.Store }

const theirFiles = 1 << 30

func (s twoStores) ReadAt(l journal.Loc, p []byte) error {
	if l.File >= theirFiles {
		return s.theirs.ReadAt(journal.Loc{File: l.File - theirFiles, Pos: l.Pos}, p)
	}
	return s.ours.ReadAt(l, p)
}

// merge plans the merge of f, which left g at the point, and returns what g
// would be then.
func (g *rig) merge(f *rig, point journal.ForkPoint) (*MergePlan, string) {
	g.Helper()
	now := g.t.Snapshot()
	number := func(id journal.NodeID) journal.NodeID {
		if id >= point.NextNode {
			return id + 1000
		}
		return id
	}
	base, err := f.t.At(point.Seq + 1)
	g.must(err)
	texts := map[journal.NodeID][]byte{}
	plan, err := Merge{
		Base: base.Beside(now, number), Theirs: f.t.Snapshot().Beside(now, number), Ours: g.t.Snapshot(), Text: mergeLists,
	}.Plan()
	g.must(err)
	s := now.l.state
	for i := range plan.Changes {
		s.ApplyChange(&plan.Changes[i])
	}
	for i := range plan.Contents {
		c := plan.Contents[i].Change
		c.After = slices.Clone(c.After)
		for j := range c.After {
			if c.After[j].Kind == journal.ExtentData && c.After[j].Loc.File >= point.FirstFile {
				c.After[j].Loc.File += theirFiles
			}
		}
		if text := plan.Contents[i].Text; text != nil {
			ref, err := g.store.Put(text)
			g.must(err)
			c.Off, c.Len = 0, max(c.Off+c.Len, ref.Len)
			c.After = []journal.Extent{{Len: ref.Len, Kind: journal.ExtentData, Loc: ref.Loc}}
			texts[c.ID] = text
		}
		s.ApplyChange(&journal.Change{Content: &c})
	}
	v := NewView(s, now.l.low, now.l.sources, twoStores{g.store, f.store})
	return plan, g.listing(v)
}

// mergeLists takes the words that one side added, and knows no order: the
// merging of lines is diffview's and tested there.
func mergeLists(base, ours, theirs Item) ([]byte, string, error) {
	var words [3][]string
	for i, it := range []Item{base, ours, theirs} {
		b, err := io.ReadAll(it.Open())
		if err != nil {
			return nil, "", err
		}
		words[i] = strings.Fields(string(b))
	}
	if slices.Contains(words[1], "binary") {
		return nil, "not text", nil
	}
	out := words[1]
	for _, w := range words[2] {
		if !slices.Contains(words[0], w) && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return []byte(strings.Join(out, "\n") + "\n"), "", nil
}

// listing describes a tree: path, permissions where they are not usual, number
// of names, content, attributes. It fails the test where counts of links are
// wrong.
func (g *rig) listing(v *View) string {
	g.Helper()
	var out []string
	names := map[journal.NodeID]uint32{}
	links := map[journal.NodeID]uint32{}
	var walk func(it Item)
	walk = func(it Item) {
		a := it.Stat.Attr
		line := it.Path
		if it.IsDir() {
			line += "/"
		}
		if p := a.Mode & 0o777; p != 0o644 && p != 0o755 && p != 0o777 && p != 0o700 {
			line += fmt.Sprintf(" %o", p)
		}
		switch a.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			b, err := io.ReadAll(it.Open())
			g.must(err)
			line += ": " + strings.Join(strings.Fields(string(b)), " ")
		case unix.S_IFLNK:
			target, err := it.Readlink()
			g.must(err)
			line += " -> " + target
		}
		x, err := it.Xattrs()
		g.must(err)
		if len(x) > 0 {
			line += fmt.Sprint(" ", x)
		}
		names[it.ID()]++
		links[it.ID()] = a.Nlink
		if it.Path != "" {
			out = append(out, line)
		}
		if !it.IsDir() {
			return
		}
		list, err := v.List(it)
		g.must(err)
		subdirs := uint32(0)
		for _, n := range list {
			c, err := v.Lookup(it, n)
			g.must(err)
			if c.IsDir() {
				subdirs++
			}
			walk(c)
		}
		names[it.ID()] += subdirs + 1
	}
	root, err := v.Root()
	g.must(err)
	walk(root)
	for id, n := range names {
		if links[id] != n {
			g.Errorf("node %d has %d links, it says %d", id, n, links[id])
		}
	}
	return strings.Join(out, "\n")
}

func TestMergePlan(t *testing.T) {
	lower := map[string]string{"a": "a1 a2\n", "b": "b\n", "d/x": "x\n", "d/y": "y\n", "e/f/g": "g\n", "bin": "binary\n"}
	for _, tc := range []struct {
		name               string
		base, theirs, ours string
		// want are the lines of the listing that differ from what ours had: +
		// for new ones, - for those that are gone; or ! and words of a conflict.
		want string
	}{
		{"nothing", "", "", "write a z", ""},
		{"a new file", "", "write n 1", "", "+n: 1"},
		{"new files beside each other", "", "write n 1", "write m 2", "+n: 1"},
		{"a new file in a renamed directory", "", "write d/n 1", "mv d dd", "+dd/n: 1"},
		{"a renamed directory with a new file", "", "mv d dd", "write d/n 1", "-d/\n-d/n: 1\n-d/x: x\n-d/y: y\n+dd/\n+dd/n: 1\n+dd/x: x\n+dd/y: y"},
		{"deletion", "", "rm d/x", "write d/y z", "-d/x: x"},
		{"deletion of what was made before", "mkdir m\nwrite m/f 1", "rm m/f\nrmdir m", "write a z", "-m/\n-m/f: 1"},
		{"deletion in both", "", "rm a", "rm a", ""},
		{"deleted, changed since", "", "rm a", "write a z", "!a: deleted in the fork, changed in the workspace"},
		{"changed, deleted since", "", "write a z", "rm a", "!a: changed in the fork, deleted in the workspace"},
		{"deleted, touched since", "", "rm a", "touch a", "-a: a1 a2"},
		{"touched, deleted since", "", "touch a", "rm a", ""},
		{"bytes of one side", "", "write a z", "chmod 600 a", "-a 600: a1 a2\n+a 600: z"},
		{"bytes of both", "", "write a a1 a2 t", "write a a1 a2 o", "-a: a1 a2 o\n+a: a1 a2 o t"},
		{"bytes of both, alike", "", "write a z", "write a z", ""},
		{"bytes of both, no text", "", "write bin binary t", "write bin binary o", "!bin: not text"},
		{"replaced in theirs", "", "replace a a1 a2 t", "write a a1 a2 o", "-a: a1 a2 o\n+a: a1 a2 o t"},
		{"replaced in ours", "", "write a a1 a2 t", "replace a a1 a2 o", "-a: a1 a2 o\n+a: a1 a2 o t"},
		{"replaced in both", "", "replace a a1 a2 t", "replace a a1 a2 o", "-a: a1 a2 o\n+a: a1 a2 o t"},
		{"replaced in both alike", "", "replace a z", "replace a z", ""},
		{"replaced, nothing since", "", "replace a z", "", "-a: a1 a2\n+a: z"},
		{"renamed and edited", "", "mv a aa", "write a z", "-a: z\n+aa: z"},
		{"edited and renamed", "", "write a z", "mv a aa", "-aa: a1 a2\n+aa: z"},
		{"renamed alike", "", "mv a aa", "mv a aa", ""},
		{"renamed differently", "", "mv a aa", "mv a aaa", "!aa: moved to different places"},
		{"renamed, deleted since", "", "mv a aa", "rm a", "!aa: deleted in the workspace"},
		{"deleted, renamed since", "", "rm a", "mv a aa", "!a: deleted in the fork, moved in the workspace"},
		{"moved into each other", "", "mv d e/d", "mv e d/e", "!moved into a directory"},
		{"moved beside each other", "", "mv d/x e/x", "mv d/y e/y", "-d/x: x\n+e/x: x"},
		{"swapped with a new one", "", "mv a old\nwrite a z", "chmod 600 b", "-a: a1 a2\n+a: z\n+old: a1 a2"},
		{"directory deleted, filled since", "", "rm d/x\nrm d/y\nrmdir d", "write d/n 1", "!d/n: its directory was deleted in the fork"},
		{"directory filled, deleted since", "", "write d/n 1", "rm d/x\nrm d/y\nrmdir d", "!d/n: its directory was deleted in the workspace"},
		{"directories made in both", "", "mkdir n\nwrite n/t 1\nmkdir n/s\nwrite n/s/t 1", "mkdir n\nwrite n/o 1\nmkdir n/s", "+n/s/t: 1\n+n/t: 1"},
		{"files made alike", "", "mkdir n\nwrite n/f 1", "mkdir n\nwrite n/f 1", ""},
		{"files made differently", "", "mkdir n\nwrite n/f 1", "mkdir n\nwrite n/f 2", "!n/f: made in both"},
		{"a file and a directory", "", "mkdir n", "write n 1", "!n: made in both"},
		{"modes", "", "chmod 600 a", "chmod 640 b", "-a: a1 a2\n+a 600: a1 a2"},
		{"modes of one file", "", "chmod 600 a", "chmod 640 a", "!a: mode changed in both"},
		{"modes alike", "", "chmod 600 a", "chmod 600 a", ""},
		{"attributes", "", "attr a user.t 1", "attr a user.o 1", "-a: a1 a2 map[user.o:1]\n+a: a1 a2 map[user.o:1 user.t:1]"},
		{"one attribute", "", "attr a user.t 1", "attr a user.t 2", "!a: attribute user.t changed in both"},
		{"an attribute removed", "attr a user.b 1", "attr a user.b", "attr a user.o 1", "-a: a1 a2 map[user.b:1 user.o:1]\n+a: a1 a2 map[user.o:1]"},
		{"hard links", "", "ln a l", "ln a m", "+l: a1 a2"},
		{"hard links of a new file", "", "write n 1\nln n d/n", "write m 1", "+d/n: 1\n+n: 1"},
		{"a link for a deleted file", "", "ln a l", "rm a", "!l: deleted in the workspace"},
		{"one name of two", "write n 1\nln n m", "rm n", "rm m", "-n: 1"},
		{"links to places", "", "ln-s d s", "", "+s -> d"},
		{"links to different places", "", "ln-s d s", "ln-s e s", "!s: made in both"},
		{"what came and went", "", "write tmp 1\nrm tmp\nmkdir t\nrmdir t", "write a z", ""},
		{"undone in theirs", "write n 1", "write n 2\nwrite n 1", "write n 3", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newRig(t, lower)
			g.do(tc.base)
			f, point := g.fork()
			f.do(tc.theirs)
			g.do(tc.ours)
			before := g.listing(g.t.Snapshot())
			plan, after := g.merge(f, point)
			if want, ok := strings.CutPrefix(tc.want, "!"); ok {
				got := ""
				for _, c := range plan.Conflicts {
					got += c.Path + ": " + c.Reason + "\n"
				}
				if path, reason, both := strings.Cut(want, ": "); !strings.Contains(got, reason) || both && !strings.Contains(got, path+": ") {
					t.Errorf("conflicts\n%s, want %q", got, want)
				}
				return
			}
			if len(plan.Conflicts) > 0 {
				t.Fatalf("conflicts: %+v", plan.Conflicts)
			}
			if got := changedLines(before, after); got != tc.want {
				t.Errorf("changed\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// changedLines returns the lines that went, with -, and those that came, with
// +, sorted by what they say.
func changedLines(before, after string) string {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	var out []string
	for _, l := range a {
		if !slices.Contains(b, l) {
			out = append(out, "-"+l)
		}
	}
	for _, l := range b {
		if !slices.Contains(a, l) {
			out = append(out, "+"+l)
		}
	}
	return strings.Join(out, "\n")
}
