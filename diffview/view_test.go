package diffview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestPatchText(t *testing.T) {
	changes := []Change{
		{Old: text("a b", 0o644, "1\n2\n3\n"), New: text("a b", 0o755, "1\nx\n3")},
		{Old: text("gone", 0o644, "x\n")},
		{Old: text("old", 0o644, "same\n"), New: text("ü", 0o644, "same\n")},
	}
	const want = `diff --git a/gone b/gone
deleted file mode 100644
index 587be6b..0000000
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/a b b/a b
old mode 100644
new mode 100755
index 01e79c3..62529b4
--- a/a b	
+++ b/a b	
@@ -1,3 +1,3 @@
 1
-2
-3
+x
+3
\ No newline at end of file
diff --git a/old "b/\303\274"
similarity index 100%
rename from old
rename to "\303\274"
`
	var buf bytes.Buffer
	must(t, Patch(&buf, changes, Options{}))
	got := buf.String()
	if g, w := dropIndex(got), dropIndex(want); g != w {
		t.Errorf("patch is\n%s\nwant\n%s", g, w)
	}
}

// dropIndex removes the ids, which the round trips against git check.
func dropIndex(s string) string {
	var out []string
	for _, l := range strings.Split(s, "\n") {
		if !strings.HasPrefix(l, "index ") {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

func TestBlobID(t *testing.T) {
	for data, id := range map[string]string{
		"":        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
		"hello\n": "ce013625030ba8dba906f756967f9e9ca394464a",
	} {
		if got := newBlob(nil, []byte(data)).oid.String(); got != id {
			t.Errorf("id of %q is %s, want %s", data, got, id)
		}
	}
}

func TestTerminalIsSafe(t *testing.T) {
	evil := "\x1b]0;evil\x07\u009b31m\u202e\r"
	c := []Change{
		{Old: text("n"+evil, 0o644, "x\n"), New: text("m"+evil, 0o644, evil+"\ty\n")},
		{New: text(evil, 0o644, "\x00"+evil)}, {New: link("l"+evil, evil)},
	}
	var buf bytes.Buffer
	must(t, Patch(&buf, c, Options{Terminal: true, Binary: true}))
	must(t, Stat(&buf, c, Options{Terminal: true}))
	for _, r := range buf.String() {
		if r != '\n' && r != '\t' && (r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x202e) {
			t.Fatalf("output holds %q:\n%q", r, buf.String())
		}
	}
}

func TestEscape(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plain ü 漢", "plain ü 漢"},
		{"a\x1b[31m", `a\x1b[31m`},
		{"a\nb\tc\r", `a\nb\tc\r`},
		{"\u009b", `\x9b`},
		{"\u202e\u2028", `\u202e\u2028`},
		{"\xff", `\xff`},
		{"\x7f\x00", `\x7f\x00`},
	}
	for _, tt := range tests {
		if got := Escape(tt.in); got != tt.want {
			t.Errorf("Escape(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
	if got := EscapeText("a\n\tb\x1b"); got != "a\n\tb\\x1b" {
		t.Errorf("EscapeText = %q", got)
	}
}

func TestEntriesJSON(t *testing.T) {
	changes := []Change{
		{Old: text("s.sh", 0o644, "1\n2\n"), New: text("s.sh", 0o755, "1\n3\n4\n"), Exec: []uint64{17}},
		{Old: text("b", 0o600, "x"), New: text("c", 0o600, "x")},
		{Old: link("t", "x"), New: text("t", 0o644, "")},
	}
	es, err := Entries(changes)
	must(t, err)
	got, err := json.Marshal(Document{Schema: Schema, From: 0, To: 9, Entries: es})
	must(t, err)
	want := `{"schema":"winkfs.diff/v1","from":0,"to":9,"entries":[` +
		`{"status":"R","path":"c","old_path":"b","old_mode":"100600","new_mode":"100600","binary":false,"old_size":1,"new_size":1,"added":0,"removed":0,"exec":[],"guarded":false,"hunks":[]},` +
		`{"status":"M","path":"s.sh","old_mode":"100644","new_mode":"100755","binary":false,"old_size":4,"new_size":6,"added":2,"removed":1,"exec":[17],"guarded":true,"hunks":[{"id":"ID","old_start":1,"old_lines":2,"new_start":1,"new_lines":3}]},` +
		`{"status":"T","path":"t","old_mode":"120000","new_mode":"100644","binary":false,"old_size":1,"new_size":0,"added":0,"removed":1,"exec":[],"guarded":false,"hunks":[{"id":"ID","old_start":1,"old_lines":1,"new_start":0,"new_lines":0}]}]}`
	s := string(got)
	for _, e := range es {
		for _, h := range e.Hunks {
			s = strings.Replace(s, `"`+h.ID+`"`, `"ID"`, 1)
		}
	}
	if s != want {
		t.Errorf("entries are\n%s\nwant\n%s", s, want)
	}
}

func TestHunkIDsAreStable(t *testing.T) {
	body := func(top, mid string) string {
		return top + strings.Repeat("a\nb\nc\nd\n", 10) + mid + strings.Repeat("e\nf\n", 10)
	}
	ids := func(new string) map[string]bool {
		es, err := Entries([]Change{{Old: text("p", 0o644, body("x\n", "m\n")), New: text("p", 0o644, new)}})
		must(t, err)
		out := make(map[string]bool)
		for _, h := range es[0].Hunks {
			out[h.ID] = true
		}
		return out
	}
	one, two := ids(body("x\n", "n\n")), ids(body("y\nz\n", "n\n"))
	if len(one) != 1 || len(two) != 2 {
		t.Fatalf("hunks: %v, %v", one, two)
	}
	for id := range one {
		if !two[id] {
			t.Errorf("hunk %s has another id when an earlier one appears", id)
		}
	}
	if _, err := Select(&Change{Old: text("p", 0o644, "a\n"), New: text("p", 0o644, "b\n")}, []string{"nope"}); err == nil {
		t.Error("an unknown hunk is selected")
	}
}

func TestStat(t *testing.T) {
	changes := []Change{
		{Old: text("a", 0o644, "1\n2\n"), New: text("a", 0o644, "1\n3\n")},
		{New: text("bin", 0o755, "\x00")},
		{Old: text("gone", 0o644, "x\n")},
		{Old: text("o", 0o644, "x\n"), New: text("p", 0o644, "x\n")},
	}
	const want = ` a      | 2 +-
 bin    | Bin 0 -> 1 bytes
 gone   | 1 -
 o => p | 0
 4 files changed, 1 insertion(+), 2 deletions(-)
 create mode 100755 bin
 delete mode 100644 gone
 rename o => p (100%)
`
	var buf bytes.Buffer
	must(t, Stat(&buf, changes, Options{}))
	if buf.String() != want {
		t.Errorf("stat is\n%s\nwant\n%s", buf.String(), want)
	}
	buf.Reset()
	must(t, NameStatus(&buf, changes))
	if want := "M\ta\nA\tbin\nD\tgone\nR100\to\tp\n"; buf.String() != want {
		t.Errorf("names are %q, want %q", buf.String(), want)
	}
}

func TestNotes(t *testing.T) {
	dir := func(p string, perm uint32) *File { return &File{Path: p, Mode: unix.S_IFDIR | perm} }
	withX := text("x", 0o644, "a")
	withX.Xattrs = map[string]string{"user.k": "v"}
	touched := text("m", 0o644, "a")
	touched.Mtime = 5
	tests := []struct {
		name  string
		c     []Change
		kinds string
	}{
		{"plain", []Change{{New: text("a", 0o644, "x")}}, ""},
		{"odd mode", []Change{{New: text("a", 0o600, "x")}}, "mode"},
		{"mode git can't see", []Change{{Old: text("a", 0o644, "x"), New: text("a", 0o600, "x")}}, "mode"},
		{"xattrs", []Change{{Old: text("x", 0o644, "a"), New: withX}}, "xattrs"},
		{"mtime", []Change{{Old: text("m", 0o644, "a"), New: touched}}, "mtime"},
		{"empty directory", []Change{{New: dir("d", 0o755)}}, "directory"},
		{"full directory", []Change{{New: dir("d", 0o755)}, {New: text("d/x", 0o644, "")}}, ""},
		{"deleted empty directory", []Change{{Old: dir("d", 0o755)}}, "directory"},
		{"directory mode", []Change{{Old: dir("d", 0o755), New: dir("d", 0o700)}}, "mode"},
		{"fifo", []Change{{New: &File{Path: "f", Mode: unix.S_IFIFO}}}, "special"},
		{"binary", []Change{{New: text("a", 0o644, "\x00")}}, "binary"},
		{"git", []Change{{New: text(".GIT/x", 0o644, "")}}, "path"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ns, err := Notes(tt.c, Options{})
			must(t, err)
			var kinds []string
			for _, n := range ns {
				kinds = append(kinds, n.Kind)
			}
			if got := strings.Join(kinds, " "); got != tt.kinds {
				t.Errorf("notes are %v, want %q", ns, tt.kinds)
			}
		})
	}
}

func TestGuarded(t *testing.T) {
	reg := func(p string) *File { return text(p, 0o644, "") }
	tests := []struct {
		path     string
		old, new *File
		class    string
		ok       bool
	}{
		{".git/hooks/pre-commit", nil, reg(""), ClassGit, true},
		{"sub/.GIT/config", nil, reg(""), ClassGit, true},
		{".git", nil, reg(""), ClassGit, true},
		{".git\u200c/config", nil, reg(""), ClassGit, true},
		{"GIT~1/config", nil, reg(""), ClassGit, true},
		{".git./config", nil, reg(""), ClassGit, true},
		{".git/objects/ab/cd", nil, reg(""), "", false},
		{".git/objects/info/alternates", nil, reg(""), ClassGit, true},
		{".git/refs/heads/main", nil, reg(""), "", false},
		{".git/index", nil, reg(""), "", false},
		{".git/modules/x/hooks/update", nil, reg(""), ClassGit, true},
		{"bare.git/hooks/update", nil, reg(""), ClassGit, true},
		{"anything/hooks/pre-push", nil, reg(""), ClassGit, true},
		{"src/hooks/use.ts", nil, reg(""), "", false},
		{"a/.gitattributes", nil, reg(""), ClassGit, true},
		{".envrc", reg(".envrc"), nil, ClassShell, true},
		{"x/.VSCode/tasks.json", nil, reg(""), ClassEditor, true},
		{".github/workflows/ci.yml", nil, reg(""), ClassCI, true},
		{".github/CODEOWNERS", nil, reg(""), "", false},
		{"Jenkinsfile", nil, reg(""), ClassCI, true},
		{"home/.ba\u017fhrc", nil, reg(""), ClassShell, true},
		{"t/conftest.py", nil, reg(""), ClassImport, true},
		{"v/x.pth", nil, reg(""), ClassImport, true},
		{"Makefile", nil, reg(""), ClassBuild, false},
		{"run.sh", nil, text("run.sh", 0o755, ""), ClassExecutable, true},
		{"run.sh", text("run.sh", 0o755, ""), text("run.sh", 0o755, "x"), "", false},
		{"run.sh", text("run.sh", 0o644, ""), text("run.sh", 0o755, "x"), ClassExecutable, true},
		{"s", text("s", 0o755, ""), text("s", 0o4755, "x"), ClassSetID, true},
		{"l", nil, link("l", "/etc"), ClassSymlink, true},
		{"d/l", nil, link("d/l", "../x"), "", false},
		{"d/l", nil, link("d/l", "../../x"), ClassSymlink, true},
		{"d/l", nil, link("d/l", "e/../../x"), ClassSymlink, true},
		{"plain", reg(".envrc"), reg("plain"), ClassShell, true},
		{"src/main.go", nil, reg(""), "", false},
	}
	for _, tt := range tests {
		class, ok := Guarded(tt.path, tt.old, tt.new)
		if class != tt.class || ok != tt.ok {
			t.Errorf("Guarded(%q) = %q, %v; want %q, %v", tt.path, class, ok, tt.class, tt.ok)
		}
	}
}

func TestMerge(t *testing.T) {
	base := "1\n2\n3\n4\n5\n6\n"
	tests := []struct {
		name, base, ours, theirs, want string
		conflicts                      int
	}{
		{"far apart", base, "x\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\n5\ny\n", "x\n2\n3\n4\n5\ny\n", 0},
		{"same line", base, "1\nx\n3\n4\n5\n6\n", "1\ny\n3\n4\n5\n6\n", "", 1},
		{"touching", base, "1\nx\n3\n4\n5\n6\n", "1\n2\ny\n4\n5\n6\n", "", 1},
		{"same change and more", base, "1\nx\n3\n4\n5\nz\n", "1\nx\n3\n4\n5\n6\n", "1\nx\n3\n4\n5\nz\n", 0},
		{"delete and edit", base, "", "1\nx\n3\n4\n5\n6\n", "", 1},
		{"both append", base, base + "a\n", base + "b\n", "", 1},
		{"no newline", "1\n2\n3", "0\n1\n2\n3", "1\n2\n3\n", "0\n1\n2\n3\n", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := Merge([]byte(tt.base), []byte(tt.ours), []byte(tt.theirs))
			if len(m.Conflicts) != tt.conflicts || tt.conflicts == 0 && string(m.Text) != tt.want {
				t.Errorf("merged %q with %d conflicts, want %q with %d", m.Text, len(m.Conflicts), tt.want, tt.conflicts)
			}
		})
	}
	m := Merge([]byte("1\n2\n3\n"), []byte("1\nx\ny\n3\n"), []byte("1\nz\n3\n"))
	got := fmt.Sprintf("%v %v %v %q %q %q", m.Conflicts[0].Base, m.Conflicts[0].Ours, m.Conflicts[0].Theirs,
		m.Conflicts[0].BaseText, m.Conflicts[0].OursText, m.Conflicts[0].TheirsText)
	if want := `{1 1} {1 2} {1 1} "2\n" "x\ny\n" "z\n"`; got != want {
		t.Errorf("conflict is %s, want %s", got, want)
	}
}

// TestMatchLarge checks that each way of matching a block is right, and that
// hostile input ends.
func TestMatchLarge(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	repeat := func(n, of int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "%d\n", r.Intn(of))
		}
		return b.String()
	}
	many := repeat(70000, 1<<30) // more distinct lines than fit below the surrogates
	few := repeat(20000, 2)
	tests := []struct{ name, a, b string }{
		{"unique lines", many, strings.Replace(many, "7\n", "x\n", 400)},
		{"few edits among repeats", few, few[:100] + "x\n" + few[100:20000] + few[20002:]},
		{"nothing alike", few, repeat(20000, 2)},
		{"shuffled", many, repeat(70000, 1<<30)},
		{"newlines", strings.Repeat("\n", maxLines+5), strings.Repeat("\n", maxLines+4) + "x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			begin := time.Now()
			a, b := splitLines([]byte(tt.a)), splitLines([]byte(tt.b))
			var out bytes.Buffer
			pos, posB := 0, 0
			es := diffLines(a, b)
			for _, e := range es {
				if e.A0-pos != e.B0-posB || !bytes.Equal(a.span(pos, e.A0), b.span(posB, e.B0)) {
					t.Fatalf("lines before %v are not equal", e)
				}
				out.Write(a.span(pos, e.A0))
				out.Write(b.span(e.B0, e.B1))
				pos, posB = e.A1, e.B1
			}
			out.Write(a.span(pos, a.len()))
			if out.String() != tt.b {
				t.Fatal("edits do not give the new text")
			}
			t.Logf("%d edits in %v", len(es), time.Since(begin))
		})
	}
}
