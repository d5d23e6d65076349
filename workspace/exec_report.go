package workspace

import (
	"bytes"
	"strings"
	"sync"

	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// report fills in what a command changed and what it was refused: the net
// effect of its own records, whatever others did meanwhile.
func (w *Workspace) report(res *ExecResult, x *runningExec, last journal.Seq) error {
	res.Changes = effects(nil)
	t := &touched{nodes: map[journal.NodeID]bool{}, names: map[entryKey]bool{}}
	err := w.store.Records(x.rec.First, last, func(r *journal.Record) error {
		if r.Actor.Exec != x.rec.ID {
			return nil
		}
		if r.Op == journal.OpDenied && r.Note != nil {
			res.Denied = append(res.Denied, Denied{Op: r.Note.Refused, Path: r.Path, Rule: r.Note.Rule, Message: r.Note.Message})
		}
		return t.add(r)
	})
	if err != nil || len(t.nodes)+len(t.names) == 0 {
		return err
	}
	before, err := w.tree.At(x.rec.First - 1)
	if err != nil {
		return err
	}
	after, err := w.tree.At(last)
	if err != nil {
		return err
	}
	changed, err := tree.Changes(before, after)
	if err != nil {
		return err
	}
	res.Changes = effects(t.only(changed))
	return nil
}

// capture keeps the beginning of a stream.
type capture struct {
	mu  sync.Mutex
	buf bytes.Buffer
	max int
	cut bool
}

func newCapture(limit int) *capture { return &capture{max: limit} }

// Write keeps what fits and takes the rest, so that the command goes on.
func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keep := min(len(p), c.max-c.buf.Len())
	c.buf.Write(p[:keep])
	c.cut = c.cut || keep < len(p)
	return len(p), nil
}

// text returns what was kept as valid UTF-8, and whether something was cut.
func (c *capture) text() (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.ToValidUTF8(c.buf.String(), "\ufffd"), c.cut
}
