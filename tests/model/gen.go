package model

import (
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Gen makes random operations that often succeed: it prefers names that exist.
type Gen struct {
	r     *rand.Rand
	root  bool // modes don't hinder the caller
	files []string
	dirs  []string
	// Procs is the number of processes that the operations are for; with 0 all
	// are for one, and none of the kinds that need a process of its own comes.
	Procs int
	// Restart says that the daemon may be restarted in between.
	Restart bool
	queue   []Op // to come before anything else
	// Small keeps files below 64 KiB, so that trees can be compared often.
	Small bool
	// Atomic restricts to operations that are one request to the daemon each,
	// so that a crash leaves all or nothing of them.
	Atomic bool
}

// NewGen returns a generator that makes the same operations for the same seed
// and the same trees.
func NewGen(seed uint64) *Gen {
	return &Gen{r: rand.New(rand.NewPCG(seed, 1)), dirs: []string{"."}, root: os.Geteuid() == 0}
}

// Learn looks at what exists below dir.
func (g *Gen) Learn(dir string) {
	g.files, g.dirs = nil, nil
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		switch {
		case d == nil:
		case d.IsDir():
			g.dirs = append(g.dirs, name)
		default:
			g.files = append(g.files, name)
		}
		return nil
	})
}

var (
	names = []string{"a", "b", "c", "d", "e", "with space", "ünï", "new\nline", ".hidden", "-dash", strings.Repeat("l", 255)}
	// weights says how often each kind comes.
	weights = [kinds]int{
		Create: 10, Open: 6, Close: 3, Write: 14, Append: 4, Read: 4, ReadFile: 4, Truncate: 3, Ftruncate: 3, Rename: 12, Link: 5,
		LinkSlot: 3, Unlink: 7, Mkdir: 5, Rmdir: 3, Symlink: 3, Readlink: 1, Mkfifo: 1, Chmod: 4, Utimens: 3, Setxattr: 4,
		Removexattr: 2, Listxattr: 1, Fallocate: 4, CopyRange: 2, Tmpfile: 2, Fsync: 2, Stat: 3, Fstat: 2, List: 3,
		Chdir: 5, Getcwd: 2, Chown: 2, Flock: 2, Mmap: 6, MapRead: 6, MapWrite: 6, Msync: 2, Munmap: 2, Drop: 1, Remount: 1,
	}
	// ownProcess lists the kinds that need a process of their own.
	ownProcess = []Kind{Chdir, Getcwd, Chown, Flock, Mmap, MapRead, MapWrite, Msync, Munmap, Drop, Remount}
	// manyRequests lists the kinds that take several requests, or none that
	// changes anything.
	manyRequests = []Kind{Append, CopyRange, Read, ReadFile, Readlink, Listxattr, Stat, Fstat, List}
)

// Next returns the next operation.
func (g *Gen) Next() Op {
	if len(g.queue) == 0 {
		g.plan()
	}
	o := g.queue[0]
	g.queue = g.queue[1:]
	return o
}

// plan puts one operation into the queue, or several that belong together.
func (g *Gen) plan() {
	proc, cwd := 0, false
	if g.Procs > 0 {
		proc, cwd = g.r.IntN(g.Procs), g.r.IntN(5) == 0
		if g.r.IntN(40) == 0 {
			g.queue = g.sequence()
		}
	}
	if len(g.queue) == 0 {
		o := g.one()
		o.Cwd = cwd && o.Kind != Chdir
		g.queue = []Op{o}
	}
	for i := range g.queue {
		g.queue[i].Proc = proc
	}
}

// one returns one operation.
func (g *Gen) one() Op {
	o := Op{Kind: g.kind(), Slot: g.r.IntN(Slots), Slot2: g.r.IntN(Slots), Seed: g.r.Uint64()}
	switch o.Kind {
	case Flock, Mmap, MapRead, MapWrite, Msync, Munmap, Remount:
		g.ownProcess(&o)
	case Create, Open, Tmpfile, Close, Fsync:
		g.open(&o)
	case Write, Append, Read, Truncate, Ftruncate, Fallocate, CopyRange:
		g.bytes(&o)
	case Rename, Link, LinkSlot, Symlink:
		g.twoNames(&o)
	case Setxattr, Removexattr:
		g.xattr(&o)
	default:
		g.oneName(&o)
	}
	return o
}

func (g *Gen) kind() Kind {
	for {
		total := 0
		for _, w := range weights {
			total += w
		}
		n := g.r.IntN(total)
		for k, w := range weights {
			if n -= w; n < 0 {
				if !g.allowed(Kind(k)) {
					break
				}
				return Kind(k)
			}
		}
	}
}

func (g *Gen) allowed(k Kind) bool {
	switch {
	case g.Atomic && slices.Contains(manyRequests, k):
		return false
	case k == Remount:
		return g.Restart && g.r.IntN(3) == 0
	}
	return g.Procs > 0 || !slices.Contains(ownProcess, k)
}

func pick[T any](g *Gen, from ...T) T { return from[g.r.IntN(len(from))] }

// fresh returns a name that may not exist.
func (g *Gen) fresh() string {
	if g.r.IntN(200) == 0 {
		return strings.Repeat("x", 256)
	}
	return path.Join(g.dir(), pick(g, names...))
}

func (g *Gen) dir() string {
	if len(g.dirs) == 0 || g.r.IntN(4) == 0 {
		return "."
	}
	return pick(g, g.dirs...)
}

// some returns a name that mostly exists.
func (g *Gen) some() string {
	switch n := g.r.IntN(10); {
	case n < 7 && len(g.files) > 0:
		return pick(g, g.files...)
	case n < 8 && len(g.dirs) > 0:
		return pick(g, g.dirs...)
	}
	return g.fresh()
}

func (g *Gen) open(o *Op) {
	o.Mode = pick[uint32](g, 0o644, 0o600, 0o755)
	switch o.Kind {
	case Create:
		o.Path = g.fresh()
		o.Flags = pick(g, 0, unix.O_EXCL, unix.O_TRUNC)
	case Open:
		o.Path = g.some()
		o.Flags = pick(g, unix.O_RDWR, unix.O_RDWR, unix.O_RDONLY, unix.O_RDWR|unix.O_TRUNC, unix.O_WRONLY|unix.O_NOFOLLOW)
	case Tmpfile:
		o.Path = g.dir()
	}
}

const page = 4096

func (g *Gen) bytes(o *Op) {
	switch o.Kind {
	case Append, Truncate:
		o.Path = g.some()
	}
	o.Off = pick(g, 0, g.r.Int64N(100), g.r.Int64N(200_000), page*g.r.Int64N(64))
	o.Len = pick(g, 0, 1, 1+g.r.Int64N(300), page, g.r.Int64N(64<<10))
	switch o.Kind {
	case Truncate, Ftruncate:
		o.Len = pick(g, 0, 0, o.Len, g.r.Int64N(3<<20))
		if g.Small {
			o.Len %= 64 << 10
		}
	case Fallocate:
		o.Len++
		o.Flags = pick(g, 0, unix.FALLOC_FL_KEEP_SIZE, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE,
			unix.FALLOC_FL_ZERO_RANGE, unix.FALLOC_FL_ZERO_RANGE|unix.FALLOC_FL_KEEP_SIZE)
		if g.Small {
			o.Off, o.Len = o.Off%(32<<10), min(o.Len, 32<<10)
		}
	case CopyRange:
		o.Mode = uint32(g.r.IntN(100_000))
		if g.Small {
			o.Off, o.Len, o.Mode = o.Off%(32<<10), min(o.Len, 32<<10), o.Mode%(32<<10)
		}
	case Write:
		if g.Small {
			o.Off, o.Len = o.Off%(32<<10), min(o.Len, 32<<10)
		}
		if g.Atomic { // within one page
			o.Len = 1 + g.r.Int64N(page)
			o.Off = o.Off/page*page + min(o.Off%page, page-o.Len)
		}
	}
}

func (g *Gen) twoNames(o *Op) {
	switch o.Kind {
	case LinkSlot:
		o.Path = g.fresh()
	case Symlink:
		o.Path = g.fresh()
		o.Path2 = pick(g, "a", "b", "missing", ".", "c/a", strings.Repeat("t", 300))
	default:
		o.Path, o.Path2 = g.some(), pick(g, g.fresh(), g.some())
	}
	if o.Kind != Rename {
		return
	}
	o.Flags = pick(g, 0, 0, 0, unix.RENAME_NOREPLACE, unix.RENAME_EXCHANGE)
	if len(g.dirs) > 0 && g.r.IntN(3) == 0 {
		o.Path = pick(g, g.dirs...)
	}
}

func (g *Gen) xattr(o *Op) {
	o.Path = g.some()
	o.Path2 = pick(g, "user.a", "user.b", "user.long."+strings.Repeat("n", 100))
	if o.Kind == Setxattr {
		o.Len = pick(g, 0, 1, g.r.Int64N(300))
		o.Flags = pick(g, 0, 0, unix.XATTR_CREATE, unix.XATTR_REPLACE)
	}
}

func (g *Gen) oneName(o *Op) {
	o.Path = g.some()
	switch o.Kind {
	case Mkdir, Mkfifo:
		o.Path = g.fresh()
		o.Mode = pick[uint32](g, 0o755, 0o700)
	case Rmdir, List:
		if len(g.dirs) > 0 && g.r.IntN(4) > 0 {
			o.Path = pick(g, g.dirs...)
		}
	case Chdir:
		if len(g.dirs) > 0 && g.r.IntN(8) > 0 {
			o.Path = pick(g, g.dirs...)
		}
	case Chown:
		o.Mode = pick(g, uint32(os.Geteuid()), 1000, ^uint32(0))
	case Chmod:
		// An ordinary user must still get into what may be a directory.
		o.Mode = pick[uint32](g, 0o755, 0o700, 0o711, 0o555, 0o500)
		if g.root {
			o.Mode = pick[uint32](g, o.Mode, 0o644, 0o600, 0o444, 0)
		}
	case Utimens:
		o.Off, o.Len = g.r.Int64N(1<<31), g.r.Int64N(1e9)
	}
}
