package tree

import (
	"errors"
	"slices"
	"testing"

	"github.com/winkfs/winkfs/journal"
	"github.com/winkfs/winkfs/policy"
)

// byExec is an Attributor whose threads belong to the exec of their number.
type byExec struct{}

func (byExec) Actor(tid, uid uint32) journal.Actor {
	return journal.Actor{PID: tid, TID: tid, UID: uid, Comm: "cat", Exec: journal.ExecID(tid)}
}

func (byExec) Capable(uint32, int) bool { return false }

func (byExec) InGroup(uint32, uint32) bool { return false }
func (g *rig) opens() []string {
	g.Helper()
	var got []string
	g.must(g.store.Records(1, 0, func(r *journal.Record) error {
		if r.Op == journal.OpOpen {
			got = append(got, r.Path+" "+r.Note.Message)
		}
		return nil
	}))
	return got
}

func TestEachExecsFirstOpenIsJournaled(t *testing.T) {
	g := newRig(t, map[string]string{"d/a": "x", "b": "y"})
	g.t.actors = byExec{}
	open := func(exec uint32, name string, a Access) {
		t.Helper()
		g.must(g.t.Open(&Request{TID: exec}, g.id(name), a))
	}
	open(1, "d/a", AccessRead)
	open(1, "d/a", AccessRead)
	open(1, "d/a", AccessReadWrite)
	open(2, "d/a", AccessRead)
	open(2, "b", AccessExec)
	want := []string{"d/a read", "d/a read-write", "d/a read", "b exec"}
	if got := g.opens(); !slices.Equal(got, want) {
		t.Errorf("journaled %q, want %q", got, want)
	}
}

// refuse refuses one kind of access.
type refuse policy.Op

func (r refuse) Decide(q *policy.Request) policy.Decision {
	if q.Op == policy.Op(r) {
		return policy.Decision{Verdict: policy.ReadOnly, Rule: "test"}
	}
	return policy.Decision{}
}

func TestOpenIsDecidedByItsAccess(t *testing.T) {
	g := newRig(t, map[string]string{"a": "x"})
	id := g.id("a")
	tests := []struct {
		refused policy.Op
		access  Access
		ok      bool
	}{
		{policy.OpRead, AccessRead, false}, {policy.OpRead, AccessExec, false}, {policy.OpRead, AccessReadWrite, false}, {policy.OpRead, AccessWrite, true},
		{policy.OpWrite, AccessRead, true}, {policy.OpWrite, AccessWrite, false}, {policy.OpWrite, AccessReadWrite, false},
	}
	for _, tt := range tests {
		g.t.decider = refuse(tt.refused)
		before := len(g.opens())
		err := g.t.Open(g.r, id, tt.access)
		var ref *Refusal
		if tt.ok != (err == nil) || !tt.ok && !errors.As(err, &ref) {
			t.Errorf("open for %s with %v refused: %v", tt.access, tt.refused, err)
		}
		if !tt.ok && len(g.opens()) != before {
			t.Errorf("a refused open for %s was journaled as one", tt.access)
		}
	}
}
