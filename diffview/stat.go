package diffview

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// NameStatus writes a line for each change like `git diff --name-status`: the
// letter, with the similarity of a rename, and the names, quoted as git quotes
// them.
func NameStatus(w io.Writer, changes []Change) error {
	b := bufio.NewWriter(w)
	for _, c := range byPath(changes) {
		if c.Status() != Renamed {
			fmt.Fprintf(b, "%s\t%s\n", c.Status(), Quote(c.Path()))
			continue
		}
		d, err := compare(&c)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "R%03d\t%s\t%s\n", similarity(d), Quote(c.Old.Path), Quote(c.New.Path))
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write names: %w", err)
	}
	return nil
}

// statRow is one line of Stat.
type statRow struct {
	name           string
	binary         bool
	oldSize, size  int64
	added, removed int
}

// Stat writes a summary like `git diff --stat --summary`. Names are quoted and
// never shortened.
func Stat(w io.Writer, changes []Change, o Options) error {
	changes = byPath(changes)
	rows := make([]statRow, 0, len(changes))
	var summary []string
	for i := range changes {
		e, d, err := newEntry(&changes[i])
		if err != nil {
			return err
		}
		rows = append(rows, statRow{statName(&e), e.Binary, e.OldSize, e.NewSize, e.Added, e.Removed})
		summary = append(summary, statSummary(&e, d)...)
	}
	p := &printer{w: bufio.NewWriter(w), o: o}
	p.rows(rows)
	for _, s := range summary {
		p.line(" " + s)
	}
	if err := p.w.Flush(); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

func statName(e *Entry) string {
	if e.OldPath == "" {
		return Quote(e.Path)
	}
	return Quote(e.OldPath) + " => " + Quote(e.Path)
}

// statSummary returns the lines that say what is more than a change of lines.
func statSummary(e *Entry, d *delta) []string {
	switch e.Status {
	case Added:
		return []string{"create mode " + e.NewMode + " " + Quote(e.Path)}
	case Deleted:
		return []string{"delete mode " + e.OldMode + " " + Quote(e.Path)}
	case Renamed:
		return []string{fmt.Sprintf("rename %s (%d%%)", statName(e), similarity(d))}
	}
	if e.OldMode != e.NewMode {
		return []string{"mode change " + e.OldMode + " => " + e.NewMode + " " + Quote(e.Path)}
	}
	return nil
}

func (p *printer) rows(rows []statRow) {
	wide, most, added, removed := 0, 0, 0, 0
	for _, r := range rows {
		wide = max(wide, utf8.RuneCountInString(r.name))
		most = max(most, r.added+r.removed)
		added, removed = added+r.added, removed+r.removed
	}
	bar := max(10, p.width()-wide-len(fmt.Sprint(most))-5)
	for _, r := range rows {
		p.row(&r, wide, len(fmt.Sprint(most)), bar, most)
	}
	if len(rows) == 0 {
		return
	}
	s := " " + plural(len(rows), "file") + " changed"
	if added > 0 || removed == 0 {
		s += ", " + plural(added, "insertion") + "(+)"
	}
	if removed > 0 || added == 0 {
		s += ", " + plural(removed, "deletion") + "(-)"
	}
	p.line(s)
}

func (p *printer) width() int {
	if p.o.Width > 0 {
		return p.o.Width
	}
	return 80
}

func (p *printer) row(r *statRow, wide, digits, bar, most int) {
	p.write(fmt.Sprintf(" %-*s | ", wide, r.name))
	if r.binary {
		p.line(fmt.Sprintf("Bin %d -> %d bytes", r.oldSize, r.size))
		return
	}
	p.write(fmt.Sprintf("%*d", digits, r.added+r.removed))
	plus, minus := scale(r.added, bar, most), scale(r.removed, bar, most)
	if plus+minus == 0 {
		p.line("")
		return
	}
	if !p.o.Color {
		p.line(" " + strings.Repeat("+", plus) + strings.Repeat("-", minus))
		return
	}
	p.line(" " + colorGreen + strings.Repeat("+", plus) + colorRed + strings.Repeat("-", minus) + colorReset)
}

// scale shortens a bar of n signs when the longest would not fit; what is not
// zero stays visible.
func scale(n, bar, most int) int {
	if most <= bar || n == 0 {
		return n
	}
	return max(1, n*bar/most)
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
