package diffview

import "strings"

const quoteLetters = "abtnvfr" // of the bytes 7 to 13

// Quote returns the name as git writes it: unchanged, or in double quotes with
// C escapes when it holds control characters, quotes, backslashes or bytes
// outside ASCII.
func Quote(name string) string {
	if !needsQuote(name) {
		return name
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(name); i++ {
		quoteByte(&b, name[i])
	}
	b.WriteByte('"')
	return b.String()
}

func needsQuote(name string) bool {
	for i := 0; i < len(name); i++ {
		if c := name[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return true
		}
	}
	return false
}

func quoteByte(b *strings.Builder, c byte) {
	switch {
	case c >= 7 && c <= 13:
		b.WriteByte('\\')
		b.WriteByte(quoteLetters[c-7])
	case c == '"' || c == '\\':
		b.WriteByte('\\')
		b.WriteByte(c)
	case c < ' ' || c >= 0x7f:
		b.WriteByte('\\')
		b.WriteByte('0' + c>>6)
		b.WriteByte('0' + c>>3&7)
		b.WriteByte('0' + c&7)
	default:
		b.WriteByte(c)
	}
}

// label returns the name for a ---/+++ line. A name with a space gets a
// trailing TAB, so that a reader knows where it ends.
func label(prefix, path string) string {
	s := Quote(prefix + path)
	if strings.Contains(s, " ") {
		s += "\t"
	}
	return s
}
