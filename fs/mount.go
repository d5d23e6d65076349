package fs

import (
	"fmt"
	"log/slog"

	"github.com/winkfs/winkfs/fs/dev"
	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// MountConfig says where and how to show the tree.
type MountConfig struct {
	Dir        string // mount point, an existing directory
	ID         string // workspace's id, shown as the mount's source
	ReadOnly   bool
	AllowOther bool // let other users in; root's mounts always do
	NoIDMap    bool // don't offer id-mapped binds of the mount
	NoExec     bool // nothing in the mount can be executed
	// Suid and Dev let set-id bits, file capabilities and device nodes take
	// effect in the mount.
	Suid, Dev bool
	// AuditOpens has every open(2) journaled, at the price of two messages for
	// each (OPEN and RELEASE).
	AuditOpens bool
	Method     dev.Method
}

// Mount is a tree that is mounted. Its methods are safe for concurrent use.
type Mount struct {
	Notifier
	conn *dev.Conn
}

// Serve mounts the tree and serves it until it is unmounted. A dead mount of a
// workspace at the same place is taken away first. On return the mount is
// usable, and the tree tells the kernel of its changes through it.
func Serve(cfg MountConfig, t Tree, log *slog.Logger) (*Mount, error) {
	if _, err := dev.Heal(cfg.Dir); err != nil {
		return nil, fmt.Errorf("mount workspace: %w", err)
	}
	a := &adapter{tree: t, log: log, suid: cfg.Suid, auditOpens: cfg.AuditOpens}
	prepare := func(q *dev.Queue) {
		n := &Notifier{queue: q}
		a.notify.Store(n)
		t.SetNotifier(n)
	}
	conn, err := dev.Mount(dev.Config{
		Dir: cfg.Dir, ID: cfg.ID, ReadOnly: cfg.ReadOnly, AllowOther: cfg.AllowOther,
		NoIDMap: cfg.NoIDMap, NoExec: cfg.NoExec, Suid: cfg.Suid, Dev: cfg.Dev, Method: cfg.Method, Logger: log, Prepare: prepare,
	}, a)
	if err != nil {
		return nil, fmt.Errorf("mount workspace: %w", err)
	}
	return &Mount{conn: conn, Notifier: Notifier{queue: conn.Queue()}}, nil
}

// Notifier tells the kernel of the tree's changes.
type Notifier struct{ queue *dev.Queue }

var _ tree.Notifier = (*Notifier)(nil)

// Entry implements tree.Notifier: the name may lead elsewhere. The directory is
// notified too, since the kernel drops no listing for a name that it does not
// know.
func (n *Notifier) Entry(parent journal.NodeID, name string) {
	n.queue.Entry(uint64(parent), name)
	n.queue.Inode(uint64(parent))
}

// Expire implements tree.Notifier.
func (n *Notifier) Expire(parent journal.NodeID, name string) { n.queue.Expire(uint64(parent), name) }

// Epoch implements tree.Notifier.
func (n *Notifier) Epoch() bool { return n.queue.IncEpoch() }

// Inode implements tree.Notifier.
func (n *Notifier) Inode(id journal.NodeID) { n.queue.Inode(uint64(id)) }

// dropped returns when the kernel has dropped what the tree found to be out of
// date. It waits for READs of the file that are under way, which others answer
// (dev's watchdog), and for no lock that a request holds.
func (a *adapter) dropped(s *tree.Stat) {
	if n := a.notify.Load(); n != nil && s.Changed {
		n.queue.InodeNow(uint64(s.ID))
	}
}

// Queue gives access to the rarer notifications.
func (n *Notifier) Queue() *dev.Queue { return n.queue }

// Flush returns when the kernel knows of all that was notified before, so that
// whoever looks next sees it. It must not be called from within an operation of
// the tree.
func (n *Notifier) Flush() error { return n.queue.Flush() }

// Dir returns the mount point without symbolic links.
func (m *Mount) Dir() string { return m.conn.Dir() }

// Dev returns st_dev of the files in the mount.
func (m *Mount) Dev() uint64 { return m.conn.Dev() }

// IDMap reports whether binds of the mount can be id-mapped.
func (m *Mount) IDMap() bool { return m.conn.IDMap() }

// Degraded lists what works worse than it could here, and why.
func (m *Mount) Degraded() []string { return m.conn.Degraded() }

// Done is closed when the mount is gone and its last request was answered.
func (m *Mount) Done() <-chan struct{} { return m.conn.Done() }

// Wait waits for that.
func (m *Mount) Wait() { <-m.conn.Done() }

// Unmount unmounts: dev.ErrBusy says that somebody uses the mount. A lazy
// unmount takes it out of the namespace in any case and does not wait.
func (m *Mount) Unmount(lazy bool) error { return m.conn.Unmount(lazy) }
