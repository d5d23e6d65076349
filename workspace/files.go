package workspace

import (
	"os"
	"strings"
)

// exists reports whether something has the path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// hasLine reports whether the text has the line, spaces around it aside.
func hasLine(text, line string) bool {
	for l := range strings.Lines(text) {
		if strings.TrimSpace(l) == line {
			return true
		}
	}
	return false
}
