package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/winkfs/winkfs/tests/harness"
)

// learnEvery is how many operations pass between two looks at what exists.
const learnEvery = 20

// Play does the operations that next returns on both directories, until next
// says that there are no more. It returns those done and what differed.
func Play(t testing.TB, p *Pair, next func(step int) (Op, bool)) (done []Op, err error) {
	s, err := open(t, p)
	if err != nil {
		return nil, err
	}
	defer s.close()
	for step := 0; ; step++ {
		o, more := next(step)
		if !more {
			break
		}
		done = append(done, o)
		if err := s.do(o); err != nil {
			return done, fmt.Errorf("step %d: %s: %w", step, o, err)
		}
	}
	return done, sameTrees(p, "at the end")
}

// session is the actors at work in a pair's two directories.
type session struct {
	p                  *Pair
	subject, reference []actor
}

func open(t testing.TB, p *Pair) (*session, error) {
	s := &session{p: p}
	for range max(p.Procs, 1) {
		for _, side := range []struct {
			dir  string
			list *[]actor
		}{{p.Subject, &s.subject}, {p.Reference, &s.reference}} {
			a, err := newActor(t, side.dir, p.Procs > 0)
			if err != nil {
				s.close()
				return nil, err
			}
			*side.list = append(*side.list, a)
		}
	}
	return s, nil
}

func newActor(t testing.TB, dir string, separate bool) (actor, error) {
	if separate {
		return startProcess(t, dir)
	}
	w, err := NewWorld(dir)
	if err != nil {
		return nil, err
	}
	return &inProcess{dir, w}, nil
}

func (s *session) close() {
	for _, a := range slices.Concat(s.subject, s.reference) {
		a.close()
	}
}

// do does one operation in both worlds. What the reference's file system can't
// do at all is left out in the other.
func (s *session) do(o Op) error {
	switch o.Kind {
	case Drop:
		harness.DropCaches()
		return nil
	case Remount:
		return s.remount(o.Flags == 1)
	}
	want, err := s.reference[o.Proc].act(o)
	if err != nil || want.Unsupported {
		return err
	}
	got, err := s.subject[o.Proc].act(o)
	if err != nil {
		return err
	}
	if got.Outcome != want.Outcome {
		return fmt.Errorf("got %q, want %q", got.Outcome, want.Outcome)
	}
	return nil
}

// remount lets every process let go, mounts anew, and compares the tree with
// itself before and with the reference.
func (s *session) remount(kill bool) error {
	for _, a := range slices.Concat(s.subject, s.reference) {
		if err := a.letGo(); err != nil {
			return err
		}
	}
	if err := s.mountAnew(kill); err != nil {
		return err
	}
	for _, a := range slices.Concat(s.subject, s.reference) {
		if err := a.reopen(); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) mountAnew(kill bool) error {
	if s.p.Again == nil {
		return nil
	}
	was, err := harness.Dump(s.p.Subject)
	if err != nil {
		return err
	}
	if kill {
		s.p.Restart()
	} else {
		s.p.Again()
	}
	now, err := harness.Dump(s.p.Subject)
	if err != nil {
		return err
	}
	if diffs := harness.Differences(now, was, 0); len(diffs) > 0 {
		return fmt.Errorf("the tree differs after a remount:\n\t%s", strings.Join(diffs, "\n\t"))
	}
	return sameTrees(s.p, "after a remount")
}

func sameTrees(p *Pair, when string) error {
	got, err := harness.Dump(p.Subject)
	if err != nil {
		return fmt.Errorf("%s: %w", when, err)
	}
	want, err := harness.Dump(p.Reference)
	if err != nil {
		return err
	}
	if diffs := harness.Differences(got, want, omit); len(diffs) > 0 {
		return fmt.Errorf("trees differ %s:\n\t%s", when, strings.Join(diffs, "\n\t"))
	}
	return nil
}

// Random returns a next for Play: n operations of the generator, which looks
// at the reference now and then.
func Random(g *Gen, p *Pair, n int) func(int) (Op, bool) {
	return func(step int) (Op, bool) {
		if step%learnEvery == 0 {
			g.Learn(p.Reference)
		}
		return g.Next(), step < n
	}
}

// Recorded returns a next for Play: the operations given.
func Recorded(ops []Op) func(int) (Op, bool) {
	return func(step int) (Op, bool) {
		if step >= len(ops) {
			return Op{}, false
		}
		return ops[step], true
	}
}

// Shorten returns a shorter sequence that fails as well, by leaving out ever
// smaller runs of it for as long as again says that there is time. fails plays
// a sequence on fresh directories.
func Shorten(ops []Op, fails func([]Op) bool, again func() bool) []Op {
	for size := len(ops) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(ops) && again(); {
			shorter := append(append([]Op{}, ops[:at]...), ops[at+size:]...)
			if fails(shorter) {
				ops = shorter
				continue
			}
			at += size
		}
	}
	return ops
}
