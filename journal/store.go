package journal

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
)

// Defaults of Options.
const (
	defaultSegmentSize = 16 << 20
	defaultPackSize    = 1 << 30
	defaultLockTimeout = 500 * time.Millisecond
)

// Intervals of the background committer. A sync comes more often than a commit
// so that a caller of Sync never waits for more than that to reach the disk;
// a commit writes each chunk of a content that changed, so that its cost falls
// with the number of changes that it takes together.
const (
	commitEvery = 5 * time.Second
	commitBytes = 64 << 20 // of log
	syncBytes   = 32 << 20 // of log
)

// Options are the settings of a store. The zero value is usable.
type Options struct {
	// ReadOnly opens without changing a byte. What the database lacks is
	// replayed in memory.
	ReadOnly bool
	// Logger gets what happens in the background; nil = nothing.
	Logger *slog.Logger
	// Clock gives records their time; nil = time.Now.
	Clock func() time.Time
	// SegmentSize and PackSize are the lengths at which a new log segment or
	// pack begins; 0 = the default.
	SegmentSize, PackSize int64
	// LockTimeout bounds the wait for another process to let go of the
	// journal; 0 = half a second.
	LockTimeout time.Duration

	// OnWrite, for tests, is called before each change to the disk with its
	// kind (KindLogWrite, ...).
	OnWrite func(kind string)
	// Inject, for tests, may return a fault for a change to the disk; n is the
	// length of a write. It is called after OnWrite.
	Inject func(kind string, n int) *Fault

	// boot replaces the boot id in tests.
	boot string
	// For Repair: Rebuild cuts the log at damage in its middle, too, and Open
	// leaves the newest part of the log unchecked.
	cutMiddle, unchecked bool
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.SegmentSize <= 0 {
		o.SegmentSize = defaultSegmentSize
	}
	if o.PackSize <= 0 {
		o.PackSize = defaultPackSize
	}
	if o.LockTimeout <= 0 {
		o.LockTimeout = defaultLockTimeout
	}
	if o.boot == "" {
		o.boot = bootID()
	}
	return o
}

// Store is an open journal. It is safe for concurrent use.
type Store struct {
	dir   string
	o     Options
	log   *slog.Logger
	disk  disk
	id    journalID
	lock  *os.File
	files fileTable
	packs packWriter
	state *State // until State is called

	stop chan struct{} // closed by Close
	kick chan struct{} // wakes the committer
	done sync.WaitGroup

	gcMu sync.Mutex // held during a collection

	dbMu sync.RWMutex // held for reading during a transaction
	db   *bbolt.DB    // replaced by a collection, under dbMu and commitMu

	commitMu sync.Mutex // held during a commit
	meta     *dbMeta    // what the database holds; protected by commitMu

	syncMu  sync.Mutex // held during a sync
	syncErr error      // first failure of a sync; protected by syncMu
	synced  atomic.Uint64

	mu         sync.Mutex // protects what follows
	closed     bool
	base       *base // where history begins; nil = with record 1
	trimmed    Seq   // records up to here are not to be had
	holds      map[*hold]struct{}
	head       Seq
	hash       [32]byte   // of the record at head
	seg        *os.File   // log segment appended to
	segNum     uint32     // its file number
	end        int64      // its length
	tailDirty  bool       // bytes of a failed append may lie behind end
	buf        []byte     // of the frame being built
	rotated    []*os.File // full segments not yet synced
	logFresh   bool       // a segment was created since the last sync
	unflushed  int64      // bytes of log since the committer was last woken to sync
	pend       *batch     // not yet in the database
	committing *batch     // being moved into the database, nil = none
	commits    uint64     // ended commits
}

func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

// State returns the state at the head as it was when the store was opened,
// without nodes made in the workspace that nothing leads to any more: see
// LookupNode for these. It then belongs to the caller; later calls return nil.
func (s *Store) State() *State {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state
	s.state = nil
	return st
}

// Head returns the number of the newest record, 0 if there is none.
func (s *Store) Head() Seq {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head
}

// First returns the oldest record that is to be had: 1 until a collection
// trimmed history.
func (s *Store) First() Seq {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trimmed + 1
}

// Record1 returns the first record that there ever was, whether it was trimmed
// or not; nil if there is none.
func (s *Store) Record1() (*Record, error) {
	s.mu.Lock()
	b, head := s.base, s.head
	s.mu.Unlock()
	if b != nil {
		return b.originRecord()
	}
	if head == 0 {
		return nil, nil
	}
	var first *Record
	err := s.walk(1, 1, nil, func(r *Record) error {
		first = r
		return nil
	})
	return first, err
}

// Sizes returns the bytes on disk: of the log, of the packs, of the database.
func (s *Store) Sizes() (logBytes, dataBytes, dbBytes int64) {
	logBytes, dataBytes = s.files.sizes()
	return logBytes, dataBytes, dbSize(s.path(dbName))
}

// ReadAt fills p with the stored bytes at l. Safe for concurrent use.
func (s *Store) ReadAt(l Loc, p []byte) error { return s.files.readAt(l, p) }

// writable returns why the store can't be changed, nil if it can.
func (s *Store) writable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writableLocked()
}

func (s *Store) writableLocked() error {
	switch {
	case s.closed:
		return ErrClosed
	case s.o.ReadOnly:
		return ErrReadOnly
	}
	return nil
}
