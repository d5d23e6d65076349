package main

import (
	"os/exec"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// warmth says how a row's caches are before each run.
type warmth int

const (
	asIs    warmth = iota // whatever the runs before left
	warm                  // runs before, not counted: see warmUp
	cold                  // caches dropped, then mounted anew, a second ago
	atOnce                // as cold, but without the second
	anew                  // mounted over a fresh upper, for what changes lower files
	settled               // nothing waits to be written, and memory is warm: see settle
)

// row is one workload.
type row struct {
	name   string
	state  warmth
	memory int64         // bytes that a settled run may need
	budget float64       // ratio to native; 0 = none
	atMost time.Duration // in place of a ratio
	// factor is by how much winkfs must beat fuse-overlayfs; 0 = not asked.
	factor float64
	only   []string // systems that it runs on; nil = all but the audited one
	opens  bool     // run on the audited system, too
	tool   string   // a program that not every machine has; without it the row is left out
	// prepare makes ready for one run, uncounted; nil = nothing to do.
	prepare func(sys *system, dir string) error
	// work is timed. It may return its own time instead, for work that has
	// parts that don't count.
	work func(sys *system, dir string) (time.Duration, error)
	// tidy removes what the work left, uncounted.
	tidy func(sys *system, dir string) error
}

// on reports whether the row is run on a system.
func (r *row) on(system string) bool {
	switch {
	case system == audited:
		return r.opens
	case r.only == nil:
		return true
	}
	return slices.Contains(r.only, system)
}

// lacks returns why the row can't be run here at all, nil if it can.
func (r *row) lacks() error {
	if r.tool == "" {
		return nil
	}
	_, err := exec.LookPath(r.tool)
	return err
}

// result is what the runs of one row took.
type result struct {
	times map[string][]time.Duration
	errs  map[string]error
}

// patience is how long another system's run may take to be run again.
const patience = 20 * time.Second

// measure runs a row on all systems in turn.
func measure(c *config, r row, systems []*system) *result {
	res := &result{times: map[string][]time.Duration{}, errs: map[string]error{}}
	done := map[string]bool{}
	for run := range c.runs {
		for _, sys := range systems {
			if sys.missing != nil || done[sys.name] || res.errs[sys.name] != nil || !r.on(sys.name) {
				continue
			}
			d, err := once(r, sys, run)
			if err != nil {
				res.errs[sys.name] = err
				continue
			}
			res.times[sys.name] = append(res.times[sys.name], d)
			if d > patience && (sys.name == overlay || sys.name == fuseovl) {
				done[sys.name] = true
			}
		}
	}
	return res
}

// once does one run.
func once(r row, sys *system, run int) (time.Duration, error) {
	if err := makeReady(r, sys, run); err != nil {
		return 0, err
	}
	if r.prepare != nil {
		if err := r.prepare(sys, sys.dir); err != nil {
			return 0, err
		}
	}
	begin := time.Now()
	own, err := r.work(sys, sys.dir)
	took := time.Since(begin)
	if own > 0 {
		took = own
	}
	if r.tidy != nil {
		if terr := r.tidy(sys, sys.dir); err == nil {
			err = terr
		}
	}
	return took, err
}

// warmUp runs the work uncounted: four times before the first run, once before
// the others. Once is not enough: after a file was read through FUSE the kernel
// asks for its attributes once more (fuse_invalidate_atime), and on a virtual
// machine that gives idle memory back the native passes, too, only reach their
// speed at the fourth.
func warmUp(r row, sys *system, run int) error {
	n := 1
	if run == 0 {
		n = 4
	}
	for range n {
		if _, err := r.work(sys, sys.dir); err != nil {
			return err
		}
	}
	return nil
}

func makeReady(r row, sys *system, run int) error {
	switch r.state {
	case cold:
		err := sys.remount()
		time.Sleep(time.Second)
		return err
	case atOnce:
		return sys.remount()
	case anew:
		if sys.name != native {
			return sys.fresh()
		}
	case warm:
		return warmUp(r, sys, run)
	case settled:
		return settle(r.memory)
	}
	return nil
}

// settle writes what other runs have left to the disk, and then touches as much
// memory as the run may need. A virtual machine's host may have taken back the
// memory that lies idle: touching a page first then takes ten times as long,
// and whoever runs first would pay for all.
func settle(memory int64) error {
	unix.Sync()
	p, err := unix.Mmap(-1, 0, int(memory), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return err
	}
	return unix.Munmap(p)
}

// median returns 0 for no runs.
func (r *result) median(system string) time.Duration {
	t := slices.Sorted(slices.Values(r.times[system]))
	if len(t) == 0 {
		return 0
	}
	return t[len(t)/2]
}

// ratio returns how many times the native time a system takes, 0 if unknown.
func (r *result) ratio(system string) float64 {
	n, s := r.median(native), r.median(system)
	if n == 0 {
		return 0
	}
	return float64(s) / float64(n)
}

type verdict string

// Verdicts on a row.
const (
	unknown  verdict = ""
	within   verdict = "ok"
	exceeded verdict = "OVER"
	slower   verdict = "ok, but slower than fuse-overlayfs"
)

// verdict compares with the budget.
func (r *result) verdict(row row) verdict {
	took := r.median(winkfs)
	switch {
	case took == 0:
		return unknown
	case row.atMost > 0 && took > row.atMost:
		return exceeded
	case row.budget > 0 && r.ratio(winkfs) > row.budget:
		return exceeded
	}
	if other := r.median(fuseovl); other > 0 && row.factor > 0 && float64(took)*row.factor > float64(other) {
		return slower
	}
	if row.atMost == 0 && row.budget == 0 {
		return unknown
	}
	return within
}
