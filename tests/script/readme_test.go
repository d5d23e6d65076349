package script

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/winkfs/winkfs/tests/harness"
)

// TestReadme runs README.md's transcript: each command must succeed and print
// what stands there.
func TestReadme(t *testing.T) {
	root, err := harness.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	steps, err := transcript(string(readme))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "readme.txtar")
	if err := os.WriteFile(file, script(steps), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, testscript.Params{Files: []string{file}})
}

// step is a command of a transcript with the lines that it prints.
type step struct {
	command string
	output  []string
}

// transcript returns the steps of the first console block.
func transcript(markdown string) ([]step, error) {
	_, rest, ok := strings.Cut(markdown, "```console\n")
	block, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		return nil, fmt.Errorf("no console block")
	}
	var steps []step
	for line := range strings.Lines(block) {
		line = strings.TrimSuffix(line, "\n")
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			steps = append(steps, step{command: command})
			continue
		}
		if len(steps) == 0 {
			return nil, fmt.Errorf("output %q before the first command", line)
		}
		last := &steps[len(steps)-1]
		last.output = append(last.output, line)
	}
	return steps, nil
}

// script turns steps into a testscript. A `cd` at the start of a command holds
// for the following ones, as in a shell.
func script(steps []step) []byte {
	var b bytes.Buffer
	var cd string
	for _, s := range steps {
		fmt.Fprintf(&b, "exec sh -c %s\n", quote("{ "+cd+s.command+"; } 2>&1"))
		fmt.Fprintf(&b, "stdout %s\n", quote(pattern(s.output)))
		if i := strings.Index(s.command, "cd "); i >= 0 && cd == "" {
			dir, _, _ := strings.Cut(s.command[i:], " &&")
			cd = dir + "; "
		}
	}
	return b.Bytes()
}

// quote quotes for testscript: single quotes, doubled inside.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// pattern returns the expression for exactly these lines; "..." is any number
// of lines, none too.
func pattern(lines []string) string {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for _, line := range lines {
		if line == "..." {
			b.WriteString(`(.*\n)?`)
			continue
		}
		b.WriteString(regexp.QuoteMeta(line) + `\n`)
	}
	b.WriteString(`\z`)
	return b.String()
}

func TestTranscript(t *testing.T) {
	steps, err := transcript("x\n```console\n$ mkdir d && cd d && pwd\n...\n$ echo \"it's\"\nit's\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	got := string(script(steps))
	want := "exec sh -c '{ mkdir d && cd d && pwd; } 2>&1'\n" +
		"stdout '(?s)\\A(.*\\n)?\\z'\n" +
		"exec sh -c '{ cd d; echo \"it''s\"; } 2>&1'\n" +
		"stdout '(?s)\\Ait''s\\n\\z'\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, bad := range []string{"", "```console\n$ x\n", "```console\nout\n```"} {
		if _, err := transcript(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestPattern(t *testing.T) {
	tests := []struct {
		lines []string
		out   string
		want  bool
	}{
		{[]string{"a.c"}, "a.c\n", true},
		{[]string{"a.c"}, "abc\n", false},
		{[]string{"a"}, "a\nb\n", false},
		{[]string{"...", "b"}, "a\nb\n", true},
		{[]string{"...", "b"}, "b\n", true},
		{[]string{"a", "...", "b"}, "a\nb\n", true},
		{[]string{"a", "...", "b"}, "a\nx\ny\nb\n", true},
		{nil, "", true},
		{nil, "x\n", false},
	}
	for _, tt := range tests {
		if got := regexp.MustCompile("(?m)" + pattern(tt.lines)).MatchString(tt.out); got != tt.want {
			t.Errorf("%q on %q: got %v, want %v", tt.lines, tt.out, got, tt.want)
		}
	}
}
