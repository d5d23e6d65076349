package apply

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/sys/unix"
)

// Run applies the items: all that are not skipped, or none. On an error the
// host is as before, unless the error wraps ErrStuck. A conflict gives
// ErrConflict together with a result that lists every conflict.
func Run(ctx context.Context, items []Item, o Options) (*Result, error) {
	o.fill()
	if err := refuseUnfinished(&o); err != nil {
		return nil, err
	}
	h := &host{roots: o.Roots}
	p, res, err := preflight(h, items, &o)
	if err != nil {
		return nil, fmt.Errorf("preflight: %w", err)
	}
	if len(res.Conflicts) > 0 {
		return res.finish(nil), ErrConflict
	}
	if o.DryRun || len(p.Ops) == 0 {
		return res.finish(p), nil
	}
	if p.Roots, err = h.rootInodes(p); err != nil {
		return nil, err
	}
	in, err := createIntent(&o, p)
	if err != nil {
		return nil, err
	}
	r := &runner{ctx: ctx, host: h, o: &o, in: in, res: res}
	defer in.close()
	return r.run()
}

// run stages and commits, or reverts.
func (r *runner) run() (*Result, error) {
	r.probeForeign()
	err := r.stage()
	if err == nil {
		err = r.commit()
	}
	if err != nil {
		return r.fail(err)
	}
	return r.complete()
}

// fail reverts and turns a drift into a conflict of the result.
func (r *runner) fail(cause error) (*Result, error) {
	r.o.Logger.Warn("apply is reverted", "apply", r.in.id, "cause", cause)
	if err := r.revert(); err != nil {
		return nil, fmt.Errorf("%w: %w; %w", ErrStuck, cause, err)
	}
	var d *drift
	if errors.Is(cause, unix.ELOOP) || errors.Is(cause, unix.ENOTDIR) {
		d = &drift{r.at, "a parent is no directory on the host any more"}
	}
	if d != nil || errors.As(cause, &d) {
		r.res.Conflicts = append(r.res.Conflicts, Conflict{d.path, d.reason})
		return r.res.finish(nil), fmt.Errorf("%w: %w", ErrConflict, cause)
	}
	return nil, cause
}

// complete makes the commit final and puts the old files away.
func (r *runner) complete() (*Result, error) {
	if r.in.state != committed {
		err := r.in.append(line{State: committed})
		if errors.Is(err, ErrStuck) {
			return nil, err // whether it is committed is only known after reading the file again
		}
		if err != nil {
			return r.fail(err)
		}
	}
	for i, o := range r.in.plan.Ops {
		if (o.Verb != put && o.Verb != remove) || o.Old == nil {
			continue
		}
		if err := r.keepOld(i, o); err != nil {
			return nil, fmt.Errorf("%w: changes are applied, but the file from before of %q could not be put away: %w", ErrStuck, o.Path, err)
		}
	}
	if err := errors.Join(r.syncTouched(), syncPath(r.in.dir+"/pre")); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStuck, err)
	}
	if err := r.in.append(line{State: done, After: r.after()}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStuck, err)
	}
	r.res.ID = r.in.id
	r.res.finish(r.in.plan)
	r.o.Logger.Info("apply is done", "apply", r.in.id, "created", len(r.res.Created), "modified", len(r.res.Modified), "deleted", len(r.res.Deleted))
	return r.res, nil
}

// after returns what each op's path has become, nil where it is absent.
func (r *runner) after() []*Fingerprint {
	out := make([]*Fingerprint, len(r.in.plan.Ops))
	for i, o := range r.in.plan.Ops {
		f, err := r.host.look(o.Source, string(o.Path))
		if err != nil || f == nil {
			continue
		}
		fp := f.fingerprint()
		fp.Digest = r.in.made[i].Digest
		out[i] = &fp
	}
	return out
}

func (o *Options) fill() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// rootInodes returns the inode of the root of each source that the plan is about.
func (h *host) rootInodes(p *plan) (map[uint32]uint64, error) {
	out := make(map[uint32]uint64)
	for _, o := range p.Ops {
		if _, ok := out[o.Source]; ok {
			continue
		}
		f, err := factOf(h.roots[o.Source])
		if err != nil {
			return nil, fmt.Errorf("look at source %d: %w", o.Source, err)
		}
		out[o.Source] = f.Ino
	}
	return out, nil
}

// refuseUnfinished makes sure that no crash is left to recover from.
func refuseUnfinished(o *Options) error {
	ids, err := listIntents(o.Dir)
	if err != nil || len(ids) == 0 {
		return err
	}
	in, err := readIntent(o.Dir, ids[len(ids)-1])
	if err != nil {
		return err
	}
	if in.plan != nil && in.state != done && in.state != reverted {
		return fmt.Errorf("%w: apply %d", ErrUnfinished, in.id)
	}
	return nil
}
