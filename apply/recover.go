package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Recover finishes or reverts every apply below o.Dir that a crash left
// unfinished, and returns a result for each one that it finished. It is to be
// called before a workspace is used again; without anything to do it reads the
// records and no more.
func Recover(ctx context.Context, o Options) ([]*Result, error) {
	o.fill()
	ids, err := listIntents(o.Dir)
	if err != nil {
		return nil, err
	}
	var out []*Result
	for _, id := range ids {
		in, err := readIntent(o.Dir, id)
		if err != nil {
			return out, err
		}
		res, err := recoverOne(ctx, in, &o)
		if err != nil {
			return out, fmt.Errorf("recover apply %d: %w", id, err)
		}
		if res != nil {
			out = append(out, res)
		}
	}
	return out, nil
}

func recoverOne(ctx context.Context, in *intent, o *Options) (*Result, error) {
	if in.plan == nil {
		return nil, dropIntent(in, o)
	}
	r := &runner{ctx: ctx, host: &host{roots: o.Roots}, o: o, in: in, res: &Result{}}
	switch in.state {
	case done:
		return nil, nil
	case reverted:
		return nil, r.forget()
	}
	if err := r.checkRoots(); err != nil {
		return nil, err
	}
	if err := in.reopen(o); err != nil {
		return nil, err
	}
	defer in.close()
	o.Logger.Info("apply is recovered", "apply", in.id, "phase", string(in.state))
	switch in.state {
	case committed:
		return r.complete()
	case staged:
		if err := r.commit(); err == nil {
			return r.complete()
		} else if !errors.Is(err, ErrConflict) {
			o.Logger.Warn("apply can't be resumed", "apply", in.id, "cause", err)
		}
	}
	return nil, r.revertStuck()
}

func (r *runner) revertStuck() error {
	if err := r.revert(); err != nil {
		return fmt.Errorf("%w: %w", ErrStuck, err)
	}
	return nil
}

// checkRoots makes sure that the sources are the directories that the plan was
// made for.
func (r *runner) checkRoots() error {
	for source, ino := range r.in.plan.Roots {
		root, ok := r.o.Roots[source]
		if !ok {
			return fmt.Errorf("source %d is not given", source)
		}
		f, err := factOf(root)
		if err != nil {
			return err
		}
		if f.Ino != ino {
			return fmt.Errorf("%w: source %d is another directory than when the apply began", ErrStuck, source)
		}
	}
	return nil
}

// dropIntent removes the directory of an apply that never had a plan.
func dropIntent(in *intent, o *Options) error {
	if err := o.step("drop empty apply"); err != nil {
		return err
	}
	if err := os.RemoveAll(in.dir); err != nil {
		return fmt.Errorf("remove apply directory: %w", err)
	}
	return nil
}
