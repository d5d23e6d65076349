package model

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/winkfs/winkfs/tests/harness"
)

// learnEvery is how many operations pass between two looks at what exists.
const learnEvery = 20

// Play does the operations that next returns on both directories, until next
// says that there are no more. It returns those done and what differed.
func Play(p *Pair, next func(step int) (Op, bool)) (done []Op, err error) {
	subject, err := NewWorld(p.Subject)
	if err != nil {
		return nil, err
	}
	defer subject.Close()
	reference, err := NewWorld(p.Reference)
	if err != nil {
		return nil, err
	}
	defer reference.Close()
	for step := 0; ; step++ {
		o, more := next(step)
		if !more {
			break
		}
		done = append(done, o)
		if err := both(subject, reference, o); err != nil {
			return done, fmt.Errorf("step %d: %s: %w", step, o, err)
		}
	}
	return done, sameTrees(p, "at the end")
}

// both does one operation in both worlds. What the reference's file system
// can't do at all is left out in the other.
func both(subject, reference *World, o Op) error {
	want, err := reference.Do(o)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	got, _ := subject.Do(o)
	if got != want {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	return nil
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
