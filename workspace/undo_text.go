package workspace

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"time"

	"github.com/winkfs/winkfs/diffview"
	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// mergedFile is a text with the undone lines taken out.
type mergedFile struct {
	text []byte
	mode uint32        // permission bits to set; 0 = leave
	was  *journal.Node // the file's state that it was merged with
	data []journal.DataRef
}

// versions are a file's states before and after the undone records, and now.
// They may be three nodes: editors replace a file by renaming another over it.
type versions struct{ before, after, now *tree.Item }

// sameNode reports whether the file is one node throughout, so that UndoSet can
// undo what is not about its bytes.
func (v *versions) sameNode() bool {
	return v.before.ID() == v.after.ID() && v.after.ID() == v.now.ID()
}

// mergeFiles merges the files that both the undone records and later ones
// changed. wanted are those that are one node throughout and that UndoSet
// can't undo by itself.
func (u *undoPlan) mergeFiles(wanted []journal.NodeID) error {
	found, now, err := u.versions()
	if err != nil {
		return err
	}
	for _, v := range found {
		if v.sameNode() && !slices.Contains(wanted, v.now.ID()) {
			continue
		}
		m, why, err := mergeText(v)
		if err != nil {
			return err
		}
		switch {
		case m == nil && v.sameNode(): // UndoSet says why not
		case m == nil:
			c, err := u.blamed(Conflict{Path: v.now.Path, Reason: why}, journal.Conflict{Node: v.after.ID(), Len: wholeFile}, journal.Conflict{Node: v.now.ID(), Len: wholeFile})
			if err != nil {
				return err
			}
			u.refused = append(u.refused, c)
			u.told[v.before.ID()], u.told[v.after.ID()] = true, true
		default:
			if err := u.accept(v, m, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// accept takes a merge into the plan.
func (u *undoPlan) accept(v *versions, m *mergedFile, now *tree.View) error {
	if len(m.text) > 0 {
		ref, err := u.w.store.Put(m.text)
		if err != nil {
			return fmt.Errorf("store merged text: %w", err)
		}
		m.data = []journal.DataRef{ref}
	}
	u.merged[v.now.ID()] = m
	u.paths = append(u.paths, v.now.Path)
	if v.sameNode() {
		return nil
	}
	parent, err := now.Find(path.Dir("/" + v.now.Path)[1:])
	if err != nil {
		return fmt.Errorf("find directory of %s: %w", v.now.Path, err)
	}
	u.names[entryKey{parent.ID(), path.Base(v.now.Path)}] = true
	u.dropped[v.before.ID()], u.dropped[v.after.ID()] = true, true
	if was, is := v.before.Stat.Attr.Mode, v.now.Stat.Attr.Mode; was != v.after.Stat.Attr.Mode && is == v.after.Stat.Attr.Mode {
		m.mode = was
	}
	return nil
}

// versions finds the files that the undone records changed and later ones
// changed, too, under the same path. What others wrote between the undone
// records shows in the middle version as if it were undone, so files that they
// touched don't merge.
func (u *undoPlan) versions() ([]*versions, *tree.View, error) {
	first, last := u.recs[0].Seq, u.recs[len(u.recs)-1].Seq
	between, err := u.others(first, last)
	if err != nil {
		return nil, nil, err
	}
	var views [3]*tree.View
	for i, seq := range []journal.Seq{first - 1, last, u.head} {
		if views[i], err = u.w.tree.At(seq); err != nil {
			return nil, nil, err
		}
	}
	undone, err := tree.Changes(views[0], views[1])
	if err != nil {
		return nil, nil, err
	}
	later, err := tree.Changes(views[1], views[2])
	if err != nil {
		return nil, nil, err
	}
	found := map[string]*versions{}
	for _, c := range u.touched().only(undone) {
		if inPlace(c) && !between[c.New.ID()] {
			found[c.New.Path] = &versions{before: c.Old, after: c.New}
		}
	}
	var out []*versions
	for _, c := range later {
		if v := found[c.Path()]; v != nil && inPlace(c) {
			v.now = c.New
			out = append(out, v)
		}
	}
	return out, views[2], nil
}

// inPlace reports whether a change is about one path that is a regular file on
// both sides.
func inPlace(c tree.Changed) bool {
	return c.Old != nil && c.New != nil && c.Old.Path == c.New.Path && isRegular(c.Old.Stat.Attr.Mode) && isRegular(c.New.Stat.Attr.Mode)
}

func (u *undoPlan) touched() *touched {
	t := &touched{nodes: map[journal.NodeID]bool{}, names: map[entryKey]bool{}}
	for _, r := range u.recs {
		_ = t.add(r)
	}
	return t
}

// others returns the nodes that records of the range touched that are not
// undone.
func (u *undoPlan) others(first, last journal.Seq) (map[journal.NodeID]bool, error) {
	undone := map[journal.Seq]bool{}
	for _, r := range u.recs {
		undone[r.Seq] = true
	}
	ids := map[journal.NodeID]bool{}
	err := u.w.store.Records(first, last, func(r *journal.Record) error {
		if !undone[r.Seq] {
			for id := range nodesOf(r) {
				ids[id] = true
			}
		}
		return nil
	})
	return ids, err
}

// mergeText takes the undone lines out of a text that went on changing. Where
// that is not possible it says why.
func mergeText(v *versions) (*mergedFile, string, error) {
	var text [3][]byte
	for i, it := range []*tree.Item{v.after, v.now, v.before} {
		b, err := readText(it)
		if errors.Is(err, errNotText) {
			return nil, "it was written later, too, and is not text", nil
		}
		if err != nil {
			return nil, "", err
		}
		text[i] = b
	}
	m := diffview.Merge(text[0], text[1], text[2])
	if n := len(m.Conflicts); n > 0 {
		return nil, fmt.Sprintf("%d place(s) of it were changed later, too", n), nil
	}
	return &mergedFile{text: m.Text}, "", nil
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
	if m.mode != 0 {
		n.Attr.Mode = m.mode
	}
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
