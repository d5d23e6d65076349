package workspace

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"gopkg.in/yaml.v3"
)

// configVersion is the version of workspace.yaml that this program writes.
const configVersion = 1

// Config is the effective configuration of a workspace. It is decided once, at
// creation, and never changes.
type Config struct {
	Version   int        `yaml:"version" json:"version"`
	ID        string     `yaml:"id" json:"id"`
	Name      string     `yaml:"name,omitempty" json:"name,omitempty"`
	Created   Time       `yaml:"created" json:"created"`
	Ephemeral bool       `yaml:"ephemeral,omitempty" json:"ephemeral,omitempty"`
	Profile   string     `yaml:"profile,omitempty" json:"profile,omitempty"` // see ProfileDefault, ProfilePOSIXFull; "" = default
	Audit     string     `yaml:"audit,omitempty" json:"audit,omitempty"`     // AuditChanges or AuditOpens; "" = changes
	Sources   []Source   `yaml:"sources" json:"sources"`
	Exec      ExecConfig `yaml:"exec" json:"exec"`
	Retention Retention  `yaml:"retention" json:"retention"`
	Parent    *Parent    `yaml:"parent,omitempty" json:"parent,omitempty"` // of a clone with changes
}

// What is journaled.
const (
	AuditChanges = "changes" // what changes files, and what is refused
	AuditOpens   = "opens"   // and each exec's first opening of each file
)

// Source is one host directory and where it shows in the workspace.
type Source struct {
	Host string `yaml:"host" json:"host"` // absolute, without symbolic links
	At   string `yaml:"at" json:"at"`     // slash path below the root, "/" = the root itself
	Mode string `yaml:"mode" json:"mode"` // rw or ro
	// Below are further directories that show under Host, the next one first,
	// merged as the layers of a union mount are.
	Below []string `yaml:"below,omitempty" json:"below,omitempty"`
}

// dirs returns the source's host directories, the uppermost first.
func (s *Source) dirs() []string { return append([]string{s.Host}, s.Below...) }

// dirs returns the host directories of all sources.
func (c *Config) dirs() []string {
	var all []string
	for i := range c.Sources {
		all = append(all, c.Sources[i].dirs()...)
	}
	return all
}

// ExecConfig is how commands run in the workspace unless a request says
// otherwise.
type ExecConfig struct {
	Runner           string            `yaml:"runner" json:"runner"`
	Workdir          string            `yaml:"workdir" json:"workdir"`
	Env              map[string]string `yaml:"env,omitempty" json:"env,omitempty"`
	PassEnv          []string          `yaml:"pass_env,omitempty" json:"pass_env,omitempty"`
	Timeout          Seconds           `yaml:"timeout" json:"timeout"` // 0 = no limit
	CPUs             float64           `yaml:"cpus" json:"cpus"`
	Memory           int64             `yaml:"memory" json:"memory"`
	Pids             int               `yaml:"pids" json:"pids"`
	Tmpfs            int64             `yaml:"tmpfs" json:"tmpfs"`
	Network          string            `yaml:"network" json:"network"` // none or host
	RequireOSSandbox bool              `yaml:"require_os_sandbox" json:"require_os_sandbox"`
}

// Seconds is a duration that is written as a number of seconds.
type Seconds float64

// Duration returns the value as a time.Duration.
func (s Seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// DefaultConfig returns the configuration of a workspace that nothing was said
// about, without sources.
func DefaultConfig() *Config {
	return &Config{
		Version:   configVersion,
		Retention: Retention{Age: Age(720 * time.Hour), Bytes: 20 << 30},
		Exec: ExecConfig{
			Runner: "auto", Workdir: "/workspace",
			Env: map[string]string{"LANG": "C.UTF-8"}, PassEnv: []string{"TERM"},
			Timeout: 30, CPUs: 1, Memory: 1 << 30, Pids: 256, Tmpfs: 256 << 20,
			Network: "none",
		},
	}
}

// freeze writes the configuration into a new state directory. The workspace
// exists once it returns.
func (c *Config) freeze(dir string) error {
	b, err := yaml.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode configuration: %w", err)
	}
	return writeFile(dir, configFile, b)
}

func loadFrozen(dir string) (*Config, error) {
	path := filepath.Join(dir, configFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	c := &Config{}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	if err := dec.Decode(c); err != nil {
		return nil, Wrap(CodeCorrupt, err, "read %s", path)
	}
	if c.Version > configVersion {
		return nil, Fail(CodeFailure, "read %s: version %d is newer than this program knows (%d)", path, c.Version, configVersion).
			Hinted("use the winkfs that created the workspace, or a newer one")
	}
	return c, nil
}
