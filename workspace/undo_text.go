package workspace

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/winkfs/winkfs/diffview"
	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// mergedFile is a text with the undone lines taken out.
type mergedFile struct {
	text []byte
	data []journal.DataRef
}

// versions are a file's bytes before and after the undone records, and now. A
// missing one doesn't differ from its neighbour.
type versions struct{ before, after, now *tree.Item }

// mergeFiles merges the files that can be merged. Those that can't are left
// for UndoSet to report.
func (u *undoPlan) mergeFiles(ids []journal.NodeID) error {
	found, err := u.versions()
	if err != nil {
		return err
	}
	for _, id := range ids {
		m, err := mergeText(found[id])
		if err != nil {
			return err
		}
		if m == nil {
			continue
		}
		if len(m.text) > 0 {
			ref, err := u.w.store.Put(m.text)
			if err != nil {
				return fmt.Errorf("store merged text: %w", err)
			}
			m.data = []journal.DataRef{ref}
		}
		u.merged[id] = m
	}
	return nil
}

// versions finds the three versions of every file that differs between them.
// The middle one is the state after the last undone record: what others wrote
// in between shows there as if it were undone, too, so such files don't merge.
func (u *undoPlan) versions() (map[journal.NodeID]*versions, error) {
	first, last := u.recs[0].Seq, u.recs[len(u.recs)-1].Seq
	mixed, err := u.writtenByOthers(first, last)
	if err != nil {
		return nil, err
	}
	var views [3]*tree.View
	for i, seq := range []journal.Seq{first - 1, last, u.head} {
		if views[i], err = u.w.tree.At(seq); err != nil {
			return nil, err
		}
	}
	undone, err := tree.Changes(views[0], views[1])
	if err != nil {
		return nil, err
	}
	later, err := tree.Changes(views[1], views[2])
	if err != nil {
		return nil, err
	}
	found := map[journal.NodeID]*versions{}
	for _, c := range undone {
		if c.Old != nil && c.New != nil && !mixed[c.New.ID()] {
			found[c.New.ID()] = &versions{before: c.Old, after: c.New, now: c.New}
		}
	}
	for _, c := range later {
		if c.Old != nil && c.New != nil && found[c.New.ID()] != nil {
			found[c.New.ID()].now = c.New
		}
	}
	return found, nil
}

// writtenByOthers returns the files that records between the undone ones wrote
// to.
func (u *undoPlan) writtenByOthers(first, last journal.Seq) (map[journal.NodeID]bool, error) {
	undone := map[journal.Seq]bool{}
	for _, r := range u.recs {
		undone[r.Seq] = true
	}
	mixed := map[journal.NodeID]bool{}
	err := u.w.store.Records(first, last, func(r *journal.Record) error {
		if !undone[r.Seq] {
			for id := range nodesOf(r) {
				mixed[id] = true
			}
		}
		return nil
	})
	return mixed, err
}

// mergeText takes the undone lines out of a text that went on changing; nil
// when that is not possible.
func mergeText(v *versions) (*mergedFile, error) {
	if v == nil {
		return nil, nil
	}
	var text [3][]byte
	for i, it := range []*tree.Item{v.after, v.now, v.before} {
		b, err := readText(it)
		if errors.Is(err, errNotText) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		text[i] = b
	}
	m := diffview.Merge(text[0], text[1], text[2])
	if len(m.Conflicts) > 0 {
		return nil, nil
	}
	return &mergedFile{text: m.Text}, nil
}

var errNotText = errors.New("not text")

func readText(it *tree.Item) ([]byte, error) {
	if !isRegular(it.Stat.Attr.Mode) || it.Stat.Attr.Size > diffview.MaxText {
		return nil, errNotText
	}
	b, err := io.ReadAll(it.Open())
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", it.Path, err)
	}
	if !diffview.IsText(b) {
		return nil, errNotText
	}
	return b, nil
}

// node returns the node's state with the merged text's size.
func (m *mergedFile) node(n *journal.Node) *journal.Node {
	n = n.Clone()
	n.Own, n.OwnContent, n.Attr.Size = true, true, uint64(len(m.text))
	n.Attr.Mtime = journal.Timespec(time.Now().UnixNano())
	n.Attr.Ctime = n.Attr.Mtime
	return n
}

// content returns the change that replaces the whole content by the text.
func (m *mergedFile) content(id journal.NodeID, c *journal.Content, size uint64) []journal.Change {
	var before, after []journal.Extent
	if c != nil {
		before = c.Range(0, wholeFile)
	}
	for _, d := range m.data {
		after = append(after, journal.Extent{Len: d.Len, Kind: journal.ExtentData, Loc: d.Loc})
	}
	n := max(size, uint64(len(m.text)))
	if len(before) > 0 {
		n = max(n, before[len(before)-1].End())
	}
	if n == 0 {
		return nil
	}
	return []journal.Change{{Content: &journal.ContentChange{ID: id, Len: n, Before: before, After: after}}}
}

// wholeFile is longer than any file.
const wholeFile = 1<<63 - 1
