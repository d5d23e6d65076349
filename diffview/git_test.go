package diffview

import (
	"bytes"
	"fmt"
	"io"
	"math/rand"
	"os"
	osexec "os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// text returns a regular file.
func text(path string, perm uint32, data string) *File {
	return &File{Path: path, Mode: unix.S_IFREG | perm, Size: int64(len(data)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(data)), nil
	}}
}

func link(path, target string) *File {
	return &File{Path: path, Mode: unix.S_IFLNK | 0o777, Target: target}
}

// content returns what the file holds, with its type and git mode.
func content(t *testing.T, f *File) string {
	t.Helper()
	if isSymlink(f) {
		return "120000 " + f.Target
	}
	return gitMode(f) + " " + string(raw(t, f))
}

func raw(t *testing.T, f *File) []byte {
	t.Helper()
	r, err := f.Open()
	must(t, err)
	data, err := io.ReadAll(r)
	must(t, err)
	return data
}

// put writes the files below dir.
func put(t *testing.T, dir string, files map[string]*File) {
	t.Helper()
	for p, f := range files {
		name := filepath.Join(dir, p)
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		if isSymlink(f) {
			must(t, os.Symlink(f.Target, name))
			continue
		}
		must(t, os.WriteFile(name, raw(t, f), 0o600))
		must(t, os.Chmod(name, os.FileMode(f.Mode&0o777)))
	}
}

// snapshot reads a directory back, in the form of content.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	must(t, filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if e.Type()&os.ModeSymlink != 0 {
			target, err := os.Readlink(p)
			out[rel] = "120000 " + target
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(p)
		out[rel] = gitMode(&File{Mode: unix.S_IFREG | uint32(info.Mode().Perm())}) + " " + string(data)
		return err
	}))
	return out
}

func want(t *testing.T, files map[string]*File) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for p, f := range files {
		out[p] = content(t, f)
	}
	return out
}

func sameTree(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for p, w := range want {
		if g, ok := got[p]; !ok {
			t.Errorf("%s: %q is missing", what, p)
		} else if g != w {
			t.Errorf("%s: %q is %.80q, want %.80q", what, p, g, w)
		}
	}
	for p := range got {
		if _, ok := want[p]; !ok {
			t.Errorf("%s: %q is too much", what, p)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func git(t *testing.T, dir, patch string, args ...string) {
	t.Helper()
	cmd := osexec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_CONFIG_NOSYSTEM=1", "HOME="+dir)
	cmd.Stdin = strings.NewReader(patch)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s\n%.3000s", strings.Join(args, " "), err, out, patch)
	}
}

// roundTrip applies the patch of the changes to the old tree and back.
func roundTrip(t *testing.T, old, new map[string]*File, changes []Change) {
	t.Helper()
	if _, err := osexec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	var buf bytes.Buffer
	must(t, Patch(&buf, changes, Options{Binary: true}))
	dir := filepath.Join(t.TempDir(), "tree")
	must(t, os.Mkdir(dir, 0o755))
	put(t, dir, old)
	if buf.Len() == 0 {
		sameTree(t, "no patch", want(t, old), want(t, new))
		return
	}
	git(t, dir, buf.String(), "apply", "--check", "--whitespace=nowarn", "-")
	git(t, dir, buf.String(), "apply", "--whitespace=nowarn", "-")
	sameTree(t, "apply", snapshot(t, dir), want(t, new))
	git(t, dir, buf.String(), "apply", "-R", "--whitespace=nowarn", "-")
	sameTree(t, "apply -R", snapshot(t, dir), want(t, old))
	if t.Failed() {
		t.Logf("patch:\n%.6000s", buf.String())
	}
}

// changesOf pairs the trees; renames maps new paths to old ones.
func changesOf(old, new map[string]*File, renames map[string]string) []Change {
	var out []Change
	moved := make(map[string]bool)
	for p, f := range new {
		if from, ok := renames[p]; ok {
			moved[from] = true
			out = append(out, Change{Old: old[from], New: f})
		}
	}
	for p, f := range new {
		if _, ok := renames[p]; ok {
			continue
		}
		o := old[p]
		if moved[p] {
			o = nil
		}
		out = append(out, Change{Old: o, New: f})
	}
	for p, f := range old {
		_, renamedOnto := renames[p]
		if (new[p] == nil || renamedOnto) && !moved[p] {
			out = append(out, Change{Old: f})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Path() < out[j].Path() })
	return out
}

func TestPatchRoundTrip(t *testing.T) {
	long := strings.Repeat("line\n", 50)
	tests := []struct {
		name     string
		old, new *File
	}{
		{"create", nil, text("a", 0o644, "x\n")},
		{"delete", text("a", 0o644, "x\n"), nil},
		{"create empty", nil, text("a", 0o644, "")},
		{"delete empty", text("a", 0o755, ""), nil},
		{"fill", text("a", 0o644, ""), text("a", 0o644, "x")},
		{"empty it", text("a", 0o644, "x"), text("a", 0o644, "")},
		{"lose newline", text("a", 0o644, "x\ny\n"), text("a", 0o644, "x\ny")},
		{"gain newline", text("a", 0o644, "x\ny"), text("a", 0o644, "x\ny\n")},
		{"no newlines", text("a", 0o644, "x"), text("a", 0o644, "y")},
		{"crlf", text("a", 0o644, "x\r\ny\r\n"), text("a", 0o644, "x\ny\r\n")},
		{"middle", text("a", 0o644, long+"x\n"+long), text("a", 0o644, long+"y\n"+long)},
		{"mode", text("a", 0o644, "x\n"), text("a", 0o755, "x\n")},
		{"mode and text", text("a", 0o644, "x\n"), text("a", 0o755, "y\n")},
		{"binary", text("a", 0o644, "x\x00y"), text("a", 0o644, "x\x00z"+long)},
		{"binary create", nil, text("a b", 0o755, strings.Repeat("\x00\xff", 999))},
		{"binary delete", text("a", 0o644, "\x00"), nil},
		{"text to binary", text("a", 0o644, "x\n"), text("a", 0o644, "\x00\n")},
		{"late NUL", text("a", 0o644, strings.Repeat("x\n", 9000)+"\x00\n"), text("a", 0o644, "y\n")},
		{"invalid utf-8", text("a", 0o644, "\xff\n\xfe\n"), text("a", 0o644, "\xfe\n\xff\n")},
		{"large", text("a", 0o644, strings.Repeat("x\n", MaxText)), text("a", 0o644, "y\n")},
		{"symlink create", nil, link("l", "a/b c\nd")},
		{"symlink delete", link("l", "x"), nil},
		{"symlink change", link("l", "x"), link("l", "/etc/passwd")},
		{"file to symlink", text("a", 0o644, "x\n"), link("a", "x")},
		{"symlink to executable", link("a", "x"), text("a", 0o755, "x")},
		{"rename", text("a", 0o644, long), text("d/b", 0o644, long)},
		{"rename with edit", text("a", 0o644, long), text("b", 0o644, long+"y\n")},
		{"rename with mode", text("a", 0o644, long), text("b", 0o755, long)},
		{"rename binary edit", text("a", 0o644, "\x00"+long), text("b", 0o755, "\x00"+long+"x")},
		{"rename empty", text("a", 0o644, ""), text("b", 0o644, "")},
		{"rename symlink", link("a", "x"), link("b", "x")},
		{"rename symlink edit", link("a", "x"), link("b", "y")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			old, new := map[string]*File{}, map[string]*File{}
			if tt.old != nil {
				old[tt.old.Path] = tt.old
			}
			if tt.new != nil {
				new[tt.new.Path] = tt.new
			}
			roundTrip(t, old, new, []Change{{Old: tt.old, New: tt.new}})
		})
	}
}

func TestPatchNames(t *testing.T) {
	names := []string{"a b", " lead", "trail ", "x b/x", "ü", "\xff\xfe", "tab\there", "new\nline", `quo"te`, `back\slash`,
		"\x01\x7f", "a/b c/d", "-dash", "a => b", "{a}", "x y z", "dev/null", "b/b/b", "cr\r"}
	for _, n := range names {
		t.Run(fmt.Sprintf("%q", n), func(t *testing.T) {
			f, g, x := text(n, 0o644, "x\n"), text(n, 0o644, "y\n"), text(n, 0o755, "x\n")
			one := func(f *File) map[string]*File { return map[string]*File{f.Path: f} }
			roundTrip(t, one(f), one(g), []Change{{Old: f, New: g}})
			roundTrip(t, one(f), one(x), []Change{{Old: f, New: x}})
			roundTrip(t, nil, one(f), []Change{{New: f}})
			empty := text(n, 0o644, "")
			roundTrip(t, nil, one(empty), []Change{{New: empty}})
			moved := text(n+"2", 0o644, "x\n")
			roundTrip(t, one(f), one(moved), []Change{{Old: f, New: moved}})
			bin, bin2 := text(n, 0o644, "\x00"), text(n, 0o644, "\x00\x01")
			roundTrip(t, one(bin), one(bin2), []Change{{Old: bin, New: bin2}})
		})
	}
}

func TestPatchShuffles(t *testing.T) {
	a, b, c := "a\n"+strings.Repeat("a\n", 9), "b\n"+strings.Repeat("b\n", 9), "c\n"
	tests := []struct {
		name     string
		old, new []*File
		renames  map[string]string
	}{
		{"swap", []*File{text("a", 0o644, a), text("b", 0o644, b)}, []*File{text("a", 0o644, b), text("b", 0o644, a)}, map[string]string{"a": "b", "b": "a"}},
		{"chain", []*File{text("a", 0o644, a), text("b", 0o644, b)}, []*File{text("b", 0o644, a), text("c", 0o644, b)}, map[string]string{"b": "a", "c": "b"}},
		{"over", []*File{text("a", 0o644, a), text("b", 0o644, b)}, []*File{text("b", 0o644, a)}, map[string]string{"b": "a"}},
		{"over and new", []*File{text("a", 0o644, a), text("b", 0o644, b)}, []*File{text("b", 0o644, a+c), text("a", 0o755, c)}, map[string]string{"b": "a"}},
		{"file to directory", []*File{text("d", 0o644, a)}, []*File{text("d/x", 0o644, b)}, nil},
		{"directory to file", []*File{text("d/x", 0o644, a), text("d/y", 0o644, a)}, []*File{text("d", 0o644, b)}, nil},
		{"into itself", []*File{text("d", 0o644, a)}, []*File{text("d/x", 0o644, a)}, map[string]string{"d/x": "d"}},
		{"out of itself", []*File{text("d/x", 0o644, a)}, []*File{text("d", 0o644, a)}, map[string]string{"d": "d/x"}},
		{"link to directory", []*File{link("s", "t"), text("a", 0o644, a)}, []*File{text("s/x", 0o644, a)}, map[string]string{"s/x": "a"}},
		{"link moves for a directory", []*File{link("s", "t")}, []*File{link("r", "t"), text("s/x", 0o644, a)}, map[string]string{"r": "s"}},
		{"directory to link", []*File{text("s/x", 0o644, a)}, []*File{link("s", "t"), text("a", 0o644, a)}, map[string]string{"a": "s/x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			old, new := tree(tt.old), tree(tt.new)
			roundTrip(t, old, new, changesOf(old, new, tt.renames))
		})
	}
}

func tree(files []*File) map[string]*File {
	out := make(map[string]*File)
	for _, f := range files {
		out[f.Path] = f
	}
	return out
}

func TestPatchRandom(t *testing.T) {
	n := 60
	if testing.Short() {
		n = 10
	}
	for seed := range n {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewSource(int64(seed)))
			old, new, renames := randomChange(r)
			roundTrip(t, old, new, changesOf(old, new, renames))
		})
	}
}

var oddNames = []string{"a", "b c", "ü/x", "d/e/f", "d/g", "q\"", "t\t", "z ", "\xff", "d/h", "k", "l", "m/n", "m/o p"}

func randomChange(r *rand.Rand) (old, new map[string]*File, renames map[string]string) {
	old, new, renames = map[string]*File{}, map[string]*File{}, map[string]string{}
	for _, p := range oddNames {
		if r.Intn(3) > 0 {
			old[p] = randomFile(r, p)
		}
	}
	from := append([]string(nil), oddNames...)
	r.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
	used := make(map[string]bool)
	for i, p := range oddNames {
		switch src := from[i]; {
		case r.Intn(4) == 0: // absent
		case r.Intn(3) == 0 && old[src] != nil && src != p && !used[src]:
			new[p] = edited(r, old[src], p)
			if kind(new[p]) == kind(old[src]) {
				renames[p] = src
				used[src] = true
			}
		case old[p] != nil && r.Intn(2) == 0:
			new[p] = edited(r, old[p], p)
		case old[p] != nil && r.Intn(2) == 0:
			new[p] = old[p]
		default:
			new[p] = randomFile(r, p)
		}
	}
	return old, new, renames
}

func randomFile(r *rand.Rand, p string) *File {
	if r.Intn(6) == 0 {
		return link(p, fmt.Sprintf("target %d", r.Intn(5)))
	}
	return text(p, []uint32{0o644, 0o755, 0o600}[r.Intn(3)], randomText(r, r.Intn(60)))
}

func randomText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		switch r.Intn(30) {
		case 0:
			b.WriteString("\r\n")
		case 1:
			b.WriteString("\xff\xfe\n")
		default:
			fmt.Fprintf(&b, "line %d\n", r.Intn(20))
		}
	}
	if r.Intn(4) == 0 {
		b.WriteString("no end")
	}
	if r.Intn(8) == 0 {
		b.WriteByte(0)
	}
	return b.String()
}

func edited(r *rand.Rand, f *File, p string) *File {
	g := *f
	g.Path = p
	if isSymlink(f) {
		if r.Intn(2) == 0 {
			g.Target += "x"
		}
		return &g
	}
	b, _ := load(f)
	l := splitLines(b.data)
	var out strings.Builder
	for i := range l.len() {
		switch r.Intn(12) {
		case 0:
		case 1:
			out.WriteString("added\n")
			out.Write(l.at(i))
		default:
			out.Write(l.at(i))
		}
	}
	return text(p, []uint32{0o644, 0o755}[r.Intn(2)], out.String())
}
