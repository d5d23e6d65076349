package diffview

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
)

// Colours as git uses them.
const (
	colorReset = "\x1b[m"
	colorBold  = "\x1b[1m"
	colorRed   = "\x1b[31m"
	colorGreen = "\x1b[32m"
	colorCyan  = "\x1b[36m"
)

// printer writes lines and keeps the first error.
type printer struct {
	w   *bufio.Writer
	o   Options
	err error
}

func (p *printer) write(s string) {
	if p.err == nil {
		_, p.err = p.w.WriteString(s)
	}
}

// line prints a line that holds no foreign text but quoted names.
func (p *printer) line(s string) { p.write(s + "\n") }

// head prints a line of a section's header. Its names are quoted already; all
// that a terminal could mind is the TAB behind a name.
func (p *printer) head(s string) {
	if p.o.escapes() {
		s = strings.TrimSuffix(s, "\t")
	}
	p.colored(colorBold, s)
}

func (p *printer) colored(color, s string) {
	if !p.o.Color || color == "" {
		p.line(s)
		return
	}
	p.line(color + s + colorReset)
}

// hunk prints a hunk with its lines.
func (p *printer) hunk(d *delta, h *Hunk) {
	p.colored(colorCyan, fmt.Sprintf("@@ -%s +%s @@",
		lineRange(h.OldStart, h.OldLines), lineRange(h.NewStart, h.NewLines)))
	d.walk(h, p.text)
}

func lineRange(start, n int) string {
	if n == 1 {
		return fmt.Sprint(start)
	}
	return fmt.Sprintf("%d,%d", start, n)
}

// text prints one line of a hunk.
func (p *printer) text(op byte, line []byte) {
	body, ended := bytes.CutSuffix(line, newline)
	s := string(body)
	if p.o.escapes() {
		s = escape(s, "\t")
	}
	color := ""
	switch op {
	case '-':
		color = colorRed
	case '+':
		color = colorGreen
	}
	p.colored(color, string(op)+s)
	if !ended {
		p.line(`\ No newline at end of file`)
	}
}
