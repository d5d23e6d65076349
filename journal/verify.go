package journal

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// maxProblems bounds what Verify reports.
const maxProblems = 1000

// Problem is one thing that is wrong with a journal.
type Problem struct {
	File string // relative to the state directory
	Pos  int64  // byte in the file; -1 = the file as a whole
	Seq  Seq    // record concerned, 0 = none or not known
	What string
	Data bool // stored data are damaged, not what tells about them
}

// String gives the place and what is wrong there.
func (p Problem) String() string {
	s := p.File
	if p.Pos >= 0 {
		s += fmt.Sprintf(" at byte %d", p.Pos)
	}
	if p.Seq != 0 {
		s += fmt.Sprintf(", record %d", p.Seq)
	}
	return s + ": " + p.What
}

// Report is what Verify found.
type Report struct {
	Records   int
	FirstSeq  Seq
	LastSeq   Seq
	Good      Seq   // up to here the records are as they were written
	DataBytes int64 // that the records added
	Problems  []Problem
}

// Verify reads the whole journal in dir and reports everything that is not as
// it was written: each record's checksum, number and place in the hash chain,
// each byte of data that a record names, the structure of the database, and
// that what the database holds is what the log leads to. It changes nothing
// and works beside a process that has the journal open.
//
// The error says that verifying was not possible, as for a newer format.
func Verify(dir string) (*Report, error) {
	v := &verifier{files: fileTable{dir: dir}}
	if err := v.run(); err != nil {
		return nil, fmt.Errorf("verify journal: %w", err)
	}
	return v.report(), nil
}

// verifier compares a copy of the database, taken first, with the log.
type verifier struct {
	files    fileTable
	db       *bbolt.DB // the copy; nil if it can't be opened
	meta     *dbMeta   // of the copy; nil if it can't be read
	problems []Problem
	// dbDamaged says that the database is not what was written to it.
	dbDamaged bool
	// sumDiffers says that the database's file is not what was closed.
	sumDiffers bool
	scan       *logScan
	build      *builder // what the database should hold
}

func (v *verifier) run() (err error) {
	defer v.close()
	if err := v.openCopy(); err != nil {
		return err
	}
	if err := v.scanLog(); err != nil {
		return err
	}
	v.packs()
	v.keeps()
	return v.compare()
}

func (v *verifier) close() {
	if v.db != nil {
		v.db.Close()
	}
	if v.build != nil {
		v.build.db.Close()
	}
	v.files.closeAll()
}

func (v *verifier) problem(p Problem) { v.problems = append(v.problems, p) }

// damaged notes an error of the database as a problem.
func (v *verifier) damaged(err error) {
	p := Problem{File: dbName, Pos: -1, What: err.Error()}
	var c *CorruptError
	if errors.As(err, &c) {
		p = Problem{File: c.File, Pos: c.Pos, Seq: c.Seq, What: c.Reason}
	}
	v.problem(p)
}

// openCopy copies the database into memory and checks it by itself.
func (v *verifier) openCopy() error {
	path := filepath.Join(v.files.dir, dbName)
	b, err := copyDB(path)
	if errors.Is(err, iofs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(v.files.dir, logDir)); err != nil {
			return fmt.Errorf("%s: %w", v.files.dir, ErrNotJournal)
		}
		v.problem(Problem{File: dbName, Pos: -1, What: "the file is missing"})
		return nil
	}
	if err != nil {
		return err
	}
	if p := checkSum(filepath.Join(v.files.dir, dbSumName), b); p != nil {
		v.sumDiffers = true
		v.problem(*p)
	}
	if ps := checkPages(b, false); len(ps) > 0 {
		v.dbDamaged = true
		v.problems = append(v.problems, ps...)
		return nil
	}
	f, err := memoryFile(b)
	if err != nil {
		return err
	}
	err = v.readCopy(f)
	if otherFormat(err) {
		return err
	}
	if err != nil {
		v.dbDamaged = true
		v.damaged(err)
	}
	return nil
}

func (v *verifier) readCopy(f *os.File) (err error) {
	defer guardDB(&err)()
	if v.db, err = openBoltFile(f); err != nil {
		return err
	}
	return v.db.View(func(tx *bbolt.Tx) error {
		m, err := readMeta(tx)
		if err != nil {
			return err
		}
		v.meta = m
		for i := range bucketNames {
			t, err := tableOf(tx, m, i)
			if err == nil {
				err = t.each(func(_, _ []byte) error { return nil })
			}
			if err != nil {
				v.dbDamaged = true
				v.damaged(err)
			}
		}
		return nil
	})
}

// scanLog reads the log, building the database that it leads to.
func (v *verifier) scanLog() error {
	strangers, err := v.files.load()
	if err != nil {
		return err
	}
	for _, name := range strangers {
		v.problem(Problem{File: name, Pos: -1, What: "the file is not one of the journal's"})
	}
	v.scan = &logScan{files: &v.files, checkData: true}
	var at Seq
	if v.meta != nil {
		at = v.meta.base
	}
	v.files.settle(at)
	logs := v.files.logs()
	if len(logs) == 0 {
		v.problem(Problem{File: logDir, Pos: -1, What: "the log is missing"})
		return nil
	}
	err = v.scan.findID(logs)
	if errors.Is(err, errHeader) {
		if v.meta == nil {
			v.problem(Problem{File: logs[0].name, Pos: 0, What: err.Error()})
			return nil
		}
		err = nil
	}
	if err != nil {
		return err
	}
	if err := v.expect(logs[0]); err != nil {
		return err
	}
	return v.scan.run(logs)
}

// expect prepares the database to compare with.
func (v *verifier) expect(first *dataFile) error {
	if v.meta == nil {
		return nil
	}
	if v.scan.id != v.meta.id && v.scan.id != (journalID{}) {
		v.problem(Problem{File: dbName, Pos: -1, What: "the database belongs to another journal than the log"})
	}
	v.scan.id = v.meta.id
	f, err := memoryFile(nil)
	if err != nil {
		return err
	}
	db, err := openBoltFile(f)
	if err != nil {
		return err
	}
	if v.build, err = v.begin(db, first); err != nil || v.build == nil {
		return err
	}
	v.scan.record = func(r *Record, hash [32]byte, loc Loc, end int64) error {
		if r.Seq > v.meta.seq {
			return nil
		}
		return v.build.record(r, hash, loc, end)
	}
	return nil
}

// begin returns the builder at the point where history begins, nil if the base
// is damaged, which is noted.
func (v *verifier) begin(db *bbolt.DB, first *dataFile) (*builder, error) {
	if v.meta.base == 0 {
		return newBuilder(db, v.meta.id, first, nil)
	}
	d := v.files.baseAt(v.meta.base)
	if d == nil {
		v.problem(Problem{File: baseName(v.meta.base), Pos: -1, Seq: v.meta.base, What: "the file is missing"})
		return nil, nil
	}
	r, err := openBase(&v.files, d, v.meta.id)
	if err == nil {
		defer r.close()
		v.scan.before(r.at, r.hash)
		var b *builder
		if b, err = newBuilder(db, v.meta.id, first, r); err == nil {
			return b, nil
		}
	}
	var c *CorruptError
	if !errors.As(err, &c) {
		return nil, err
	}
	v.damaged(err)
	return nil, nil
}

// keeps checks the keeps' indexes and bytes.
func (v *verifier) keeps() {
	for _, d := range v.files.kept() {
		if err := v.keep(d); err != nil {
			v.problem(Problem{File: d.name, Pos: 0, What: err.Error()})
		}
	}
}

func (v *verifier) keep(d *dataFile) error {
	f, err := os.Open(v.files.path(d))
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := readHeader(f, d, magicKeep, v.scan.id); err != nil {
		return err
	}
	x, err := readKeepIndex(f)
	if err != nil {
		return err
	}
	if fi, err := f.Stat(); err != nil || fi.Size() != x.end {
		return fmt.Errorf("the file has another length than the %d bytes of its index", x.end)
	}
	checkKeep(f, x, func(k kept, why string) {
		v.problem(Problem{File: d.name, Pos: k.at, Data: true, What: fmt.Sprintf("%s (bytes %d to %d of file %d)", why, k.pos, k.end(), d.num)})
	})
	return nil
}

// packs checks the packs' headers, and their lengths against the database.
func (v *verifier) packs() {
	packs := v.files.packs()
	for i, d := range packs {
		if err := v.packHeader(d, i == len(packs)-1); err != nil {
			v.problem(Problem{File: d.name, Pos: 0, What: err.Error()})
		}
	}
	if v.db == nil || v.meta == nil {
		return
	}
	err := v.db.View(func(tx *bbolt.Tx) error {
		if err := v.listed(tx, bucketPacks, checkPack); err != nil {
			return err
		}
		return v.listed(tx, bucketKeeps, checkKept)
	})
	if err != nil {
		v.damaged(err)
	}
}

// listed checks the files that a bucket lists.
func (v *verifier) listed(tx *bbolt.Tx, bucket int, check func(files *fileTable, key, payload []byte) error) error {
	t, err := tableOf(tx, v.meta, bucket)
	if err != nil {
		return err
	}
	return t.each(func(key, payload []byte) error {
		if err := check(&v.files, key, payload); err != nil {
			v.damaged(err)
		}
		return nil
	})
}

// packHeader checks a pack's header. What the database or a record says of a
// last pack that holds nothing is found by them.
func (v *verifier) packHeader(d *dataFile, last bool) error {
	f, err := os.Open(v.files.path(d))
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = patientHeader(f, d, magicPack, v.scan.id); err != nil && last && unborn(f) {
		return nil
	}
	return err
}

func (v *verifier) report() *Report {
	r := &Report{Problems: v.problems}
	if s := v.scan; s != nil {
		r.Records, r.FirstSeq, r.LastSeq, r.Good, r.DataBytes = s.records, s.first, s.seq, s.good(), s.data
		r.Problems = append(r.Problems, s.problems...)
	}
	return r
}
