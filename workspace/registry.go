package workspace

import (
	"cmp"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	dirPrefix  = "wink-"
	configFile = "workspace.yaml"
)

// StateRoot returns the directory that holds all workspaces: the flag's value,
// else WINKFS_STATE_DIR, else the XDG state home.
func StateRoot(flag string, getenv func(string) string) (string, error) {
	for _, dir := range []string{flag, getenv("WINKFS_STATE_DIR")} {
		if dir != "" {
			return filepath.Abs(dir)
		}
	}
	if xdg := getenv("XDG_STATE_HOME"); filepath.IsAbs(xdg) {
		return filepath.Join(xdg, "winkfs"), nil
	}
	home := getenv("HOME")
	if !filepath.IsAbs(home) {
		return "", Fail(CodeUsage, "choose state directory: HOME is not set").
			Hinted("name one by --state-dir or WINKFS_STATE_DIR")
	}
	return filepath.Join(home, ".local", "state", "winkfs"), nil
}

// Registry is the set of workspaces below one state root. It keeps nothing in
// memory: every call reads the directory.
type Registry struct{ root string }

// NewRegistry returns the registry of a state root, which need not exist.
func NewRegistry(root string) *Registry { return &Registry{root: root} }

// Root returns the state root.
func (r *Registry) Root() string { return r.root }

// Entry is one workspace as the registry sees it, without opening it.
type Entry struct {
	ID      string
	Dir     string
	Config  *Config  // nil when Err is set
	Runtime *Runtime // zero when it was never mounted
	Live    bool     // a daemon answers on its socket
	Err     error    // why it can't be read
}

// Name returns the workspace's name, or "".
func (e *Entry) Name() string {
	if e.Config == nil {
		return ""
	}
	return e.Config.Name
}

// Mountpoint returns where the workspace is mounted or was mounted last.
func (e *Entry) Mountpoint() string {
	if e.Runtime == nil {
		return ""
	}
	return e.Runtime.Mountpoint
}

// List returns all workspaces, oldest first. Directories that were never
// completed are left out.
func (r *Registry) List() ([]*Entry, error) {
	names, err := os.ReadDir(r.root)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	var out []*Entry
	for _, n := range names {
		if !n.IsDir() || !strings.HasPrefix(n.Name(), dirPrefix) {
			continue
		}
		if e := r.load(n.Name()); e != nil {
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b *Entry) int {
		return cmp.Or(created(a).Compare(created(b).Time), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

func created(e *Entry) Time {
	if e.Config == nil {
		return Time{}
	}
	return e.Config.Created
}

// load reads one workspace's directory; nil when it was never completed.
func (r *Registry) load(name string) *Entry {
	e := &Entry{ID: strings.TrimPrefix(name, dirPrefix), Dir: filepath.Join(r.root, name)}
	e.Config, e.Err = loadFrozen(e.Dir)
	if errors.Is(e.Err, iofs.ErrNotExist) {
		return nil
	}
	e.Runtime = loadRuntime(e.Dir)
	e.Live = socketAnswers(e.Dir)
	return e
}

// Find returns the workspace that ref names: by id, name, mount point or a
// prefix of the id that fits only one.
func (r *Registry) Find(ref string) (*Entry, error) {
	all, err := r.List()
	if err != nil {
		return nil, err
	}
	if ref == "" {
		return nil, unknownError(`""`, all)
	}
	for _, match := range matchers(ref) {
		var found []*Entry
		for _, e := range all {
			if match(e) {
				found = append(found, e)
			}
		}
		switch len(found) {
		case 0:
			continue
		case 1:
			return found[0], usable(found[0])
		default:
			return nil, Fail(CodeUnknown, "workspace %q is ambiguous", ref).Hinted("it fits %s", describe(found))
		}
	}
	return nil, unknownError(fmt.Sprintf("%q", ref), all)
}

// matchers returns the ways to read a reference, the strictest first.
func matchers(ref string) []func(*Entry) bool {
	id := strings.TrimPrefix(ref, dirPrefix)
	path, err := filepath.Abs(ref)
	if err == nil {
		path = resolved(path)
	}
	return []func(*Entry) bool{
		func(e *Entry) bool { return e.ID == id },
		func(e *Entry) bool { return e.Name() == ref },
		func(e *Entry) bool { return e.Live && err == nil && e.Mountpoint() == path },
		func(e *Entry) bool { return err == nil && e.Mountpoint() == path },
		func(e *Entry) bool { return id != "" && strings.HasPrefix(e.ID, id) },
	}
}

// Default returns the workspace meant when none is named: the one whose mount
// holds dir, else the only live one.
func (r *Registry) Default(dir string) (*Entry, error) {
	all, err := r.List()
	if err != nil {
		return nil, err
	}
	var live []*Entry
	for _, e := range all {
		if !e.Live {
			continue
		}
		if m := e.Mountpoint(); m != "" && within(resolved(dir), m) {
			return e, usable(e)
		}
		live = append(live, e)
	}
	if len(live) == 1 {
		return live[0], usable(live[0])
	}
	e := Fail(CodeUnknown, "choose workspace: %d are mounted, name one with -w", len(live))
	return nil, e.Hinted("%s", describe(all))
}

func usable(e *Entry) error {
	if e.Err == nil {
		return nil
	}
	return fmt.Errorf("open workspace %s: %w", e.ID, e.Err)
}

func unknownError(ref string, all []*Entry) error {
	return Fail(CodeUnknown, "find workspace: there is none called %s", ref).Hinted("%s", describe(all))
}

func describe(all []*Entry) string {
	if len(all) == 0 {
		return "there are no workspaces; `winkfs mount SOURCE MOUNTPOINT` makes one"
	}
	var b strings.Builder
	b.WriteString("workspaces:")
	for _, e := range all {
		fmt.Fprintf(&b, " %s", e.ID)
		if n := e.Name(); n != "" {
			fmt.Fprintf(&b, " (%s)", n)
		}
	}
	return b.String()
}

// NewID returns a fresh workspace id.
func NewID() string {
	var b [5]byte
	rand.Read(b[:])
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}

// within reports whether path is dir or lies below it. Both are clean and
// absolute.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// resolved returns path without symbolic links as far as it exists.
func resolved(path string) string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolved(parent), filepath.Base(path))
}
