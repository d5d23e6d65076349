package workspace

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// top returns the keys of the document.
func (p *parser) top() keys {
	return keys{
		"sandbox":     func(n *yaml.Node) error { return p.mapping(n, "sandbox.", p.sandbox()) },
		"exec":        func(n *yaml.Node) error { return p.mapping(n, "exec.", p.exec()) },
		"limits":      func(n *yaml.Node) error { return p.mapping(n, "limits.", p.limits()) },
		"rules":       p.unsupported("rules"),
		"symlinks":    p.unsupported("symlinks", "allow"),
		"guard":       p.unsupported("guard"),
		"audit":       decode(p, "audit", &p.c.Audit, oneOf(AuditChanges, AuditOpens)),
		"profile":     decode(p, "profile", &p.c.Profile, oneOf(ProfileDefault, ProfilePOSIXFull)),
		"permissions": p.unsupported("permissions"),
		"retention":   func(n *yaml.Node) error { return p.mapping(n, "retention.", p.retention()) },
	}
}

func (p *parser) sandbox() keys {
	return keys{
		"paths":              p.paths,
		"network":            p.network,
		"require_os_sandbox": decode(p, "sandbox.require_os_sandbox", &p.c.Exec.RequireOSSandbox, nil),
	}
}

func (p *parser) limits() keys {
	return keys{
		"max_bytes":         p.unsupported("limits.max_bytes", "0"),
		"max_files":         p.unsupported("limits.max_files", "0"),
		"max_file_bytes":    p.unsupported("limits.max_file_bytes", "0"),
		"max_path_depth":    p.unsupported("limits.max_path_depth", "0"),
		"max_segment_chars": p.unsupported("limits.max_segment_chars", "255"),
		"ascii_names":       p.unsupported("limits.ascii_names", "false"),
		"max_write_chars":   p.unsupported("limits.max_write_chars", "0"),
		"mass_delete":       p.unsupported("limits.mass_delete"),
	}
}

func (p *parser) retention() keys {
	r := &p.c.Retention
	return keys{
		"age":     p.age("retention.age", &r.Age),
		"bytes":   p.size("retention.bytes", &r.Bytes),
		"records": decode(p, "retention.records", &r.Records, atLeast(int64(0))),
	}
}

// age reads a duration.
func (p *parser) age(key string, to *Age) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		v, err := ParseAge(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil {
			return p.errorf(n, "%s must be a duration such as 720h or 30d, not %q", key, n.Value)
		}
		*to = v
		return nil
	}
}

func (p *parser) exec() keys {
	e := &p.c.Exec
	runner := decode(p, "exec.runner", &e.Runner, oneOf("auto", "ns"))
	return keys{
		"runner":         runner,
		"execution_mode": runner,
		"workdir":        decode(p, "exec.workdir", &e.Workdir, absolute),
		"env":            decode(p, "exec.env", &e.Env, goodEnv),
		"pass_env":       decode(p, "exec.pass_env", &e.PassEnv, nil),
		"allow":          p.unsupported("exec.allow"),
		"deny":           p.unsupported("exec.deny"),
		"timeout":        decode(p, "exec.timeout", &e.Timeout, atLeast(Seconds(0))),
		"cpus":           decode(p, "exec.cpus", &e.CPUs, atLeast(0.0)),
		"memory":         p.size("exec.memory", &e.Memory),
		"pids":           decode(p, "exec.pids", &e.Pids, atLeast(0)),
		"tmpfs":          p.size("exec.tmpfs", &e.Tmpfs),
		"system":         p.unsupported("exec.system", "default"),
		"podman":         p.unsupported("exec.podman"),
	}
}

func absolute(s string) error {
	if !strings.HasPrefix(s, "/") {
		return errors.New("must be an absolute path")
	}
	return nil
}

func goodEnv(env map[string]string) error {
	for k, v := range env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.ContainsRune(v, 0) {
			return fmt.Errorf("has an impossible variable %q", k)
		}
	}
	return nil
}

// network reads sandbox.network. YAML's false means none.
func (p *parser) network(n *yaml.Node) error {
	switch {
	case isNull(n):
		return nil
	case n.Kind == yaml.SequenceNode:
		return p.errorf(n, "sandbox.network: a list of hosts is not supported yet").Hinted("use none or host")
	case n.Value == "false" || n.Value == "none":
		p.c.Exec.Network = "none"
	case n.Value == "host":
		p.c.Exec.Network = "host"
	default:
		return p.errorf(n, "sandbox.network must be false, none or host, not %q", n.Value)
	}
	return nil
}

// size reads a number of bytes with an optional unit.
func (p *parser) size(key string, to *int64) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		v, err := ParseSize(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil {
			return p.errorf(n, "%s must be a number of bytes such as 256MiB, not %q", key, n.Value)
		}
		*to = v
		return nil
	}
}

var sizeUnits = map[string]int64{
	"": 1, "B": 1, "K": 1 << 10, "KIB": 1 << 10, "M": 1 << 20, "MIB": 1 << 20, "G": 1 << 30, "GIB": 1 << 30,
	"T": 1 << 40, "TIB": 1 << 40, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
}

// ParseSize reads a number of bytes: digits and one of B, KiB, MiB, GiB, TiB,
// kB, MB, GB, TB, or K, M, G, T for the binary ones.
func ParseSize(s string) (int64, error) {
	digits := strings.TrimRight(s, "BbKkMmGgTtIi ")
	unit, ok := sizeUnits[strings.ToUpper(strings.TrimSpace(s[len(digits):]))]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !ok || n < 0 || n > (1<<62)/unit {
		return 0, fmt.Errorf("parse size %q: expected bytes such as 256MiB", s)
	}
	return n * unit, nil
}

// paths reads sandbox.paths.
func (p *parser) paths(n *yaml.Node) error {
	places := map[string]string{}
	return p.each(n, "sandbox.paths.", func(key, val *yaml.Node) error {
		src := Source{At: key.Value, Mode: "ro"}
		at := "sandbox.paths." + key.Value + "."
		if err := p.mapping(val, at, p.source(&src, at)); err != nil {
			return err
		}
		if src.Host == "" {
			return p.errorf(key, "%sroot is missing", at)
		}
		clean, err := cleanAt(src.At)
		if err != nil {
			return p.errorf(key, "%sat %v", at, err)
		}
		if other, dup := places[clean]; dup {
			return p.errorf(key, "%s and %s both show at %q", other, key.Value, clean)
		}
		places[clean], src.At = key.Value, clean
		p.c.Sources = append(p.c.Sources, src)
		return nil
	})
}

func (p *parser) source(s *Source, at string) keys {
	return keys{
		"root": func(n *yaml.Node) error {
			if err := decode(p, at+"root", &s.Host, nil)(n); err != nil {
				return err
			}
			if s.Host != "" && !filepath.IsAbs(s.Host) {
				s.Host = filepath.Join(p.dir, s.Host)
			}
			return nil
		},
		"at":              decode(p, at+"at", &s.At, nil),
		"mode":            decode(p, at+"mode", &s.Mode, oneOf("rw", "ro")),
		"kind":            p.unsupported(at+"kind", "live"),
		"suffixes":        p.unsupported(at + "suffixes"),
		"max_file_bytes":  p.unsupported(at+"max_file_bytes", "0"),
		"include":         p.unsupported(at + "include"),
		"exclude":         p.unsupported(at + "exclude"),
		"max_bytes":       p.unsupported(at+"max_bytes", "0"),
		"follow_symlinks": p.unsupported(at+"follow_symlinks", "false"),
		"create":          p.unsupported(at+"create", "false"),
		"write_approval":  p.unsupported(at+"write_approval", "false"),
		"read_approval":   p.unsupported(at+"read_approval", "false"),
	}
}
