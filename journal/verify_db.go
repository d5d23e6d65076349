package journal

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"
)

// compare compares the database with the one that the log leads to.
func (v *verifier) compare() error {
	if v.build == nil || v.scan.broken && v.build.seq() < v.meta.seq {
		return nil // the damage of the log is reported; what follows from it is not
	}
	if err := v.build.flush(); err != nil {
		return err
	}
	want := v.build.m
	if want.seq != v.meta.seq || want.hash != v.meta.hash || want.end != v.meta.end {
		v.dbDamaged = true
		v.problem(Problem{File: dbName, Pos: -1, Seq: v.meta.seq, What: fmt.Sprintf("the database is at record %d, which the log does not have there; the log ends at record %d", v.meta.seq, v.scan.seq)})
		return nil
	}
	if want.nextNode != v.meta.nextNode || want.nextExec != v.meta.nextExec {
		v.dbDamaged = true
		v.problem(Problem{File: dbName, Pos: -1, Seq: v.meta.seq, What: "the next numbers of nodes and execs are not those that the log leads to"})
	}
	return v.compareBuckets()
}

func (v *verifier) compareBuckets() (err error) {
	defer guardDB(&err)()
	return v.build.db.View(func(want *bbolt.Tx) error {
		return v.db.View(func(got *bbolt.Tx) error {
			for i, name := range bucketNames {
				if i == bucketPacks || i == bucketKeeps {
					continue
				}
				g, w := got.Bucket([]byte(name)), want.Bucket([]byte(name))
				if g == nil {
					continue // reported
				}
				v.compareBucket(name, g.Cursor(), w.Cursor())
			}
			return nil
		})
	})
}

// compareBucket walks two buckets side by side.
func (v *verifier) compareBucket(name string, got, want *bbolt.Cursor) {
	gk, gv := got.First()
	wk, wv := want.First()
	for (gk != nil || wk != nil) && len(v.problems) < maxProblems {
		c := bytes.Compare(gk, wk)
		switch {
		case wk == nil || gk != nil && c < 0:
			v.differs(name, gk, "is not what the log leads to")
			gk, gv = got.Next()
		case gk == nil || c > 0:
			v.differs(name, wk, "is missing")
			wk, wv = want.Next()
		default:
			if !bytes.Equal(gv, wv) {
				v.differs(name, gk, "has another value than the log leads to")
			}
			gk, gv = got.Next()
			wk, wv = want.Next()
		}
	}
}

func (v *verifier) differs(bucket string, key []byte, how string) {
	v.dbDamaged = true
	v.problem(Problem{File: dbName, Pos: -1, Seq: v.meta.seq, What: fmt.Sprintf("bucket %s: key %x %s", bucket, key, how)})
}
