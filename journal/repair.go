package journal

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"time"
)

// evidencePrefix begins the name of the directory that Repair keeps the damaged
// files in.
const evidencePrefix = "damaged-"

// RepairReport says what Repair found and did.
type RepairReport struct {
	Found    *Report // before
	Evidence string  // where the files as they were are kept, relative to the state directory; "" = nothing was done
	Done     []string
	Lost     []string // what could not be saved
	Left     *Report  // afterwards
}

// Repair makes the best of a damaged journal, which nobody may have open. It
// first gives all files a second name in a directory of their own, and never
// writes to a file that has two names, so that nothing is destroyed.
//
//   - A damaged database is made anew from base and log.
//   - A log that is damaged behind what a good database holds, or that is all
//     there is, is cut at its last good record.
//   - A log that is damaged in front of what a good database holds loses its
//     history: the state stays as it is, and history begins anew with it.
//
// Damaged data can't be made good: the records that they belong to are named.
func Repair(dir string, o Options) (*RepairReport, error) {
	o = o.withDefaults()
	o.ReadOnly = false
	release, err := Lock(dir, o.LockTimeout)
	if err != nil {
		return nil, fmt.Errorf("repair journal: %w", err)
	}
	r := &repair{dir: dir, o: o, report: &RepairReport{}}
	err = r.look()
	release()
	if err == nil && len(r.report.Found.Problems) > 0 {
		err = r.mend()
	}
	if err != nil {
		return nil, fmt.Errorf("repair journal: %w", err)
	}
	return r.report, nil
}

// repair is one Repair on its way.
type repair struct {
	dir    string
	o      Options
	v      *verifier
	report *RepairReport
}

// look finds out what is damaged and secures the files.
func (r *repair) look() error {
	r.v = &verifier{files: fileTable{dir: r.dir}}
	if err := r.v.run(); err != nil {
		return err
	}
	r.report.Found = r.v.report()
	r.report.Left = r.report.Found
	if len(r.report.Found.Problems) == 0 {
		return nil
	}
	return r.secure()
}

// secure gives all files of the journal a second name.
func (r *repair) secure() error {
	name := evidencePrefix + r.o.Clock().UTC().Format("20060102T150405.000Z")
	to := filepath.Join(r.dir, name)
	for _, sub := range []string{"", logDir, packDir} {
		if err := os.Mkdir(filepath.Join(to, sub), 0o700); err != nil && !errors.Is(err, iofs.ErrExist) {
			return err
		}
	}
	d := disk{onWrite: r.o.OnWrite, inject: r.o.Inject}
	names := []string{dbName, dbSumName}
	for _, sub := range []string{logDir, packDir} {
		list, err := os.ReadDir(filepath.Join(r.dir, sub))
		if err != nil && !errors.Is(err, iofs.ErrNotExist) {
			return err
		}
		for _, e := range list {
			if e.Type().IsRegular() {
				names = append(names, filepath.Join(sub, e.Name()))
			}
		}
	}
	for _, n := range names {
		if err := d.link(filepath.Join(r.dir, n), filepath.Join(to, n)); err != nil && !errors.Is(err, iofs.ErrNotExist) {
			return err
		}
	}
	r.report.Evidence = name
	return errors.Join(d.syncDir(filepath.Join(to, logDir)), d.syncDir(filepath.Join(to, packDir)), d.syncDir(to), d.syncDir(r.dir))
}

// mend decides what to do and does it.
func (r *repair) mend() error {
	v := r.v
	var err error
	switch {
	case v.scan == nil || v.scan.records == 0 && !v.scan.begins:
		return corruptAt(logDir, -1, 0, "no record can be read")
	case v.scan.broken && v.goodDB() && r.historyOnly():
		err = r.dropHistory()
	case v.scan.broken || !v.goodDB() || v.sumDiffers:
		err = r.rebuild()
	}
	if err != nil {
		return err
	}
	r.report.Left, err = Verify(r.dir)
	if err != nil {
		return err
	}
	for _, p := range r.report.Found.Problems {
		if p.Data {
			r.report.Lost = append(r.report.Lost, p.String())
		}
	}
	for _, p := range r.report.Left.Problems {
		if p.Data {
			continue
		}
		r.report.Lost = append(r.report.Lost, p.String())
	}
	return nil
}

// goodDB reports whether the database is what was written, as far as it tells
// by itself.
func (v *verifier) goodDB() bool { return v.meta != nil && !v.dbDamaged }

// historyOnly reports whether all damage of the log is in front of what the
// database holds.
func (r *repair) historyOnly() bool {
	for _, p := range r.v.scan.wrongs {
		if p.Seq == 0 || p.Seq > r.v.meta.seq {
			return false
		}
	}
	return r.v.scan.seq >= r.v.meta.seq
}

// rebuild makes the database anew from what is good of the log.
func (r *repair) rebuild() error {
	o := r.o
	o.cutMiddle = true
	rep, err := Rebuild(r.dir, o)
	if err != nil {
		return err
	}
	r.report.Done = append(r.report.Done, fmt.Sprintf("the database was made anew from records %d to %d", rep.FirstSeq, rep.Good))
	if last := r.lastSeen(); last > rep.Good {
		r.report.Lost = append(r.report.Lost, fmt.Sprintf("records %d to %d, behind the damage, are only in %s", rep.Good+1, last, r.report.Evidence))
	}
	return nil
}

// lastSeen returns the newest record that anything speaks of.
func (r *repair) lastSeen() Seq {
	last := r.v.scan.seq
	if r.v.meta != nil {
		last = max(last, r.v.meta.seq)
	}
	return last
}

// dropHistory makes history begin with the state that the database holds.
func (r *repair) dropHistory() error {
	o := r.o
	o.unchecked = true
	s, err := Open(r.dir, o)
	if err != nil {
		return err
	}
	defer s.Close()
	rep, err := s.GC(context.Background(), GCOptions{Retention: Retention{Age: time.Nanosecond}, salvage: true})
	if err != nil {
		return err
	}
	r.report.Done = append(r.report.Done, fmt.Sprintf("the state at record %d is whole; history begins behind it", rep.First-1))
	r.report.Lost = append(r.report.Lost, fmt.Sprintf("points before record %d can't be returned to; what is readable of them is in %s", rep.First-1, r.report.Evidence))
	return s.Close()
}
