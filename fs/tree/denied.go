package tree

import (
	"sync"
	"time"

	"github.com/winkfs/winkfs/journal"
	"github.com/winkfs/winkfs/policy"
)

// deniedEvery is how often the same refusal is journaled: a program that tries
// again and again leaves one record in that time.
const deniedEvery = time.Second

// deniedKept bounds the refusals that are remembered to tell repetitions.
const deniedKept = 256

// refusals remembers what was refused lately. The zero value is empty.
type refusals struct {
	mu   sync.Mutex
	last map[refusal]time.Time // protected by mu
}

// refusal is what makes two refusals the same.
type refusal struct {
	exec           journal.ExecID
	op, path, rule string
}

// fresh reports whether the refusal is to be journaled.
func (d *refusals) fresh(k refusal, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.last[k]) < deniedEvery {
		return false
	}
	if d.last == nil || len(d.last) >= deniedKept {
		d.last = make(map[refusal]time.Time)
	}
	d.last[k] = now
	return true
}

// Denied journals that an operation was refused, with the rule and the text
// that tells the caller what would be allowed. It is for the one place that
// turns errors into what the caller sees.
func (t *Tree) Denied(r *Request, op string, ref *Refusal) {
	if !t.readOnly {
		t.Refused(t.actors.Actor(r.TID, r.UID), r.Unique, op, ref)
	}
}

// Refused is Denied for one who is known. unique is the kernel's number of the
// request, 0 if it was none of the kernel's.
func (t *Tree) Refused(actor journal.Actor, unique uint64, op string, ref *Refusal) {
	if !t.denied.fresh(refusal{actor.Exec, op, ref.Path, ref.Rule}, time.Now()) {
		return
	}
	rec := &journal.Record{
		Op: journal.OpDenied, Actor: actor, Unique: unique, Path: ref.Path,
		Note: &journal.Note{Rule: ref.Rule, Message: ref.Message, Refused: op},
	}
	if err := t.note(rec); err != nil {
		t.log.Warn("journal a refusal", "op", op, "err", err)
	}
}

// note journals a record that changes nothing in the tree.
func (t *Tree) note(rec *journal.Record) error {
	t.still.RLock()
	defer t.still.RUnlock()
	t.order.Lock()
	defer t.order.Unlock()
	if _, err := t.store.Append(rec, nil); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.Apply(rec)
	return nil
}

// forbid returns the refusal of what the profile does not allow anyone.
func (t *Tree) forbid(n *node, name, message string) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	p := path(n)
	if name != "" {
		p = join(n, name)
	}
	return &Refusal{Decision: policy.Decision{Verdict: policy.Forbidden, Rule: "profile: " + t.profile.String(), Message: message}, Path: p}
}
