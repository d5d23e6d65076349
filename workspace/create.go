package workspace

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/winkfs/winkfs/journal"
)

// maxName is the length of the longest name of a workspace, in bytes.
const maxName = 64

var goodName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Create makes a workspace with the configuration, which it completes and
// freezes. After a crash there is a whole workspace or none.
func Create(r *Registry, cfg *Config) (*Entry, error) {
	if err := r.checkName(cfg.Name); err != nil {
		return nil, err
	}
	if err := cfg.Resolve(r.root); err != nil {
		return nil, err
	}
	return r.birth(cfg, func(dir string) error {
		store, err := journal.Create(dir, journal.Options{})
		if err != nil {
			return err
		}
		return store.Close()
	})
}

// birth makes the state directory of a new workspace: populate makes the
// journal in it.
func (r *Registry) birth(cfg *Config, populate func(dir string) error) (*Entry, error) {
	cfg.ID, cfg.Created = NewID(), Time{time.Now().UTC()}
	b, err := r.begin(dirPrefix + cfg.ID)
	if err != nil {
		return nil, err
	}
	if err = populate(b.dir); err == nil {
		err = b.end(cfg)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create workspace: %w", err), b.abandon())
	}
	return &Entry{ID: cfg.ID, Dir: b.dir, Config: cfg, Runtime: &Runtime{}}, nil
}

// checkName refuses names that could be mistaken for something else.
func (r *Registry) checkName(name string) error {
	if name == "" {
		return nil
	}
	if len(name) > maxName || !goodName.MatchString(name) {
		return Fail(CodeUsage, "name workspace %q: names have letters, digits, '.', '_' and '-', at most 64, and begin with a letter or digit", name)
	}
	all, err := r.List()
	if err != nil {
		return err
	}
	for _, e := range all {
		if e.Name() == name || e.ID == name {
			return Fail(CodeUsage, "name workspace %q: the name is taken by %s", name, e.ID).
				Hinted("choose another, or go on with that one: winkfs mount -w %s MOUNTPOINT", name)
		}
	}
	return nil
}

// Resolve checks the sources and brings their paths and places into the form
// that is kept. root is the state root.
func (c *Config) Resolve(root string) error {
	if len(c.Sources) == 0 {
		return Fail(CodeUsage, "create workspace: there is no source")
	}
	var places []string
	for i := range c.Sources {
		s := &c.Sources[i]
		host, err := sourceDir(s.Host)
		if err != nil {
			return err
		}
		s.Host = host
		for j := range s.Below {
			if s.Below[j], err = sourceDir(s.Below[j]); err != nil {
				return err
			}
		}
		if s.At == "" {
			s.At = filepath.Base(host)
		}
		at, err := cleanAt(s.At)
		if err != nil {
			return Fail(CodeUsage, "place source %s: %v", s.Host, err)
		}
		if slices.Contains(places, at) {
			return Fail(CodeUsage, "place source %s: %q is taken by another source", s.Host, at)
		}
		s.At = at
		places = append(places, at)
	}
	if n := len(c.dirs()); n > maxDirs {
		return Fail(CodeUsage, "create workspace: %d source directories; at most %d are possible", n, maxDirs)
	}
	return errors.Join(c.checkProfile(), c.checkStateRoot(root))
}

// maxDirs bounds the host directories of a workspace: node numbers have six bits
// for the source.
const maxDirs = 64

// sourceDir returns the absolute path of a source without symbolic links.
func sourceDir(host string) (string, error) {
	abs, err := filepath.Abs(host)
	if err != nil {
		return "", Wrap(CodeUsage, err, "find source %s", host)
	}
	real, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, iofs.ErrNotExist) {
		return "", Fail(CodeUsage, "find source: %s does not exist", host).At(host).Hinted("make the directory first")
	}
	if err != nil {
		return "", Wrap(CodeUsage, err, "find source").At(host)
	}
	fi, err := os.Stat(real)
	if err != nil {
		return "", Wrap(CodeUsage, err, "find source").At(host)
	}
	if !fi.IsDir() {
		return "", Fail(CodeUsage, "find source: %s is not a directory", host).At(host)
	}
	return real, nil
}

// systemDirs are never the source of a run.
var systemDirs = []string{"/", "/proc", "/sys", "/dev"}

// RunSource returns the directory that a run works over, and refuses those
// that make no sense.
func RunSource(dir string) (string, error) {
	real, err := sourceDir(dir)
	if err != nil {
		return "", err
	}
	for _, d := range systemDirs {
		if real == d || d != "/" && within(real, d) {
			return "", Fail(CodeUsage, "run over %s: it belongs to the system", real).Hinted("change to a project's directory, or name one by --source")
		}
	}
	return real, nil
}
