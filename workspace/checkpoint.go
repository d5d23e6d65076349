package workspace

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/winkfs/winkfs/journal"
)

// maxCheckpoint is the length of the longest name, in bytes. It stands beside
// the expression because a counted repetition is compiled as often as it counts.
const maxCheckpoint = 128

var goodCheckpoint = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9._+-]*$`)

// Checkpoint names the present point, forgets a name, or lists the names.
func (w *Workspace) Checkpoint(_ context.Context, req *CheckpointRequest) (*CheckpointResult, error) {
	if req.List {
		return w.listCheckpoints()
	}
	w.admin.Lock()
	defer w.admin.Unlock()
	name := req.Name
	if name == "" {
		name = fmt.Sprintf("cp-%s", time.Now().UTC().Format("20060102-150405.000"))
	}
	if !req.Delete {
		if err := checkName("make checkpoint", name); err != nil {
			return nil, err
		}
	}
	op := journal.OpCheckpoint
	if req.Delete {
		op = journal.OpUncheckpoint
	}
	var at journal.Seq
	_, err := w.tree.Commit(nil, func(s *journal.State) (*journal.Record, error) {
		old, known := s.Checkpoints[name]
		switch {
		case req.Delete && !known:
			return nil, Fail(CodeNothing, "delete checkpoint: there is no %q", name)
		case !req.Delete && known:
			return nil, Fail(CodeUsage, "make checkpoint: %q stands for record %d already", name, old).
				Hinted("choose another name, or delete that one: winkfs checkpoint --delete %s", name)
		case req.Delete:
			at = old
		default:
			at = s.Seq
		}
		return &journal.Record{Op: op, Actor: w.person(), Note: &journal.Note{Checkpoint: name, Point: at}}, nil
	})
	if err != nil {
		return nil, err
	}
	if err := w.store.Sync(); err != nil {
		return nil, err
	}
	res := &CheckpointResult{Schema: "winkfs.checkpoint/v1", Checkpoints: []CheckpointInfo{}}
	if !req.Delete {
		res.Checkpoints = append(res.Checkpoints, CheckpointInfo{Name: name, Seq: uint64(at), Time: Time{time.Now().UTC()}})
	}
	return res, nil
}

// checkName refuses names of checkpoints and groups that would be read as
// another kind of point, or as a range.
func checkName(what, name string) error {
	if len(name) > maxCheckpoint || !goodCheckpoint.MatchString(name) || strings.Contains(name, "..") || LooksLikePoint(name) {
		return Fail(CodeUsage, what+" %q: a name begins with a letter, has letters, digits and . _ + -, and doesn't look like another point", name)
	}
	return nil
}

func (w *Workspace) listCheckpoints() (*CheckpointResult, error) {
	res := &CheckpointResult{Schema: "winkfs.checkpoint/v1", Checkpoints: []CheckpointInfo{}}
	err := w.read(func(s *journal.State) {
		for name, seq := range s.Checkpoints {
			res.Checkpoints = append(res.Checkpoints, CheckpointInfo{Name: name, Seq: uint64(seq)})
		}
	})
	if err != nil {
		return nil, err
	}
	for i := range res.Checkpoints {
		c := &res.Checkpoints[i]
		if c.Seq == 0 {
			continue
		}
		err := w.store.Records(journal.Seq(c.Seq), journal.Seq(c.Seq), func(r *journal.Record) error {
			c.Time = TimeOf(r.Time)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(res.Checkpoints, func(a, b CheckpointInfo) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Name, b.Name))
	})
	return res, nil
}
