package workspace

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// DiffBetween writes what differs from a point of one workspace to a point of
// another, each "" for the present. Both are open for reading; labels name the
// two sides in the document. Req's own points and command are not used.
//
// Files of the same number are the same file where the workspaces descend from
// one another, so that a rename shows as one. Elsewhere files are compared by
// path.
func DiffBetween(ctx context.Context, a, b *Workspace, from, to string, labels [2]string, req *DiffRequest, out io.Writer) (*DiffSummary, error) {
	va, err := a.sideView(from)
	if err != nil {
		return nil, err
	}
	vb, err := b.sideView(to)
	if err != nil {
		return nil, err
	}
	common, err := commonNumbers(a, b)
	if err != nil {
		return nil, err
	}
	var changed []tree.Changed
	if reflect.DeepEqual(a.cfg.places(), b.cfg.places()) {
		changed, err = tree.Changes(va, vb.Beside(va, apart(common)))
	} else {
		changed, err = tree.ChangesByPath(va, vb)
	}
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	d := &comparison{labels: labels, changed: newPathSet(req.Paths).only(changed)}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := d.write(req, out); err != nil {
		return nil, err
	}
	return d.summary(), nil
}

// sideView returns the view at a point, "" for the present.
func (w *Workspace) sideView(point string) (*tree.View, error) {
	return w.view(point, func() (*tree.View, error) { return w.tree.Snapshot(), nil })
}

// places returns what decides over the numbers of lower files, and over where
// they show: the sources without their modes.
func (c *Config) places() []Source {
	out := make([]Source, len(c.Sources))
	for i, s := range c.Sources {
		s.Mode = ""
		out[i] = s
	}
	return out
}

// apart moves the numbers that are not common out of the other side's way.
func apart(common journal.NodeID) func(journal.NodeID) journal.NodeID {
	return func(id journal.NodeID) journal.NodeID {
		if id >= common {
			return id | 1<<62
		}
		return id
	}
}

// descent is one step of a workspace's descent: where a fork left its parent.
type descent struct {
	parent   string
	nextNode journal.NodeID
}

// commonNumbers returns the lowest number of a created node that doesn't mean
// the same node in both workspaces.
func commonNumbers(a, b *Workspace) (journal.NodeID, error) {
	da, err := a.descent()
	if err != nil {
		return 0, err
	}
	db, err := b.descent()
	if err != nil {
		return 0, err
	}
	common := journal.CreatedBit
	for i := 0; i < len(da) && i < len(db) && da[i].parent == db[i].parent; i++ {
		// Both come from this one; what it made before either left it is in both.
		if common = min(da[i].nextNode, db[i].nextNode); da[i].nextNode != db[i].nextNode {
			break
		}
	}
	return common, nil
}

// descent returns the ways from the first ancestor down to the workspace, and
// as the last one the workspace itself, which goes on.
func (w *Workspace) descent() ([]descent, error) {
	seqs, err := w.store.SeqsOfOp(journal.OpClone)
	if err != nil {
		return nil, err
	}
	if n := len(seqs); n > 0 && strings.HasPrefix(filepath.Base(w.entry.Dir), snapPrefix) {
		seqs = seqs[:n-1] // the snapshot's own
	}
	var out []descent
	for _, seq := range seqs {
		rec, err := w.record(seq)
		if err != nil {
			return nil, err
		}
		note := forkNote{}
		if rec.Note == nil || json.Unmarshal([]byte(rec.Note.Text), &note) != nil {
			return nil, Fail(CodeCorrupt, "read record %d: it doesn't say what workspace %s was made of", seq, w.entry.ID)
		}
		out = append(out, descent{note.Parent, note.NextNode})
	}
	return append(out, descent{w.entry.ID, ^journal.NodeID(0)}), nil
}
