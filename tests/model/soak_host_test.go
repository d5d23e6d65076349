package model

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/winkfs/winkfs/tests/harness"
)

// hostPart is the part of the source that only the host changes.
const hostPart = "host"

const (
	// editEvery is how long the host rests between two edits.
	editEvery = 50 * time.Millisecond
	// hostOps is how many edits the host does before it begins anew.
	hostOps = 300
)

// editHost does random operations in the source, the same in the plain
// directory, and waits after each until the mount shows it. The times that it
// reports have in them how long the comparison takes, which reads both trees.
func (s *soak) editHost() error {
	var took []time.Duration
	defer func() {
		slices.Sort(took)
		if n := len(took); n > 0 {
			s.t.Logf("%d edits of the host showed after p50 %v, p99 %v, at most %v", n, took[n/2], took[n*99/100], took[n-1])
		}
	}()
	for round := 0; s.pause(0); round++ {
		if err := s.hostRound(s.seed^uint64(round)<<16, &took); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return nil
}

func (s *soak) hostRound(seed uint64, took *[]time.Duration) error {
	p := &Pair{Subject: filepath.Join(s.lower, hostPart), Reference: filepath.Join(s.plain, hostPart)}
	shown := &Pair{Subject: filepath.Join(s.w.Mount, hostPart), Reference: p.Reference}
	for _, dir := range []string{p.Subject, p.Reference} {
		if err := empty(dir); err != nil {
			return err
		}
		if err := copyTree(filepath.Join(s.template, "d0"), filepath.Join(dir, "d")); err != nil {
			return err
		}
	}
	if _, err := s.awaitSame(shown); err != nil {
		return err
	}
	actors, err := open(s.t, p)
	if err != nil {
		return err
	}
	defer actors.close()
	next := Random(NewGen(seed), p, hostOps)
	for step := 0; s.pause(editEvery); step++ {
		o, more := next(step)
		if !more {
			break
		}
		if err := actors.do(o); err != nil {
			return fmt.Errorf("step %d: %s: %w", step, o, err)
		}
		d, err := s.awaitSame(shown)
		if err != nil {
			return fmt.Errorf("seed %d, step %d: %s: %w", seed, step, o, err)
		}
		*took = append(*took, d)
		s.count("host edits", 1)
	}
	return nil
}

// empty removes all that is in a directory.
func empty(dir string) error {
	list, err := os.ReadDir(dir)
	for _, d := range list {
		err = errors.Join(err, harness.RemoveTree(filepath.Join(dir, d.Name())))
	}
	return err
}
