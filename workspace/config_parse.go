package workspace

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"bytes"

	"gopkg.in/yaml.v3"
)

// ParseConfig reads a configuration document. file is its name for messages;
// host paths in it count from the file's directory. Every error names
// file:line:column.
func ParseConfig(file string, data []byte) (*Config, error) {
	return parseOver(DefaultConfig(), file, data)
}

// parseOver reads a document whose keys count over those of c.
func parseOver(c *Config, file string, data []byte) (*Config, error) {
	p := &parser{file: file, dir: filepath.Dir(file), c: c}
	root, err := p.document(data)
	if err != nil || root == nil {
		return p.c, err
	}
	return p.c, p.mapping(root, "", p.top())
}

// LoadConfig reads a configuration file.
func LoadConfig(file string) (*Config, error) { return loadOver(DefaultConfig(), file) }

func loadOver(c *Config, file string) (*Config, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, Wrap(CodeConfig, err, "read configuration")
	}
	data, err := os.ReadFile(abs)
	if err != nil {
		return nil, Wrap(CodeConfig, err, "read configuration").At(file)
	}
	return parseOver(c, abs, data)
}

// parser reads one document into a Config.
type parser struct {
	file, dir string
	c         *Config
}

// keys maps the keys of a mapping to what reads their values.
type keys map[string]func(*yaml.Node) error

func (p *parser) document(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, p.syntax(err)
	}
	var more yaml.Node
	if err := dec.Decode(&more); err == nil {
		return nil, p.errorf(&more, "a second document; a configuration has one")
	} else if !errors.Is(err, io.EOF) {
		return nil, p.syntax(err)
	}
	return doc.Content[0], nil
}

var yamlLine = regexp.MustCompile(`^yaml: (?:unmarshal errors:\s*)?line (\d+): (.*)`)

// syntax brings an error of the YAML reader, which knows only lines, into the
// form of the others.
func (p *parser) syntax(err error) error {
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		return Fail(CodeConfig, "%s:%s:1: %s", p.file, m[1], m[2]).At(p.file)
	}
	return Fail(CodeConfig, "%s:1:1: %s", p.file, strings.TrimPrefix(err.Error(), "yaml: ")).At(p.file)
}

func (p *parser) errorf(n *yaml.Node, format string, args ...any) *Error {
	return Fail(CodeConfig, "%s:%d:%d: %s", p.file, n.Line, n.Column, fmt.Sprintf(format, args...)).At(p.file)
}

// mapping reads a mapping whose keys are all known and occur once.
func (p *parser) mapping(n *yaml.Node, at string, known keys) error {
	return p.each(n, at, func(key, val *yaml.Node) error {
		read := known[key.Value]
		if read == nil {
			return p.errorf(key, "unknown key %q", at+key.Value).
				Hinted("known here: %s", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		return read(val)
	})
}

// each calls fn for every pair of a mapping and refuses duplicates, anchors
// and merge keys.
func (p *parser) each(n *yaml.Node, at string, fn func(key, val *yaml.Node) error) error {
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return p.errorf(n, "%s must be a mapping", named(at))
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Value == "<<" || val.Kind == yaml.AliasNode {
			return p.errorf(key, "aliases, merge keys and keys that are not plain words are not allowed")
		}
		if seen[key.Value] {
			return p.errorf(key, "key %q occurs twice", at+key.Value)
		}
		seen[key.Value] = true
		if err := fn(key, val); err != nil {
			return err
		}
	}
	return nil
}

func named(at string) string {
	if at == "" {
		return "the document"
	}
	return strings.TrimSuffix(at, ".")
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// unsupported refuses a key that would restrict something in a way that this
// version doesn't enforce. Values that restrict nothing pass.
func (p *parser) unsupported(key string, harmless ...string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if isNull(n) || (n.Kind != yaml.ScalarNode && len(n.Content) == 0) {
			return nil
		}
		if n.Kind == yaml.ScalarNode && slices.Contains(harmless, n.Value) {
			return nil
		}
		return p.errorf(n, "%s is not supported yet and would not be enforced", key).Hinted("remove the key, or wait for a version that enforces it")
	}
}

// decode reads a scalar or list into a value of a plain type.
func decode[T any](p *parser, key string, to *T, check func(T) error) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		var v T
		if n.Kind == yaml.AliasNode {
			return p.errorf(n, "aliases are not allowed")
		}
		if err := n.Decode(&v); err != nil {
			return p.errorf(n, "%s has the wrong type: expected %s", key, typeName(v))
		}
		if check != nil {
			if err := check(v); err != nil {
				return p.errorf(n, "%s %v", key, err)
			}
		}
		*to = v
		return nil
	}
}

func typeName(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case bool:
		return "true or false"
	case int, int64:
		return "a whole number"
	case float64, Seconds:
		return "a number"
	case []string:
		return "a list of strings"
	case map[string]string:
		return "a mapping of strings"
	}
	return fmt.Sprintf("%T", v)
}

func oneOf(words ...string) func(string) error {
	return func(s string) error {
		if slices.Contains(words, s) {
			return nil
		}
		return fmt.Errorf("must be one of %s, not %q", strings.Join(words, ", "), s)
	}
}

func atLeast[T int | int64 | float64 | Seconds](least T) func(T) error {
	return func(v T) error {
		if v < least {
			return fmt.Errorf("must be at least %v", least)
		}
		return nil
	}
}

// cleanAt checks a place in the workspace and brings it into the form "/" or
// "a/b".
func cleanAt(at string) (string, error) {
	if strings.ContainsRune(at, 0) || slices.Contains(strings.Split(at, "/"), "..") {
		return "", fmt.Errorf("must be a path inside the workspace, not %q", at)
	}
	at = strings.TrimPrefix(path.Clean("/"+at), "/workspace")
	if at = strings.Trim(at, "/"); at == "" {
		return "/", nil
	}
	return at, nil
}
