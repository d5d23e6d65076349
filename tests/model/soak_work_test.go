package model

import (
	"fmt"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/winkfs/winkfs/tests/harness"
)

const (
	// partPrefix begins the names of the parts that the processes work in.
	partPrefix = "part"
	// roundOps is how many operations a part lasts.
	roundOps = 3000
	// visiblePolls and visibleEvery bound the wait until an edit of the host
	// shows. Polls are counted rather than time, so that a stopped test does not
	// fail when it goes on.
	visiblePolls = 5000
	visibleEvery = time.Millisecond
)

// work does rounds until the soak is over. The part of the last one stays.
func (s *soak) work(i int) error {
	for round := 0; ; round++ {
		name := fmt.Sprintf("%s%d-%d", partPrefix, i, round)
		seed := s.seed + uint64(i)<<32 + uint64(round)
		if err := s.begin(name, round); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if err := s.round(name, seed); err != nil {
			return fmt.Errorf("round %d, seed %d: %w", round, seed, err)
		}
		if !s.pause(0) {
			return nil
		}
		if err := s.removePart(name); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
}

// begin makes a part: each fourth in the source, as the host would, the others
// in the mount. What is removed of the source stays in the daemon's memory, as a
// change.
func (s *soak) begin(name string, round int) error {
	made := s.w.Mount
	if round%4 == 0 {
		made = s.lower
	}
	for _, top := range []string{made, s.plain} {
		if err := copyTree(s.template, filepath.Join(top, name)); err != nil {
			return err
		}
	}
	if _, err := s.awaitSame(s.pair(name)); err != nil {
		return fmt.Errorf("a part that is new: %w", err)
	}
	return nil
}

// pair is a part as it shows and as it should.
func (s *soak) pair(name string) *Pair {
	return &Pair{Subject: filepath.Join(s.w.Mount, name), Reference: filepath.Join(s.plain, name), Procs: 1}
}

// round works in a part.
func (s *soak) round(name string, seed uint64) error {
	p := s.pair(name)
	g := NewGen(seed)
	g.Procs = 1
	next := Random(g, p, roundOps)
	done, err := Play(s.t, p, func(step int) (Op, bool) {
		select {
		case <-s.over:
			return Op{}, false
		default:
			return next(step)
		}
	})
	s.count("operations", len(done))
	s.count("rounds", 1)
	if err != nil {
		return fmt.Errorf("%w, after\n%s", err, lastOps(done, 30))
	}
	return nil
}

// removePart removes a part in the mount and, once it is hidden there, in the
// source, whose inode numbers the next part then gets.
func (s *soak) removePart(name string) error {
	for _, top := range []string{s.w.Mount, s.plain, s.lower} {
		if err := harness.RemoveTree(filepath.Join(top, name)); err != nil {
			return err
		}
	}
	return nil
}

// awaitSame waits until both trees of a pair are equal and returns how long that
// took.
func (s *soak) awaitSame(p *Pair) (time.Duration, error) {
	begin := time.Now()
	for polls := 0; ; polls++ {
		err := sameTrees(p, "after an edit of the host")
		if err == nil {
			return time.Since(begin), nil
		}
		if polls == visiblePolls {
			return 0, err
		}
		time.Sleep(visibleEvery)
	}
}

func copyTree(from, to string) error {
	out, err := osexec.Command("cp", "-a", "--sparse=always", "--", from, to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("copy tree: %w: %s", err, out)
	}
	return nil
}

func lastOps(ops []Op, n int) string {
	var b strings.Builder
	for _, o := range ops[max(0, len(ops)-n):] {
		fmt.Fprintln(&b, o)
	}
	return b.String()
}
