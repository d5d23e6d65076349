package crash

import (
	"fmt"
	"slices"

	"github.com/winkfs/winkfs/tests/model"
)

// dead lists the error numbers of a mount whose daemon is gone.
var dead = []string{"ENOTCONN", "ECONNABORTED", "ECONNREFUSED"}

// workload does operations in two directories until the first stops to answer.
type workload struct {
	subject, reference *model.World
	gen                *model.Gen
	// inFlight is the operation that was not answered, nil if all were.
	inFlight *model.Op
	answered []model.Op
}

func newWorkload(mount, plain string, seed uint64) (*workload, error) {
	subject, err := model.NewWorld(mount)
	if err != nil {
		return nil, err
	}
	reference, err := model.NewWorld(plain)
	if err != nil {
		subject.Close()
		return nil, err
	}
	w := &workload{subject: subject, reference: reference, gen: model.NewGen(seed)}
	w.gen.Atomic = true
	return w, nil
}

// run does n operations. It returns an error when an answer is wrong.
func (w *workload) run(n int, plain string) error {
	for i := range n {
		if i%10 == 0 {
			w.gen.Learn(plain)
		}
		o := w.gen.Next()
		got, _ := w.subject.Do(o)
		if slices.Contains(dead, got) {
			w.inFlight = &o
			return nil
		}
		w.answered = append(w.answered, o)
		if want, _ := w.reference.Do(o); got != want {
			return fmt.Errorf("operation %d: %s: got %q, want %q", i, o, got, want)
		}
	}
	return nil
}

// finishInFlight does in the reference what was not answered.
func (w *workload) finishInFlight() {
	if w.inFlight != nil {
		w.reference.Do(*w.inFlight)
	}
}
