package workspace

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/apply"
	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

const applyDir = "apply"

// Apply writes the changes, or those of some paths, to the sources.
func (w *Workspace) Apply(ctx context.Context, req *ApplyRequest) (*ApplyResult, error) {
	w.admin.Lock()
	defer w.admin.Unlock()
	now, changed, err := w.compared()
	if err != nil {
		return nil, err
	}
	p := &applyPlan{w: w, now: now, changed: newPathSet(req.Paths).only(changed)}
	if err := p.items(); err != nil {
		return nil, err
	}
	if len(req.Paths) > 0 && len(p.list) == 0 {
		return nil, Fail(CodeNothing, "apply: nothing changed there")
	}
	roots, done, err := w.openRoots()
	if err != nil {
		return nil, err
	}
	defer done()
	res, err := apply.Run(ctx, p.list, w.applyOptions(roots, req.DryRun))
	if errors.Is(err, apply.ErrConflict) {
		return nil, p.conflictError(res)
	}
	if err != nil {
		return nil, fmt.Errorf("apply: %w", err)
	}
	out := p.result(res, req.DryRun)
	if req.DryRun || out.Count() == 0 {
		return out, nil
	}
	return out, w.applied(p, out)
}

func (w *Workspace) applyOptions(roots map[uint32]int, dryRun bool) apply.Options {
	return apply.Options{Dir: filepath.Join(w.entry.Dir, applyDir), Roots: roots, DryRun: dryRun, Logger: w.log}
}

// openRoots opens the source directories for apply.
func (w *Workspace) openRoots() (map[uint32]int, func(), error) {
	roots := map[uint32]int{}
	done := func() {
		for _, fd := range roots {
			unix.Close(fd)
		}
	}
	for i, s := range w.cfg.Sources {
		fd, err := unix.Open(s.Host, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if err != nil {
			done()
			return nil, nil, Wrap(CodeFailure, err, "open source").At(s.Host)
		}
		roots[uint32(i+1)] = fd
	}
	return roots, done, nil
}

// recoverApply finishes an apply that a crash cut off.
func (w *Workspace) recoverApply() error {
	dir := filepath.Join(w.entry.Dir, applyDir)
	if !exists(dir) {
		return nil
	}
	roots, done, err := w.openRoots()
	if err != nil {
		return err
	}
	defer done()
	results, err := apply.Recover(context.Background(), apply.Options{Dir: dir, Roots: roots, Logger: w.log})
	if err != nil {
		return fmt.Errorf("finish an interrupted apply: %w", err)
	}
	for range results {
		w.log.Warn("an interrupted apply was finished")
	}
	return nil
}

// applyPlan converts changes to what apply takes, and its result back.
type applyPlan struct {
	w       *Workspace
	now     *tree.View
	changed []tree.Changed // from the base to now
	list    []apply.Item
	paths   map[hostPath]string // workspace path of each item
	gone    map[hostPath][]apply.Fingerprint
	skipped []string
}

// hostPath is a path below a source.
type hostPath struct {
	source uint32
	path   string
}

// items makes one item for each path that is to be written. A rename is the
// removal of one path and the making of another.
func (p *applyPlan) items() error {
	p.paths = map[hostPath]string{}
	now := p.now
	p.gone = goneOrigins(now)
	for _, c := range p.changed {
		moved := c.Old != nil && c.New != nil && c.Old.Path != c.New.Path
		if c.Old != nil && (c.New == nil || moved) {
			p.add(c.Old.Path, apply.Item{Base: p.base(now, c.Old)})
		}
		if c.New == nil {
			continue
		}
		it := apply.Item{}
		if it.Base = p.w.origin(now, c.New); !it.Base.Exists && c.Old != nil && !moved {
			it.Base = p.base(now, c.Old)
		}
		if err := want(&it, c.New); err != nil {
			return err
		}
		p.add(c.New.Path, it)
	}
	return nil
}

// add puts an item on the list, or its path on that of what no source holds.
func (p *applyPlan) add(path string, it apply.Item) {
	at, ok := p.w.locate(path)
	if !ok || it.Want.Mode != 0 && !appliable(it.Want.Mode) {
		p.skipped = append(p.skipped, path)
		return
	}
	it.Source, it.Path = at.source, at.path
	if _, twice := p.paths[at]; twice {
		p.join(&it)
		return
	}
	p.paths[at] = path
	p.list = append(p.list, it)
}

// join puts an item together with the earlier one of the same path: one file
// went from there and another came.
func (p *applyPlan) join(it *apply.Item) {
	i := slices.IndexFunc(p.list, func(o apply.Item) bool { return o.Source == it.Source && o.Path == it.Path })
	old := &p.list[i]
	if it.Want.Mode != 0 {
		old.Want = it.Want
	}
	if it.Base.Exists && (it.Want.Mode != 0 || !old.Base.Exists) {
		old.Base = it.Base
	}
}

func appliable(mode uint32) bool {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG, unix.S_IFDIR, unix.S_IFLNK:
		return true
	}
	return false
}

// locate returns where a path of the workspace lies: in the source with the
// longest place above it. A source's own root can't be applied to, nor can a
// stack of directories, none of which has the files that the stack shows.
func (w *Workspace) locate(path string) (hostPath, bool) {
	best, found := hostPath{}, false
	longest := -1
	for i, s := range w.cfg.Sources {
		at := treeAt(s.At)
		if !under(path, at) || len(at) <= longest {
			continue
		}
		longest = len(at)
		best = hostPath{uint32(i + 1), strings.TrimPrefix(strings.TrimPrefix(path, at), "/")}
		found = best.path != "" && s.Mode == "rw" && len(s.Below) == 0
	}
	return best, found
}

// fingerprint is what the host had at the workspace's first touch, as far as
// the node's state knows, else what it has now.
func fingerprint(now *tree.View, old *tree.Item) apply.Fingerprint {
	if up := now.Node(old.ID()); up != nil && up.Origin.Source != 0 && up.Origin.Mode != 0 {
		return recorded(up)
	}
	return present(old)
}

// origin is what the host had at the place of a changed file when the workspace
// first touched it, nothing if the file does not come from there. The host may
// have put another file there since, or none.
func (w *Workspace) origin(now *tree.View, f *tree.Item) apply.Fingerprint {
	up := now.Node(f.ID())
	if up == nil || up.Origin.Mode == 0 || f.IsDir() {
		return apply.Fingerprint{}
	}
	if at, ok := w.locate(f.Path); !ok || at != (hostPath{up.Origin.Source, up.Origin.Path}) {
		return apply.Fingerprint{}
	}
	return recorded(up)
}

// base is what the host had at a path that the workspace took a file away from:
// what was recorded of the file there, of several the one that the host still
// has, else what it has now.
func (p *applyPlan) base(now *tree.View, old *tree.Item) apply.Fingerprint {
	at, _ := p.w.locate(old.Path)
	has := fingerprint(now, old)
	best := has
	for _, f := range p.gone[at] {
		if f.Ino == has.Ino && f.Size == has.Size && f.Mtime == has.Mtime && f.Ctime == has.Ctime {
			return has
		}
		best = f
	}
	if old.IsDir() {
		return has
	}
	return best
}

// goneOrigins lists what was recorded of lower files that have no name in the
// workspace any more, by their places on the host.
func goneOrigins(now *tree.View) map[hostPath][]apply.Fingerprint {
	all := map[hostPath][]apply.Fingerprint{}
	now.EachNode(func(_ journal.NodeID, up *journal.Node) {
		if up.Own && up.Attr.Nlink == 0 && up.Origin.Source != 0 && up.Origin.Mode != 0 && !isDirMode(up.Attr.Mode) {
			at := hostPath{up.Origin.Source, up.Origin.Path}
			all[at] = append(all[at], recorded(up))
		}
	})
	return all
}

// recorded is what copy-up recorded of the lower.
func recorded(up *journal.Node) apply.Fingerprint {
	o := up.Origin
	return apply.Fingerprint{Exists: true, Ino: o.Ino, Mode: o.Mode, Size: int64(o.Size), Mtime: int64(o.Mtime), Ctime: int64(o.Ctime)}
}

// present is the fingerprint of a file of the base as it is.
func present(it *tree.Item) apply.Fingerprint {
	at := it.Stat.Attr
	return apply.Fingerprint{
		Exists: true, Ino: it.Lower().Ino, Mode: at.Mode, Size: int64(at.Size), Mtime: int64(at.Mtime), Ctime: int64(at.Ctime),
	}
}

// accessACL holds a file's access control list (acl(5)).
const accessACL = "system.posix_acl_access"

func want(it *apply.Item, f *tree.Item) error {
	at := f.Stat.Attr
	it.Want = apply.Want{Mode: at.Mode, Size: int64(at.Size), Mtime: int64(at.Mtime)}
	if !appliable(at.Mode) {
		return nil
	}
	if isLink(at.Mode) {
		target, err := f.Readlink()
		it.Want.Target = target
		return err
	}
	x, err := f.Xattrs()
	if err != nil {
		return fmt.Errorf("read attributes of %s: %w", f.Path, err)
	}
	for name, v := range x {
		if apply.Carried(name) {
			if it.Want.Xattrs == nil {
				it.Want.Xattrs = map[string]string{}
			}
			it.Want.Xattrs[name] = v
		}
	}
	_, listed := x[accessACL]
	it.Want.NoACL = !listed && f.Lower().Ino != 0
	if isRegular(at.Mode) {
		it.Want.Open = func() (io.ReadCloser, error) { return f.Open(), nil }
	}
	return nil
}

// name returns the workspace's path for one that apply reports, which it gives
// below its source.
func (p *applyPlan) name(path string) string {
	for i := range p.w.cfg.Sources {
		if n, ok := p.paths[hostPath{uint32(i + 1), path}]; ok {
			return n
		}
	}
	return path
}

func (p *applyPlan) names(paths []string) []string {
	out := make([]string, len(paths))
	for i, s := range paths {
		out[i] = p.name(s)
	}
	return out
}

func (p *applyPlan) result(res *apply.Result, dryRun bool) *ApplyResult {
	out := &ApplyResult{
		Schema: "winkfs.apply/v1", DryRun: dryRun, Conflicts: []Conflict{},
		Created: p.names(res.Created), Modified: p.names(res.Modified), Deleted: p.names(res.Deleted),
		Skipped: append([]string{}, p.skipped...),
	}
	for _, s := range res.Skipped {
		out.Skipped = append(out.Skipped, p.name(s.Path))
	}
	return out
}

func (p *applyPlan) conflictError(res *apply.Result) error {
	e := Fail(CodeConflict, "apply: the host changed since the workspace touched these files; nothing was written")
	if res != nil {
		e.Conflicts = p.conflicts(res)
	}
	return e.Hinted("look at the host's version, then take the change over by hand, or discard the workspace's")
}

// conflicts names conflicts by the workspace's paths.
func (p *applyPlan) conflicts(res *apply.Result) []Conflict {
	out := make([]Conflict, 0, len(res.Conflicts))
	for _, c := range res.Conflicts {
		out = append(out, Conflict{Path: p.name(c.Path), Reason: c.Reason})
	}
	return out
}

// applied records an apply: what was written is the base from then on.
func (w *Workspace) applied(p *applyPlan, out *ApplyResult) error {
	text, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("encode apply: %w", err)
	}
	base, err := w.tree.Base()
	if err != nil {
		return err
	}
	done := slices.Concat(out.Created, out.Modified, out.Deleted)
	seq, err := w.tree.Commit(nil, func(s *journal.State) (*journal.Record, error) {
		return &journal.Record{
			Op: journal.OpApply, Actor: w.person(), Note: &journal.Note{Text: string(text)}, Changes: p.rebase(s, base, done),
		}, nil
	})
	if err != nil {
		return fmt.Errorf("record apply (the changes are written): %w", err)
	}
	out.Seq = uint64(seq)
	w.flush()
	return w.store.Sync()
}

// rebase returns the changes that make what was written the origin of its
// nodes.
func (p *applyPlan) rebase(s *journal.State, base *tree.View, done []string) []journal.Change {
	var changes []journal.Change
	for _, c := range p.changed {
		if c.New == nil || !slices.Contains(done, c.New.Path) {
			continue
		}
		cur := s.Nodes[c.New.ID()]
		at, ok := p.w.locate(c.New.Path)
		host, err := base.Find(c.New.Path)
		if cur == nil || !ok || err != nil {
			continue
		}
		n := cur.Clone()
		f := present(&host)
		n.Origin = journal.Origin{
			Source: at.source, Path: at.path, Ino: f.Ino, Size: uint64(f.Size), Mtime: journal.Timespec(f.Mtime),
			Ctime: journal.Timespec(f.Ctime), Mode: f.Mode,
		}
		if isDirMode(n.Attr.Mode) && cur.Origin.Source == 0 {
			n.Opaque = true // its entries are all its own
		}
		changes = append(changes, journal.Change{Node: &journal.NodeChange{ID: c.New.ID(), Before: cur, After: n}})
	}
	slices.SortFunc(changes, func(a, b journal.Change) int { return cmp.Compare(a.Node.ID, b.Node.ID) })
	return slices.CompactFunc(changes, func(a, b journal.Change) bool { return a.Node.ID == b.Node.ID })
}

func isDirMode(mode uint32) bool { return mode&unix.S_IFMT == unix.S_IFDIR }
