package workspace

import (
	"os"
	"path/filepath"
	"strings"
)

// ForkInfo is a clone with changes, as its parent's status shows it.
type ForkInfo struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Seq  uint64 `json:"seq"` // the point that it began with
}

// forks returns the clones with changes that were made of the workspace and
// are still there.
func (w *Workspace) forks() []ForkInfo {
	out := []ForkInfo{}
	names, err := os.ReadDir(w.root())
	if err != nil {
		return out
	}
	for _, n := range names {
		if !strings.HasPrefix(n.Name(), dirPrefix) {
			continue
		}
		cfg, err := loadFrozen(filepath.Join(w.root(), n.Name()))
		if err == nil && cfg.Parent != nil && cfg.Parent.ID == w.entry.ID {
			out = append(out, ForkInfo{ID: cfg.ID, Name: cfg.Name, Seq: cfg.Parent.Seq})
		}
	}
	return out
}
