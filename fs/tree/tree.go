package tree

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/winkfs/winkfs/fs/lower"
	"github.com/winkfs/winkfs/journal"
	"github.com/winkfs/winkfs/policy"
)

// Config is what a Tree is made of. Store, State and Lower are required.
type Config struct {
	Store    *journal.Store
	State    *journal.State // at the store's head; the tree owns it from then on
	Lower    *lower.FS      // sources by number, from 1
	Sources  []Source       // what is said of each source, in the same order
	StateDir string         // whose file system statfs shows
	Decider  policy.Decider // nil allows all
	Actors   Attributor     // nil: only what the request carries is known
	Watcher  Watcher        // nil: the lower is not watched, caches are short
	Logger   *slog.Logger
	ReadOnly bool
	Profile  Profile
}

// Source says where a source directory shows.
type Source struct {
	At       string // path below the workspace's root, "" = the root itself
	ReadOnly bool
}

// Cache times told to the kernel.
const (
	ttlLong  = 6 * time.Hour // changes are announced by notifications
	ttlShort = time.Second   // for what can't be watched
)

// Tree is the live merged tree of one workspace. All methods are safe for
// concurrent use.
type Tree struct {
	store    *journal.Store
	lower    *lower.FS
	sources  []Source
	stateDir string
	decider  policy.Decider
	actors   Attributor
	watcher  Watcher
	log      *slog.Logger
	readOnly bool
	profile  Profile
	lists    listCache
	denied   refusals
	opened   openings
	replay   atomic.Pointer[Replay]

	still sync.RWMutex // see Still

	order  sync.Mutex       // held from an operation's validation until its changes show
	frozen bool             // dead nodes' state must stay, see freeze; protected by mu
	buried []journal.NodeID // to be dropped then; protected by mu

	questions sync.Pool // of *question, see decide

	mu       sync.RWMutex
	layers                                   // state and numbers; protected by mu, changes of the state by order too
	nodes    map[journal.NodeID]*node        // protected by mu
	most     int                             // nodes that the table has had since it was made; protected by mu
	names    map[journal.NodeID][]lower.File // other names of linked files; protected by mu
	kept     int                             // nodes with a kept lower file; protected by mu
	notifier Notifier                        // protected by mu; never nil
	lastTime journal.Timespec                // of the last change; protected by mu
}

// New returns the tree over the state and the sources.
func New(c Config) (*Tree, error) {
	t := &Tree{
		store: c.Store, lower: c.Lower, sources: c.Sources, stateDir: c.StateDir,
		decider: c.Decider, actors: c.Actors, watcher: c.Watcher, log: c.Logger, readOnly: c.ReadOnly, profile: c.Profile,
		layers:   newLayers(c.State, c.Lower, c.Sources),
		nodes:    make(map[journal.NodeID]*node),
		names:    make(map[journal.NodeID][]lower.File),
		notifier: noNotifier{},
	}
	t.questions.New = t.newQuestion
	if t.decider == nil {
		t.decider = policy.AllowAll{}
	}
	if t.actors == nil {
		t.actors = requestOnly{}
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	t.buryAll()
	t.nodes[journal.RootID] = newNode(t.rootFound())
	if c.ReadOnly || t.store.Head() > 0 {
		return t, nil
	}
	return t, t.genesis()
}

// SetNotifier tells the tree whom to tell of changes that the kernel has not
// made itself.
func (t *Tree) SetNotifier(n Notifier) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notifier = n
}

// Close closes the lower's descriptors. The store is its owner's to close.
func (t *Tree) Close() { t.lower.Close() }

// now returns the time of a change: the wall clock, but never earlier than the
// change before it.
// Preconditions: t.mu is held.
func (t *Tree) now() journal.Timespec {
	n := journal.Timespec(time.Now().UnixNano())
	if n <= t.lastTime {
		n = t.lastTime + 1
	}
	t.lastTime = n
	return n
}

// noNotifier is for a tree without a mount.
type noNotifier struct{}

func (noNotifier) Entry(journal.NodeID, string)  {}
func (noNotifier) Expire(journal.NodeID, string) {}
func (noNotifier) Inode(journal.NodeID)          {}
func (noNotifier) Epoch() bool                   { return true }

// requestOnly is the Attributor that knows nothing.
type requestOnly struct{}

func (requestOnly) Actor(tid, uid uint32) journal.Actor {
	return journal.Actor{TID: tid, UID: uid, Comm: "unknown"}
}

func (requestOnly) Capable(uint32, int) bool { return false }

// InGroup implements Actors.
func (requestOnly) InGroup(uint32, uint32) bool { return false }
