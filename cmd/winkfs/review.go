package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/winkfs/winkfs/cmd/winkfs/internal/control"
	"github.com/winkfs/winkfs/workspace"
)

// review is what follows a run's command: the summary, and the decision about
// the changes.
type review struct {
	e       *env
	entry   *workspace.Entry
	ops     *control.Client
	options runOptions
}

// afterRun shows what a run changed, lets the person decide, and ends the
// daemon. The exit status is the command's.
func (e *env) afterRun(ctx context.Context, entry *workspace.Entry, o runOptions, req *workspace.ExecRequest, res *workspace.ExecResult) error {
	r := &review{e: e, entry: entry, ops: control.NewClient(entry.Dir), options: o}
	defer r.ops.Close()
	remove, err := r.decide(ctx)
	if uerr := e.endRun(ctx, entry); err == nil {
		err = uerr
	}
	if err == nil && remove {
		err = workspace.Remove(entry)
	}
	if err != nil {
		return &sandboxError{err}
	}
	if e.globals.json {
		if err := e.emit(res); err != nil {
			return &sandboxError{err}
		}
	}
	if res.ExitCode != 0 {
		return exitStatus(res.ExitCode)
	}
	return nil
}

// decide reports whether the workspace is to be removed.
func (r *review) decide(ctx context.Context) (remove bool, err error) {
	sum, err := r.summary(ctx)
	if err != nil {
		return false, err
	}
	switch {
	case sum.empty():
		r.e.note("[Sandbox] No filesystem changes made.")
		return true, nil
	case r.options.apply:
		_, err := r.apply(ctx)
		return false, err
	case r.options.discard:
		return r.discard(ctx, sum)
	}
	if !r.e.globals.quiet {
		sum.write(r.e.stderr)
	}
	if r.options.keep || !r.e.interactive() || r.e.globals.json {
		r.kept()
		return false, nil
	}
	return r.prompt(ctx, sum)
}

func (r *review) kept() {
	id := shown(r.entry)
	r.e.note("The changes are kept in workspace %s:", id)
	r.e.note("  winkfs diff -w %s           look at them", id)
	r.e.note("  winkfs apply -w %s          write them to the source", id)
	r.e.note("  winkfs discard -w %s        drop them", id)
}

const choices = `
  [r] Review diff
  [a] Apply changes to filesystem
  [s] Save as patch file
  [d] Discard (default)

`

// prompt asks until a choice settles the matter. The end of input and Ctrl-C
// keep the changes.
func (r *review) prompt(ctx context.Context, sum *changeSummary) (remove bool, err error) {
	for {
		fmt.Fprint(r.e.stderr, choices)
		answer, err := r.e.ask("Choice [r/a/s/d]: ")
		if err != nil {
			fmt.Fprintf(r.e.stderr, "\nKept; resume with winkfs diff -w %s\n", shown(r.entry))
			return false, nil
		}
		done := false
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "r":
			err = r.diff(ctx)
		case "a":
			done, err = r.applyAsked(ctx)
		case "s":
			err = r.save(ctx)
		case "d", "":
			return r.discard(ctx, sum)
		default:
			fmt.Fprintln(r.e.stderr, "Please answer r, a, s or d.")
		}
		if done {
			return false, nil
		}
		if err != nil {
			printError(r.e.stderr, err, false)
		}
	}
}

func (r *review) diff(ctx context.Context) error {
	colour, err := r.e.colour()
	if err != nil {
		return err
	}
	return r.e.showDiff(ctx, r.ops, &workspace.DiffRequest{
		Format: workspace.FormatPatch, Colour: colour, Escape: isTerminal(r.e.stdout),
	}, false)
}

func (r *review) applyAsked(ctx context.Context) (bool, error) {
	answer, err := r.e.ask("Apply all changes to real filesystem? [y/N] ")
	if err != nil || !isYes(answer) {
		return false, nil
	}
	return r.apply(ctx)
}

// apply writes the changes to the source. The workspace stays, as it holds what
// an apply replaced. settled reports whether there is nothing left to decide.
func (r *review) apply(ctx context.Context) (settled bool, err error) {
	res, err := r.ops.Apply(ctx, &workspace.ApplyRequest{})
	if err != nil {
		r.kept()
		return false, err
	}
	r.e.note("Applied %d change(s).", res.Count())
	for _, p := range res.Skipped {
		r.e.note("skipped %s", printable(p))
	}
	return len(res.Skipped) == 0, nil
}

// discard drops the changes. The workspace stays where it was used before, so
// that the journal can give them back.
func (r *review) discard(ctx context.Context, _ *changeSummary) (bool, error) {
	if _, err := r.ops.Discard(ctx, &workspace.DiscardRequest{}); err != nil {
		return false, err
	}
	r.e.note("Changes discarded.")
	r.e.note("(winkfs redo -w %s brings them back)", shown(r.entry))
	return false, nil
}

// save writes the changes as a patch.
func (r *review) save(ctx context.Context) error {
	name, err := r.e.ask("Save as [sandbox_changes.patch]: ")
	if err != nil {
		return nil
	}
	if name = strings.TrimSpace(name); name == "" {
		name = "sandbox_changes.patch"
	}
	if strings.Contains(name, ".tar") {
		return usage("tar archives are not supported yet; choose a name that ends in .patch or .diff")
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return fmt.Errorf("save patch: %w", err)
	}
	_, err = r.ops.Diff(ctx, &workspace.DiffRequest{Format: workspace.FormatPatch, Binary: true}, f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return errors.Join(fmt.Errorf("save patch: %w", err), os.Remove(name))
	}
	r.e.note("Saved to %s", printable(name))
	return nil
}

// changeSummary is what a run changed, for people.
type changeSummary struct {
	created, modified, deleted []sizedPath
}

type sizedPath struct {
	path string
	size int64
	dir  bool
}

func (s *changeSummary) empty() bool { return len(s.created)+len(s.modified)+len(s.deleted) == 0 }

// summary reads the changes from the daemon.
func (r *review) summary(ctx context.Context) (*changeSummary, error) {
	doc, err := diffDocument(ctx, r.ops)
	if err != nil {
		return nil, err
	}
	s := &changeSummary{}
	for _, d := range doc.Entries {
		p := sizedPath{path: d.Path, size: d.NewSize, dir: strings.HasPrefix(d.NewMode, "04")}
		switch d.Status {
		case "A":
			s.created = append(s.created, p)
		case "D":
			s.deleted = append(s.deleted, p)
		case "R":
			s.created = append(s.created, p)
			s.deleted = append(s.deleted, sizedPath{path: d.OldPath})
		default:
			s.modified = append(s.modified, p)
		}
	}
	return s, nil
}

// write prints the summary in the form that PARITY S3-13 fixes.
func (s *changeSummary) write(w io.Writer) {
	line := strings.Repeat("=", 60)
	fmt.Fprintf(w, "%s\nSANDBOX CHANGES\n%s\n", line, line)
	section := func(title, mark string, paths []sizedPath, sizes bool) {
		if len(paths) == 0 {
			return
		}
		fmt.Fprintf(w, "\n%s (%d):\n", title, len(paths))
		for _, p := range paths {
			if sizes && !p.dir {
				fmt.Fprintf(w, "  %s %s (%d bytes)\n", mark, printable(p.path), p.size)
			} else {
				fmt.Fprintf(w, "  %s %s\n", mark, printable(p.path))
			}
		}
	}
	section("Created", "+", s.created, true)
	section("Modified", "M", s.modified, true)
	section("Deleted", "-", s.deleted, false)
}
