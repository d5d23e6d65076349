package workspace

import (
	"fmt"

	"github.com/winkfs/winkfs/policy"
)

// readOnlySources refuses changes in sources whose mode is ro. It also refuses
// to move a directory that such a source lies in, since the rule goes by path.
type readOnlySources struct {
	sources []Source // with places in the tree's form
}

var _ policy.Decider = (*readOnlySources)(nil)

// newDecider returns what decides over a configuration's accesses.
func newDecider(cfg *Config) policy.Decider {
	d := &readOnlySources{}
	readOnly := false
	for _, s := range cfg.Sources {
		s.At = treeAt(s.At)
		d.sources = append(d.sources, s)
		readOnly = readOnly || s.Mode == "ro"
	}
	if !readOnly {
		return policy.AllowAll{}
	}
	return d
}

// Decide allows all but changes.
func (d *readOnlySources) Decide(q *policy.Request) policy.Decision {
	switch q.Op {
	case policy.OpLookup, policy.OpList, policy.OpRead, policy.OpReadlink:
		return policy.Decision{}
	}
	path := q.Path()
	if s := d.holder(path); s != nil && s.Mode == "ro" {
		return refuseChange(s)
	}
	if q.Op == policy.OpRename || q.Op == policy.OpUnlink {
		for i := range d.sources {
			if s := &d.sources[i]; s.Mode == "ro" && under(s.At, path) {
				return refuseChange(s)
			}
		}
	}
	return policy.Decision{}
}

// holder returns the source that a path lies in: the one with the longest
// place above it.
func (d *readOnlySources) holder(path string) *Source {
	var best *Source
	for i := range d.sources {
		s := &d.sources[i]
		if under(path, s.At) && (best == nil || len(s.At) > len(best.At)) {
			best = s
		}
	}
	return best
}

func refuseChange(s *Source) policy.Decision {
	return policy.Decision{
		Verdict: policy.ReadOnly, Rule: "mode: ro",
		Message: fmt.Sprintf("the source at /%s is read-only; write elsewhere in the workspace", s.At),
	}
}
