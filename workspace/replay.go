package workspace

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	osexec "os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// ReplayCommand is the hidden command that repeats changes through a mount so
// that those who watch it are told: winkfs __replay DIR. It prints its thread's
// number, then reads ReplayOps as JSON from standard input and carries them out.
const ReplayCommand = "__replay"

// Kinds of ReplayOp.
const (
	ReplayRemove = "remove"
	ReplayRename = "rename"
	ReplayMake   = "make"
	ReplayTouch  = "touch" // the bytes or attributes of a file differ
	// ReplayStat has the kernel ask for a file's size, which a notification only
	// has it forget: who has the file open to append goes on writing at the old end.
	ReplayStat = "stat"
)

// ReplayOp is one system call to make in the mount. Paths are bytes.
type ReplayOp struct {
	Op     string `json:"op"`
	Path   []byte `json:"path"`
	To     []byte `json:"to,omitempty"`     // of a rename
	Target []byte `json:"target,omitempty"` // of a symbolic link
	Mode   uint32 `json:"mode"`             // with the type
	Size   uint64 `json:"size"`
}

// replayTime bounds how long a replay may take. What is left then is notified
// without events.
const replayTime = 10 * time.Second

// replay is what those who watch the mount are to see of a change of history.
type replay struct {
	ops  []ReplayOp
	tree *tree.Replay
	in   io.WriteCloser
	out  *bufio.Reader
	stop func()
}

// prepareReplay starts the helper if anybody watches what changed, or if files
// get shorter, before the change is made. It returns nil if there is nothing to
// do, or no mount.
func (w *Workspace) prepareReplay(changed []tree.Changed, before, after *tree.View) *replay {
	m, err := w.mount()
	if err != nil || len(changed) == 0 {
		return nil
	}
	seen := findWatchers(m.Dev())
	p := newReplayPlan(seen, before, after)
	for _, c := range changed {
		p.add(c)
	}
	if len(p.ops) == 0 {
		return nil
	}
	r, err := startReplay(m.Dir())
	if err != nil {
		w.log.Warn("watchers of the mount see no events", "err", err)
		return nil
	}
	tid, err := r.hello()
	if err != nil {
		r.stop()
		w.log.Warn("watchers of the mount see no events", "err", err)
		return nil
	}
	r.ops, r.tree = p.sorted(), w.tree.Replay(tid)
	for k, it := range p.before {
		r.tree.Before(k.parent, k.name, it)
	}
	return r
}

func startReplay(dir string) (*replay, error) {
	ctx, cancel := context.WithTimeout(context.Background(), replayTime)
	c := osexec.CommandContext(ctx, "/proc/self/exe", ReplayCommand, dir)
	c.Dir = "/" // not the mount: starting a process must never wait for it
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	in, err := c.StdinPipe()
	if err != nil {
		cancel()
		return nil, fmt.Errorf("start replay: %w", err)
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		cancel()
		in.Close()
		return nil, fmt.Errorf("start replay: %w", err)
	}
	stop := func() {
		cancel()
		in.Close()
		_ = c.Wait()
	}
	return &replay{in: in, out: bufio.NewReader(out), stop: stop}, nil
}

// hello reads the thread's number.
func (r *replay) hello() (uint32, error) {
	var tid uint32
	if _, err := fmt.Fscanln(r.out, &tid); err != nil {
		return 0, fmt.Errorf("start replay: %w", err)
	}
	return tid, nil
}

// names returns the tree's part, nil if there is no replay.
func (r *replay) names() *tree.Replay {
	if r == nil {
		return nil
	}
	return r.tree
}

// run repeats the changes and waits until that is done. made says whether they
// were made.
func (r *replay) run(w *Workspace, made bool) {
	if r == nil {
		return
	}
	defer r.stop()
	if made {
		err := json.NewEncoder(r.in).Encode(r.ops)
		r.in.Close()
		if err == nil {
			_, err = io.Copy(io.Discard, r.out)
		}
		if err != nil {
			w.log.Warn("watchers of the mount may have missed events", "err", err)
		}
	}
	r.tree.End()
	if made {
		w.flush()
	}
}

// replayPlan collects the operations.
type replayPlan struct {
	seen     *watchers
	from, to *tree.View
	dirs     [2]map[string]journal.NodeID // directories of both views by path
	ops      []ReplayOp
	before   map[entryKey]*tree.Item
}

func newReplayPlan(seen *watchers, from, to *tree.View) *replayPlan {
	return &replayPlan{
		seen: seen, from: from, to: to, before: map[entryKey]*tree.Item{},
		dirs: [2]map[string]journal.NodeID{{}, {}},
	}
}

// dir returns the directory that a path lies in, 0 if there is none.
func (p *replayPlan) dir(side int, path string) journal.NodeID {
	d, _ := splitLast(path)
	if id, ok := p.dirs[side][d]; ok {
		return id
	}
	v := p.from
	if side == 1 {
		v = p.to
	}
	var id journal.NodeID
	if it, err := v.Find(d); err == nil {
		id = it.ID()
	}
	p.dirs[side][d] = id
	return id
}

func splitLast(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

func (p *replayPlan) add(c tree.Changed) {
	switch {
	case c.Old == nil:
		p.create(c.New)
	case c.New == nil:
		p.remove(c.Old)
	case c.Old.ID() != c.New.ID():
		p.remove(c.Old)
		p.create(c.New)
	case c.Old.Path != c.New.Path:
		p.rename(c)
	default:
		p.touch(c)
	}
}

func (p *replayPlan) create(it *tree.Item) {
	dir := p.dir(1, it.Path)
	if !p.seen.see(dir) {
		return
	}
	op := ReplayOp{Op: ReplayMake, Path: []byte(it.Path), Mode: it.Stat.Attr.Mode}
	if isLink(op.Mode) {
		target, err := it.Readlink()
		if err != nil {
			return
		}
		op.Target = []byte(target)
	}
	_, name := splitLast(it.Path)
	if k := (entryKey{dir, name}); p.before[k] == nil {
		p.before[k] = nil
	}
	p.ops = append(p.ops, op)
}

func (p *replayPlan) remove(it *tree.Item) {
	dir := p.dir(0, it.Path)
	if !p.seen.see(dir, it.ID()) {
		return
	}
	_, name := splitLast(it.Path)
	p.before[entryKey{dir, name}] = it
	p.ops = append(p.ops, ReplayOp{Op: ReplayRemove, Path: []byte(it.Path), Mode: it.Stat.Attr.Mode})
}

// rename leaves out what only moves with its directory.
func (p *replayPlan) rename(c tree.Changed) {
	from, to := p.dir(0, c.Old.Path), p.dir(1, c.New.Path)
	_, oldName := splitLast(c.Old.Path)
	_, newName := splitLast(c.New.Path)
	if from == to && oldName == newName || !p.seen.see(from, to, c.Old.ID()) {
		return
	}
	p.before[entryKey{from, oldName}] = c.Old
	if k := (entryKey{to, newName}); p.before[k] == nil {
		p.before[k] = nil
	}
	p.ops = append(p.ops, ReplayOp{Op: ReplayRename, Path: []byte(c.Old.Path), To: []byte(c.New.Path)})
}

func (p *replayPlan) touch(c tree.Changed) {
	at := c.New.Stat.Attr
	op := ReplayOp{Op: ReplayTouch, Path: []byte(c.New.Path), Mode: at.Mode, Size: at.Size}
	if !p.seen.see(p.dir(1, c.New.Path), c.New.ID()) {
		if !isRegular(at.Mode) || at.Size >= c.Old.Stat.Attr.Size {
			return
		}
		op.Op = ReplayStat
	}
	p.ops = append(p.ops, op)
}

// sorted returns the operations in an order in which each can be made: what
// goes from the bottom up, what moves, what comes from the top down.
func (p *replayPlan) sorted() []ReplayOp {
	rank := map[string]int{ReplayRemove: 0, ReplayRename: 1, ReplayMake: 2, ReplayTouch: 3, ReplayStat: 3}
	slices.SortStableFunc(p.ops, func(a, b ReplayOp) int {
		if c := cmp.Compare(rank[a.Op], rank[b.Op]); c != 0 {
			return c
		}
		if a.Op == ReplayRemove {
			return strings.Compare(string(b.Path), string(a.Path))
		}
		return strings.Compare(string(a.Path), string(b.Path))
	})
	return p.ops
}
