package history

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// texts is the number of names of text files, textLines that of the lines in
// each that are ever edited.
const texts, textLines = 10, 5

// text is a file of lines. Each line has a number of its own, so that no two
// edits are alike, and another behind it that never changes, so that no two
// edits touch.
type text struct {
	id    int // its identity: a file that replaces it has another
	mode  os.FileMode
	lines [textLines]int
}

func (f *full) newText() text {
	t := text{id: f.next(), mode: 0o644}
	for i := range t.lines {
		t.lines[i] = f.next()
	}
	return t
}

// alike reports whether two files look the same.
func (t text) alike(o text) bool { return t.mode == o.mode && t.lines == o.lines }

func lineText(n int) string { return fmt.Sprintf("%09d\n", n) }

func (t text) bytes() []byte {
	var b strings.Builder
	for i, n := range t.lines {
		b.WriteString(lineText(n) + fmt.Sprintf("-- behind line %d --\n", i))
	}
	return []byte(b.String())
}

// write brings a file below text/ into this state: whole as a new file, by
// another that is renamed over it, by writing it afresh, one line of it only,
// or the mode only.
func (t text) write(tb testing.TB, dir, name, how string) {
	tb.Helper()
	path := dir + "/text/" + name
	var err error
	switch how {
	case "new", "rewrite":
		err = os.WriteFile(path, t.bytes(), t.mode)
	case "replace":
		if err = os.WriteFile(path+"~", t.bytes(), t.mode); err == nil {
			err = os.Chmod(path+"~", t.mode)
		}
		if err == nil {
			err = os.Rename(path+"~", path)
		}
	case "line":
		err = t.writeLines(path)
	case "append":
		err = t.appendTo(path)
	}
	if err == nil {
		err = os.Chmod(path, t.mode)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// writeLines writes each line where it differs.
func (t text) writeLines(path string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	off := int64(0)
	for line := range strings.Lines(string(t.bytes())) {
		if old := string(old[off : off+int64(len(line))]); old != line {
			if _, err := f.WriteAt([]byte(line), off); err != nil {
				return err
			}
		}
		off += int64(len(line))
	}
	return nil
}

// appendTo truncates the file and writes it in two pieces.
func (t text) appendTo(path string) error {
	if err := os.Truncate(path, 0); err != nil {
		return err
	}
	b := t.bytes()
	for _, piece := range [][]byte{b[:len(b)/2], b[len(b)/2:]} {
		f, err := os.OpenFile(path, os.O_WRONLY|unix.O_APPEND, 0)
		if err != nil {
			return err
		}
		if _, err := f.Write(piece); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// editText makes, changes or removes a text file in both.
func (s *space) editText() {
	s.Helper()
	name := fmt.Sprint("t", s.r.IntN(texts))
	t, there := s.now.text[name]
	how := "new"
	switch k := s.r.IntN(12); {
	case !there:
		t = s.newText()
	case k == 0:
		s.removeText(name)
		return
	case k == 1:
		how, t.mode = "mode", []os.FileMode{0o644, 0o600, 0o755}[s.r.IntN(3)]
	default:
		how = []string{"replace", "rewrite", "append", "line"}[s.r.IntN(4)]
		t.lines[s.r.IntN(textLines)] = s.next()
	}
	if how == "replace" {
		t.id = s.next()
	}
	for _, dir := range []string{s.w.Mount, s.ref} {
		t.write(s.T, dir, name, how)
	}
	s.now.text[name] = t
	s.compareIn("an edit of "+name, "/text")
}

func (s *space) removeText(name string) {
	s.Helper()
	for _, dir := range []string{s.w.Mount, s.ref} {
		if err := os.Remove(dir + "/text/" + name); err != nil {
			s.Fatal(err)
		}
	}
	delete(s.now.text, name)
	s.compareIn("the removal of "+name, "/text")
}

// keys returns the keys of maps in order, each once.
func keys[V any](of ...map[string]V) []string {
	var all []string
	for _, m := range of {
		for k := range m {
			all = append(all, k)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
