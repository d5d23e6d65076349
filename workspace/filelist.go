package workspace

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// Files lists the files that the workspace changed and that are there.
func (w *Workspace) Files(_ context.Context, req *FilesRequest) (*FilesResult, error) {
	changed, err := w.changed()
	if err != nil {
		return nil, err
	}
	h := &fileHistory{version: map[journal.NodeID]uint64{}, last: map[journal.NodeID]*journal.Record{}}
	if err := w.store.Records(w.store.First(), w.store.Head(), h.add); err != nil {
		return nil, err
	}
	res := &FilesResult{Schema: "winkfs.files/v1", Files: []ListedFile{}}
	for _, c := range newPathSet(req.Paths).only(changed) {
		if c.New != nil && !c.New.IsDir() {
			res.Files = append(res.Files, h.info(c.New))
		}
	}
	slices.SortFunc(res.Files, func(a, b ListedFile) int {
		return slices.Compare(strings.Split(a.Path, "/"), strings.Split(b.Path, "/"))
	})
	return res, nil
}

// fileHistory counts the versions of files over the records. A file that takes
// the place of another, as editors do it, goes on with that one's count. What gc
// has dropped doesn't count any more.
type fileHistory struct {
	version map[journal.NodeID]uint64          // content changes, and the hydrated content
	last    map[journal.NodeID]*journal.Record // that changed the file, without its changes
}

// add takes in a record.
func (h *fileHistory) add(r *journal.Record) error {
	var written, victim journal.NodeID
	slim := &journal.Record{Seq: r.Seq, Time: r.Time, Actor: r.Actor}
	for _, c := range r.Changes {
		switch {
		case c.Content != nil && c.Content.Len > 0:
			h.last[c.Content.ID] = slim
			if written != c.Content.ID {
				written = c.Content.ID
				h.bump(written)
			}
		case c.Node != nil && c.Node.After != nil && c.Node.After.Own:
			h.last[c.Node.ID] = slim
			if lostName(c.Node) {
				victim = c.Node.ID
			}
			if emptied(c.Node) {
				written = c.Node.ID
				h.bump(written)
			}
		}
	}
	if r.Op == journal.OpRename && victim != 0 {
		for _, c := range r.Changes {
			if c.Entry != nil && c.Entry.After.Kind == journal.EntryNode && c.Entry.After.Node != victim {
				h.version[c.Entry.After.Node] = h.of(victim) + max(h.version[c.Entry.After.Node], 1)
				break
			}
		}
	}
	return nil
}

// bump counts one more content.
func (h *fileHistory) bump(id journal.NodeID) {
	if h.version[id] == 0 && id < journal.CreatedBit {
		h.version[id] = 1 // what was hydrated
	}
	h.version[id]++
}

// of returns a file's version: 1 for one that was never written.
func (h *fileHistory) of(id journal.NodeID) uint64 { return max(h.version[id], 1) }

// lostName reports whether a file lost a name by the change.
func lostName(c *journal.NodeChange) bool {
	if isDirMode(c.After.Attr.Mode) {
		return false
	}
	return c.After.Attr.Nlink == 0 || c.Before != nil && c.Before.Own && c.After.Attr.Nlink < c.Before.Attr.Nlink
}

// emptied reports whether a lower file was truncated to nothing, which needs
// no change of its content.
func emptied(c *journal.NodeChange) bool {
	return c.ID < journal.CreatedBit && c.After.OwnContent && c.After.Attr.Size == 0 && (c.Before == nil || !c.Before.OwnContent)
}

func (h *fileHistory) info(it *tree.Item) ListedFile {
	at := it.Stat.Attr
	f := ListedFile{Path: it.Path, Kind: fileKind(at.Mode), Size: at.Size, Version: h.of(it.ID()), Created: TimeOf(at.Btime), Updated: TimeOf(at.Mtime)}
	if r := h.last[it.ID()]; r != nil {
		f.Updated, f.Exec = TimeOf(r.Time), uint64(r.Actor.Exec)
	}
	return f
}

// fileKind names the type of a file.
func fileKind(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return "file"
	case unix.S_IFLNK:
		return "symlink"
	case unix.S_IFIFO:
		return "fifo"
	case unix.S_IFSOCK:
		return "socket"
	}
	return "other"
}
