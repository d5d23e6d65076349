package workspace

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"
)

// Parent says which workspace a clone with changes was made of. The parent may
// be gone.
type Parent struct {
	ID   string `yaml:"id" json:"id"`
	Name string `yaml:"name,omitempty" json:"name,omitempty"`
	Seq  uint64 `yaml:"seq" json:"seq"` // the point whose state the clone began with
}

// CloneOptions say what Clone makes.
type CloneOptions struct {
	Name        string
	WithChanges bool   // an independent copy with history and changes, else a fresh workspace
	At          string // the point to begin with; "" = the present
	Policy      *Config
}

// Clone makes another workspace over the same sources. parent's operations are
// asked only for a clone with changes. After a crash there is a whole
// workspace or none.
func Clone(ctx context.Context, r *Registry, parent *Entry, ops Operations, o CloneOptions) (*Entry, error) {
	if err := r.checkName(o.Name); err != nil {
		return nil, err
	}
	cfg, err := parent.Config.derive(o.Policy)
	if err != nil {
		return nil, err
	}
	cfg.Name, cfg.Ephemeral, cfg.Parent = o.Name, false, nil
	if !o.WithChanges {
		return createOpened(r, cfg)
	}
	cfg.Parent = &Parent{ID: parent.ID, Name: parent.Name()}
	return r.birth(cfg, func(dir string) error {
		res, err := ops.Fork(ctx, &ForkRequest{Into: filepath.Base(dir), At: o.At})
		if err == nil {
			cfg.Parent.Seq = res.Seq
		}
		return err
	})
}

// createOpened makes a fresh workspace and opens it once, which journals where
// its sources show: from then on it can be looked at without a mount.
func createOpened(r *Registry, cfg *Config) (*Entry, error) {
	e, err := Create(r, cfg)
	if err != nil {
		return nil, err
	}
	w, err := Open(e, OpenOptions{Mode: ReadWrite})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, errors.Join(err, Remove(e))
	}
	return e, nil
}

// CloneResultOf returns the document about a new clone.
func CloneResultOf(e *Entry) *CloneResult {
	return &CloneResult{
		Schema: "winkfs.clone/v1", ID: e.ID, Name: e.Name(), StateDir: e.Dir, Sources: e.Config.Sources, Parent: e.Config.Parent,
	}
}

// derive returns a copy of the configuration under a policy, which may only
// narrow it. A nil policy changes nothing.
func (c *Config) derive(policy *Config) (*Config, error) {
	d := *c
	d.Sources = slices.Clone(c.Sources)
	d.Exec.Env, d.Exec.PassEnv = maps.Clone(c.Exec.Env), slices.Clone(c.Exec.PassEnv)
	if policy == nil {
		return &d, nil
	}
	if err := d.narrowSources(policy.Sources); err != nil {
		return nil, err
	}
	if err := wider(&c.Exec, &policy.Exec); err != "" {
		return nil, Fail(CodeRefused, "clone: the policy would widen %s of the parent", err).Hinted("a clone's policy can only be as strict as its parent's or stricter")
	}
	d.Exec = policy.Exec
	return &d, nil
}

// narrowSources takes over the modes of a policy's sources, which must be the
// workspace's own.
func (c *Config) narrowSources(policy []Source) error {
	for _, p := range policy {
		at, err := cleanAt(p.At)
		i := slices.IndexFunc(c.Sources, func(s Source) bool { return s.At == at && s.Host == resolved(p.Host) })
		switch {
		case err != nil:
			return Fail(CodeUsage, "clone: place source %s: %v", p.Host, err)
		case i < 0:
			return Fail(CodeRefused, "clone: the policy's source %s at %s is none of the parent's", p.Host, p.At).
				Hinted("a clone shows what its parent shows; leave the source out, or make a workspace of its own for it")
		case p.Mode == "rw" && c.Sources[i].Mode == "ro":
			return Fail(CodeRefused, "clone: the policy would make the source at %s writable, which is read-only in the parent", p.At)
		}
		c.Sources[i].Mode = p.Mode
	}
	return nil
}

// wider names the first limit that a policy would widen, "" if none.
func wider(parent, policy *ExecConfig) string {
	above := func(limit, asked float64) bool { return limit > 0 && (asked == 0 || asked > limit) }
	switch {
	case parent.Network == "none" && policy.Network != "none":
		return "the network"
	case parent.RequireOSSandbox && !policy.RequireOSSandbox:
		return "require_os_sandbox"
	case above(float64(parent.Timeout), float64(policy.Timeout)):
		return "exec.timeout"
	case above(parent.CPUs, policy.CPUs):
		return "exec.cpus"
	case above(float64(parent.Memory), float64(policy.Memory)):
		return "exec.memory"
	case above(float64(parent.Pids), float64(policy.Pids)):
		return "exec.pids"
	case above(float64(parent.Tmpfs), float64(policy.Tmpfs)):
		return "exec.tmpfs"
	case slices.ContainsFunc(policy.PassEnv, func(name string) bool { return !slices.Contains(parent.PassEnv, name) }):
		return "exec.pass_env"
	}
	return ""
}

// LoadPolicy reads a configuration file whose keys count over those of the
// workspace.
func (e *Entry) LoadPolicy(file string) (*Config, error) {
	base := DefaultConfig()
	b, err := yaml.Marshal(e.Config.Exec)
	if err == nil {
		err = yaml.Unmarshal(b, &base.Exec)
	}
	if err != nil {
		return nil, Wrap(CodeCorrupt, err, "copy configuration")
	}
	return loadOver(base, file)
}
