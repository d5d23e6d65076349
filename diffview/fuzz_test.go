package diffview

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// applyHunks applies a patch of one text file by its numbers alone.
func applyHunks(old []byte, patch string) (string, error) {
	l := splitLines(old)
	var out strings.Builder
	pos := 0
	ls := splitLines([]byte(patch))
	for i := 0; i < ls.len(); i++ {
		line := string(ls.at(i))
		if strings.HasPrefix(line, "@@ -") {
			var from, n int
			f := strings.SplitN(strings.Fields(line)[1][1:], ",", 2)
			from, _ = strconv.Atoi(f[0])
			n = 1
			if len(f) == 2 {
				n, _ = strconv.Atoi(f[1])
			}
			if n > 0 {
				from--
			}
			if from < pos || from > l.len() {
				return "", fmt.Errorf("hunk at %d behind %d", from, pos)
			}
			out.Write(l.span(pos, from))
			pos = from
			continue
		}
		body := line[1:]
		if i+1 < ls.len() && bytes.HasPrefix(ls.at(i+1), []byte(`\ No newline`)) {
			body = strings.TrimSuffix(body, "\n")
		}
		switch line[0] {
		case ' ', '-':
			if pos >= l.len() || string(l.at(pos)) != body {
				return "", fmt.Errorf("line %d is not %q", pos, body)
			}
			if line[0] == ' ' {
				out.WriteString(body)
			}
			pos++
		case '+':
			out.WriteString(body)
		case '\\':
		default:
			return "", fmt.Errorf("line %q", line)
		}
	}
	out.Write(l.span(pos, l.len()))
	return out.String(), nil
}

func FuzzDiff(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nx\nc")
	f.Add("", "x")
	f.Add(strings.Repeat("a\nb\n", 40), strings.Repeat("b\na\nc\n", 30))
	f.Fuzz(func(t *testing.T, a, b string) {
		if strings.ContainsRune(a+b, 0) {
			t.Skip()
		}
		c := Change{Old: text("p", 0o644, a), New: text("p", 0o644, b)}
		var buf bytes.Buffer
		must(t, Patch(&buf, []Change{c}, Options{}))
		if a == b {
			if buf.Len() > 0 {
				t.Fatalf("equal contents give %q", buf.String())
			}
			return
		}
		_, hunks, ok := strings.Cut(buf.String(), "+++ b/p\n")
		if !ok {
			t.Fatalf("no hunks in %q", buf.String())
		}
		got, err := applyHunks([]byte(a), hunks)
		if err != nil || got != b {
			t.Fatalf("apply(diff(%q, %q)) = %q, %v\n%s", a, b, got, err, hunks)
		}
		checkSelect(t, &c, a, b)
	})
}

// checkSelect checks that no hunk gives the old text and all give the new one.
func checkSelect(t *testing.T, c *Change, a, b string) {
	t.Helper()
	es, err := Entries([]Change{*c})
	must(t, err)
	var ids []string
	for _, h := range es[0].Hunks {
		ids = append(ids, h.ID)
	}
	if got, err := Select(c, ids); err != nil || string(got) != b {
		t.Fatalf("all hunks give %q, %v; want %q", got, err, b)
	}
	if got, err := Select(c, nil); err != nil || string(got) != a {
		t.Fatalf("no hunks give %q, %v; want %q", got, err, a)
	}
}

// unquote reads what Quote wrote.
func unquote(s string) (string, error) {
	if !strings.HasPrefix(s, `"`) {
		return s, nil
	}
	var out []byte
	for i := 1; i < len(s)-1; i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		i++
		if k := strings.IndexByte(quoteLetters, s[i]); k >= 0 {
			out = append(out, byte(7+k))
		} else if s[i] == '"' || s[i] == '\\' {
			out = append(out, s[i])
		} else {
			v, err := strconv.ParseUint(s[i:i+3], 8, 8)
			if err != nil {
				return "", err
			}
			out = append(out, byte(v))
			i += 2
		}
	}
	return string(out), nil
}

func FuzzQuote(f *testing.F) {
	for _, s := range []string{"a", "a b", "\x00\x1b[m", "ü", `"\`, "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q := Quote(s)
		for i := 0; i < len(q); i++ {
			if q[i] < ' ' || q[i] >= 0x7f {
				t.Fatalf("Quote(%q) = %q holds a raw byte", s, q)
			}
		}
		if got, err := unquote(q); err != nil || got != s {
			t.Fatalf("unquote(Quote(%q)) = %q, %v", s, got, err)
		}
	})
}

func FuzzEscape(f *testing.F) {
	f.Add("\x1b]0;x\x07\u202e\u009b\xff\r\n\t")
	f.Fuzz(func(t *testing.T, s string) {
		e := Escape(s)
		if !utf8.ValidString(e) {
			t.Fatalf("Escape(%q) = %q is not UTF-8", s, e)
		}
		for _, r := range e {
			if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e {
				t.Fatalf("Escape(%q) = %q holds %q", s, e, r)
			}
		}
		if Escape(e) != e {
			t.Fatalf("Escape(%q) is not stable", s)
		}
	})
}

func FuzzMerge(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nx\nc\n", "a\nb\ny\n")
	f.Add("a", "b", "")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		for _, m := range [][4]string{{a, a, b, b}, {a, b, a, b}, {a, b, b, b}} {
			got := Merge([]byte(m[0]), []byte(m[1]), []byte(m[2]))
			if len(got.Conflicts) > 0 || string(got.Text) != m[3] {
				t.Fatalf("Merge(%q, %q, %q) = %q, %d conflicts", m[0], m[1], m[2], got.Text, len(got.Conflicts))
			}
		}
		x, y := Merge([]byte(a), []byte(b), []byte(c)), Merge([]byte(a), []byte(c), []byte(b))
		if len(x.Conflicts) != len(y.Conflicts) || len(x.Conflicts) == 0 && string(x.Text) != string(y.Text) {
			t.Fatalf("Merge(%q, %q, %q) depends on the order of the sides", a, b, c)
		}
	})
}

func FuzzGuarded(f *testing.F) {
	f.Add(".git/hooks/x", "../x")
	f.Fuzz(func(t *testing.T, name, target string) {
		n := &File{Path: name, Mode: unix.S_IFLNK, Target: target}
		c1, g1 := Guarded(name, nil, n)
		c2, g2 := Guarded(strings.ToUpper(name), nil, &File{Path: strings.ToUpper(name), Mode: unix.S_IFLNK, Target: target})
		if utf8.ValidString(name) && isASCII(name) && (c1 != c2 || g1 != g2) {
			t.Fatalf("Guarded(%q) depends on case: %s %s", name, c1, c2)
		}
	})
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0
}
