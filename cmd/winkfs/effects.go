package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/winkfs/winkfs/workspace"
)

// writeEffects lists changed paths, one a line, with git's letters.
func writeEffects(w io.Writer, c *workspace.EffectSet) {
	for _, p := range c.Created {
		fmt.Fprintf(w, "A %s\n", printable(p))
	}
	for _, p := range c.Modified {
		fmt.Fprintf(w, "M %s\n", printable(p))
	}
	for _, p := range c.Deleted {
		fmt.Fprintf(w, "D %s\n", printable(p))
	}
	for _, r := range c.Renamed {
		fmt.Fprintf(w, "R %s -> %s\n", printable(r.From), printable(r.To))
	}
}

// effectsLine sums up what a command did in one line.
func effectsLine(res *workspace.ExecResult) string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(len(res.Changes.Created), "created")
	add(len(res.Changes.Modified), "modified")
	add(len(res.Changes.Deleted), "deleted")
	add(len(res.Changes.Renamed), "renamed")
	add(len(res.Denied), "refused")
	if len(parts) == 0 {
		parts = []string{"no changes"}
	}
	line := fmt.Sprintf("[exec:%d] %s", res.Exec, strings.Join(parts, ", "))
	if res.RolledBack {
		line += "; rolled back"
	}
	return line
}
