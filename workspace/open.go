package workspace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/actor"
	"github.com/winkfs/winkfs/exec"
	"github.com/winkfs/winkfs/fs/lower"
	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/hydrate"
	"github.com/winkfs/winkfs/journal"
)

// OpenMode says what a workspace is opened for.
type OpenMode uint8

// Modes of Open.
const (
	ReadOnly  OpenMode = iota // to look; changes nothing on disk
	ReadWrite                 // to change history without a mount
	Serving                   // to mount it
)

// OpenOptions are the settings of Open.
type OpenOptions struct {
	Mode    OpenMode
	Logger  *slog.Logger      // nil = silent
	OnWrite func(kind string) // called before each write to the state directory, for crash tests
	// Detach leaves the mount that the state directory lies on free, also while
	// not all is written down yet. It is done where the process may.
	Detach bool
}

// lowerFDs bounds the descriptors kept open on the sources.
const lowerFDs = 512

// How long Open waits for another process to let go: a command does what it
// does in that time, and a daemon that was just unmounted writes down the rest.
const (
	lockWait      = 3 * time.Second
	lockWaitServe = 30 * time.Second
)

func (m OpenMode) lockWait() time.Duration {
	if m == Serving {
		return lockWaitServe
	}
	return lockWait
}

// Workspace is an open workspace. Its methods are safe for concurrent use.
type Workspace struct {
	entry *Entry
	cfg   *Config
	log   *slog.Logger
	mode  OpenMode

	store   *journal.Store
	state   *journal.State // of a ReadOnly workspace, which nobody changes
	tree    *tree.Tree
	low     *lower.FS
	sources []tree.Source
	watcher *hydrate.Watcher // nil unless Serving
	actors  *actor.Resolver  // nil unless Serving
	host    func() exec.Host // probed at the first use

	admin sync.Mutex // see the package comment

	detached *detached // nil if the state directory is reached by its path

	stopKeeping func() // ends keepRetention; nil unless Serving

	mu       sync.Mutex
	mnt      *mounted                  // protected by mu; set once by Mount
	runtime  Runtime                   // protected by mu
	nextExec journal.ExecID            // protected by mu
	running  map[*runningExec]struct{} // protected by mu
	pasts    []*pastMount              // protected by mu
	ended    bool                      // protected by mu; no command may start any more
	closed   bool                      // protected by mu
}

var _ Operations = (*Workspace)(nil)

// Open opens a workspace. Only one process may have it open for writing.
func Open(e *Entry, o OpenOptions) (*Workspace, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	w := &Workspace{
		entry: e, cfg: e.Config, log: o.Logger, mode: o.Mode, runtime: *e.Runtime,
		running: map[*runningExec]struct{}{}, host: sync.OnceValue(probeHost),
	}
	low, sources, err := openSources(w.cfg)
	if err != nil {
		return nil, err
	}
	if o.Detach {
		if w.detached, err = detach(e); err != nil {
			w.log.Info("state directory keeps its file system busy", "err", err)
		}
	}
	w.store, err = journal.Open(w.StateDir(), journal.Options{
		ReadOnly: o.Mode == ReadOnly, Logger: o.Logger, OnWrite: o.OnWrite, LockTimeout: o.Mode.lockWait(),
	})
	if err != nil {
		low.Close()
		return nil, journalError(e, err)
	}
	if err := w.build(low, sources); err != nil {
		low.Close()
		return nil, errors.Join(err, w.store.Close())
	}
	return w, nil
}

// build makes the tree over the open store and sources.
func (w *Workspace) build(low *lower.FS, sources []tree.Source) error {
	w.low, w.sources = low, sources
	w.state = w.store.State()
	w.nextExec = w.state.NextExec
	cfg := tree.Config{
		Store: w.store, State: w.state, Lower: low, Sources: sources, StateDir: w.entry.Dir,
		Logger: w.log, ReadOnly: w.mode == ReadOnly, Decider: newDecider(w.cfg), Profile: w.cfg.profile(),
	}
	if w.mode == Serving {
		w.actors = actor.New()
		cfg.Actors = w.actors
		watcher, err := hydrate.NewWatcher(hydrate.Options{Logger: w.log})
		if err != nil {
			w.log.Warn("host's edits are seen late", "err", err)
		} else {
			w.watcher, cfg.Watcher = watcher, watcher
		}
	}
	var err error
	if w.tree, err = tree.New(cfg); err != nil {
		return fmt.Errorf("open workspace %s: %w", w.entry.ID, err)
	}
	if w.mode == ReadOnly {
		return nil
	}
	w.state = nil // the tree's
	if w.mode == Serving {
		ctx, stop := context.WithCancel(context.Background())
		w.stopKeeping = stop
		go w.keepRetention(ctx)
	}
	return w.recoverApply()
}

// openSources opens the source directories.
func openSources(cfg *Config) (*lower.FS, []tree.Source, error) {
	low := lower.New(lowerFDs)
	var sources []tree.Source
	// The sources themselves come first, so that their numbers are their places
	// in the configuration.
	for _, s := range cfg.Sources {
		if err := openSource(s.Host, low.Add); err != nil {
			low.Close()
			return nil, nil, err
		}
		sources = append(sources, tree.Source{At: treeAt(s.At), ReadOnly: s.Mode == "ro"})
	}
	for i, s := range cfg.Sources {
		under := func(fd int) (*lower.Dir, error) { return low.AddBelow(low.Root(uint32(i+1)), fd) }
		for _, dir := range s.Below {
			if err := openSource(dir, under); err != nil {
				low.Close()
				return nil, nil, err
			}
		}
	}
	return low, sources, nil
}

// openSource opens one host directory and hands it over.
func openSource(dir string, add func(fd int) (*lower.Dir, error)) error {
	fd, err := lower.OpenSource(dir)
	if err == nil {
		if _, err = add(fd); err != nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		return Wrap(CodeFailure, err, "open source %s", dir).At(dir).
			Hinted("bring the directory back; the workspace's changes are safe in its journal")
	}
	return nil
}

// treeAt is the tree's form of a place: "" for the root.
func treeAt(at string) string {
	if at == "/" {
		return ""
	}
	return at
}

// journalError gives the errors of the journal their codes and what to do.
func journalError(e *Entry, err error) error {
	var corrupt *journal.CorruptError
	switch {
	case errors.Is(err, journal.ErrLocked):
		return Wrap(CodeFailure, err, "open workspace %s", e.ID).Hinted("another winkfs works on it; try again when it is done")
	case errors.Is(err, journal.ErrNewerFormat):
		return Wrap(CodeFailure, err, "open workspace %s", e.ID).Hinted("use the winkfs that wrote it, or a newer one")
	case errors.Is(err, journal.ErrOlderFormat):
		return Wrap(CodeFailure, err, "open workspace %s", e.ID).Hinted("use the winkfs that wrote it")
	case errors.As(err, &corrupt):
		return Wrap(CodeCorrupt, err, "open workspace %s", e.ID).At(corrupt.File).Hinted("`winkfs verify %s` says what is readable", e.ID)
	}
	return fmt.Errorf("open workspace %s: %w", e.ID, err)
}

// Close closes the workspace. What was changed is durable on return. It does
// not unmount: see Shutdown.
func (w *Workspace) Close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	w.mu.Unlock()
	w.endPasts()
	var errs []error
	if w.stopKeeping != nil {
		w.stopKeeping()
	}
	if w.watcher != nil {
		errs = append(errs, w.watcher.Close())
	}
	if w.actors != nil {
		w.actors.Close()
	}
	errs = append(errs, w.store.Close())
	w.tree.Close()
	if w.detached != nil {
		w.detached.close()
	}
	if w.mode == Serving && w.cfg.Ephemeral {
		errs = append(errs, Remove(w.entry))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close workspace %s: %w", w.entry.ID, err)
	}
	return nil
}

// read calls fn with the state as it is. fn must not keep or change it.
func (w *Workspace) read(fn func(*journal.State)) error {
	if w.mode == ReadOnly {
		fn(w.state)
		return nil
	}
	_, err := w.tree.Commit(nil, func(s *journal.State) (*journal.Record, error) {
		fn(s)
		return nil, nil
	})
	return err
}

// viewOf returns the view of a state, which is the view's from then on.
func (w *Workspace) viewOf(s *journal.State) *tree.View {
	return tree.NewView(s, w.low, w.sources, w.store)
}

// person is the actor of what a person does by a command.
func (w *Workspace) person() journal.Actor {
	return journal.Actor{UID: uint32(unix.Getuid()), PID: uint32(unix.Getpid()), Comm: "winkfs"}
}
