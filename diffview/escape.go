package diffview

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes a name or message safe for one line of a terminal: control
// characters (C0, DEL, C1), line separators, bidirectional and other invisible
// characters, and bytes that are not UTF-8 are shown as \n, \t, \x1b, \u202e.
// A backslash stays as it is, so the result is for reading and can't be turned
// back; Quote can.
func Escape(s string) string { return escape(s, "") }

// EscapeText is Escape for text of several lines: newlines and TABs pass.
func EscapeText(s string) string { return escape(s, "\n\t") }

func escape(s, pass string) string {
	i := firstUnsafe(s, pass)
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:i])
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case safe(r, pass):
			b.WriteString(s[i : i+n])
		default:
			b.WriteString(escapeRune(r))
		}
		i += n
	}
	return b.String()
}

func firstUnsafe(s, pass string) int {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || !safe(r, pass) {
			return i
		}
		i += n
	}
	return len(s)
}

func safe(r rune, pass string) bool {
	return unicode.IsPrint(r) || strings.ContainsRune(pass, r)
}

func escapeRune(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}
