package workspace

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/winkfs/winkfs/diffview"
	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// Diff writes the differences between two points in the format asked for.
func (w *Workspace) Diff(ctx context.Context, req *DiffRequest, out io.Writer) (*DiffSummary, error) {
	d, err := w.compare(req)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := d.write(req, out); err != nil {
		return nil, err
	}
	return d.summary(), nil
}

// comparison is what differs between two views.
type comparison struct {
	from, to journal.Seq
	changed  []tree.Changed
	execs    map[journal.NodeID][]uint64 // commands that touched a node, for the document
	labels   [2]string                   // of the two sides where these are two workspaces
}

func (w *Workspace) compare(req *DiffRequest) (*comparison, error) {
	from, to, err := w.views(req)
	if err != nil {
		return nil, err
	}
	changed, err := tree.Changes(from, to)
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	d := &comparison{from: from.Seq(), to: to.Seq(), changed: newPathSet(req.Paths).only(changed)}
	if req.Exec != 0 || len(req.Seqs) > 0 {
		t, err := w.touchedBy(req)
		if err != nil {
			return nil, err
		}
		d.changed = t.only(d.changed)
	}
	if req.Format == FormatJSON {
		d.execs, err = w.execsOf(d.from, d.to)
	}
	return d, err
}

// views returns the two sides of a diff.
func (w *Workspace) views(req *DiffRequest) (from, to *tree.View, err error) {
	if req.From == "" && req.Exec != 0 {
		x, err := w.exec(journal.ExecID(req.Exec))
		if err != nil {
			return nil, nil, err
		}
		if from, err = w.tree.At(x.First - 1); err != nil {
			return nil, nil, err
		}
		to, err = w.tree.At(w.lastOf(x))
		return from, to, err
	}
	if from, err = w.view(req.From, w.tree.Base); err != nil {
		return nil, nil, err
	}
	to, err = w.view(req.To, func() (*tree.View, error) { return w.tree.Snapshot(), nil })
	return from, to, err
}

func (w *Workspace) view(point string, otherwise func() (*tree.View, error)) (*tree.View, error) {
	if point == "" {
		return otherwise()
	}
	seq, err := w.resolve(point)
	if err != nil {
		return nil, err
	}
	return w.tree.At(seq)
}

// lastOf returns a command's last record, or the head while it runs.
func (w *Workspace) lastOf(x *journal.Exec) journal.Seq {
	if x.Last != 0 {
		return x.Last
	}
	return w.store.Head()
}

// execsOf returns for every node which commands touched it between two
// points.
func (w *Workspace) execsOf(from, to journal.Seq) (map[journal.NodeID][]uint64, error) {
	execs := map[journal.NodeID][]uint64{}
	if from >= to {
		return execs, nil
	}
	err := w.store.Records(from+1, to, func(r *journal.Record) error {
		if r.Actor.Exec == 0 {
			return nil
		}
		id := uint64(r.Actor.Exec)
		for n := range nodesOf(r) {
			if !slices.Contains(execs[n], id) {
				execs[n] = append(execs[n], id)
			}
		}
		return nil
	})
	return execs, err
}

func (d *comparison) write(req *DiffRequest, out io.Writer) error {
	changes := d.changes()
	o := diffview.Options{Binary: req.Binary, Color: req.Colour, Terminal: req.Escape}
	switch req.Format {
	case FormatPatch, "":
		return diffview.Patch(out, changes, o)
	case FormatStat:
		return diffview.Stat(out, changes, o)
	case FormatNameStatus:
		return diffview.NameStatus(out, changes)
	case FormatJSON:
		return d.writeDocument(changes, out)
	}
	return Fail(CodeUsage, "show difference: unknown format %q", req.Format)
}

func (d *comparison) writeDocument(changes []diffview.Change, out io.Writer) error {
	entries, err := diffview.Entries(changes)
	if err != nil {
		return err
	}
	doc := diffview.Document{Schema: diffview.Schema, From: d.from, To: d.to, Entries: entries}
	if d.labels != [2]string{} {
		doc.From, doc.To = d.labels[0], d.labels[1]
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(doc)
}

// changes converts the changes for diffview.
func (d *comparison) changes() []diffview.Change {
	out := make([]diffview.Change, 0, len(d.changed))
	for _, c := range d.changed {
		ch := diffview.Change{Old: diffFile(c.Old), New: diffFile(c.New)}
		for _, it := range []*tree.Item{c.Old, c.New} {
			if it != nil {
				ch.Exec = append(ch.Exec, d.execs[it.ID()]...)
			}
		}
		slices.Sort(ch.Exec)
		ch.Exec = slices.Compact(ch.Exec)
		out = append(out, ch)
	}
	return out
}

func (d *comparison) summary() *DiffSummary {
	s := &DiffSummary{}
	for _, c := range d.changed {
		if c.Old != nil && c.New != nil && c.Old.Path != c.New.Path {
			s.Renamed++
		}
	}
	s.ChangeCounts = countChanges(d.changed)
	return s
}

// diffFile is one side of a change as diffview wants it. What can't be read
// is left out here and fails when the contents are asked for.
func diffFile(it *tree.Item) *diffview.File {
	if it == nil {
		return nil
	}
	at := it.Stat.Attr
	f := &diffview.File{
		Path: it.Path, Mode: at.Mode, Size: int64(at.Size), UID: at.UID, GID: at.GID, Mtime: int64(at.Mtime),
		Open: func() (io.ReadCloser, error) { return it.Open(), nil },
	}
	if target, err := it.Readlink(); err == nil && isLink(at.Mode) {
		f.Target, f.Size = target, int64(len(target))
	}
	if x, err := it.Xattrs(); err == nil {
		f.Xattrs = x
	}
	return f
}
