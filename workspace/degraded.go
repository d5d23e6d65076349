package workspace

import (
	"fmt"
)

// Degraded lists what works worse than it could in the mount, and why.
func (w *Workspace) Degraded() []string {
	m, err := w.mount()
	if err != nil {
		return nil
	}
	return w.degraded(m)
}

// degraded lists what works worse than it could, and why.
func (w *Workspace) degraded(m *mounted) []string {
	out := append([]string{}, m.Degraded()...)
	if w.watcher == nil {
		out = append(out, "inotify is not to be had: edits on the host show after a second")
	} else {
		out = append(out, w.watcher.Degraded()...)
	}
	out = append(out, w.lostSources()...)
	if len(w.cfg.dirs()) > len(w.cfg.Sources) {
		out = append(out, "directories that are merged of several sources are not watched: edits on the host show after a second there")
	}
	for _, l := range w.host().Layers {
		if !l.OK {
			out = append(out, l.Name+": "+l.Detail)
		}
	}
	return out
}

// lostSources names the sources whose place on the host leads elsewhere than to
// the directory that the workspace has.
func (w *Workspace) lostSources() (out []string) {
	for i, dir := range w.cfg.numbered() {
		root := w.low.Root(uint32(i + 1))
		if root == nil {
			continue
		}
		same, err := root.IsAt(dir)
		switch {
		case err != nil:
			out = append(out, fmt.Sprintf("the source %q is gone from the host (%v): the workspace shows what is left of it", dir, err))
		case !same:
			out = append(out, fmt.Sprintf("the source %q is another directory on the host by now: unmount and mount again to follow it", dir))
		}
	}
	return out
}

// numbered returns the host directories in the order of their numbers in the
// lower, which openSources gives them.
func (c *Config) numbered() []string {
	var all, below []string
	for _, s := range c.Sources {
		all, below = append(all, s.Host), append(below, s.Below...)
	}
	return append(all, below...)
}
