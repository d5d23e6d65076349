package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/winkfs/winkfs/diffview"
	"github.com/winkfs/winkfs/fs/tree"
	"github.com/winkfs/winkfs/journal"
)

// Blame says of each line of a text file who last wrote it. It follows the
// file through renames, and to the file that it replaced under its name, since
// editors write a new file and rename it over the old one. What an undo or
// rollback brought back belongs to whoever wrote it first.
func (w *Workspace) Blame(ctx context.Context, req *BlameRequest) (*BlameResult, error) {
	path := trimPath(req.Path)
	v := w.tree.Snapshot()
	it, err := v.Find(path)
	if errors.Is(err, tree.ErrNotExist) || errors.Is(err, tree.ErrNotDir) {
		return nil, Fail(CodeNothing, "blame %q: there is no such file", path).At(path)
	}
	if err != nil {
		return nil, fmt.Errorf("blame %q: %w", path, err)
	}
	if !isRegular(it.Stat.Attr.Mode) {
		return nil, Fail(CodeUsage, "blame %q: it is not a regular file", path).At(path)
	}
	text, err := readText(&it)
	if errors.Is(err, errNotText) {
		return nil, Fail(CodeUsage, "blame %q: it is not text, or larger than %d bytes", path, diffview.MaxText).At(path)
	}
	if err != nil {
		return nil, err
	}
	b := newBlamer(w, text)
	if err := b.file(ctx, &fileVersion{id: it.ID(), node: it.Up(), content: v.Content(it.ID())}, v.Seq()); err != nil {
		return nil, err
	}
	return b.result(path)
}

// blamer walks a file's versions from the newest back and hands out lines to
// whoever changed them.
type blamer struct {
	w     *Workspace
	lines [][]byte
	by    []*journal.Record // by line: who wrote it; nil = not known yet, or the base
	left  int               // lines not known yet

	text  []byte // of the version behind the writing that is being looked at
	alive []int  // by line of text: which of the lines it is, -1 = none of them
}

func newBlamer(w *Workspace, text []byte) *blamer {
	b := &blamer{w: w, lines: diffview.Lines(text), text: text}
	b.by, b.left = make([]*journal.Record, len(b.lines)), len(b.lines)
	b.alive = make([]int, len(b.lines))
	for i := range b.alive {
		b.alive[i] = i
	}
	return b
}

// step gives r the lines that it added to the text before, and goes on with
// that text.
func (b *blamer) step(r *journal.Record, before []byte) {
	origins := diffview.LineOrigins(before, b.text)
	alive := make([]int, len(diffview.Lines(before)))
	for i := range alive {
		alive[i] = -1
	}
	for i, line := range b.alive {
		switch {
		case line < 0:
		case origins[i] >= 0:
			alive[origins[i]] = line
		default:
			b.by[line] = r
			b.left--
		}
	}
	b.text, b.alive = before, alive
}

// file walks back through one file's versions, from the one after record last
// on, and then through those of the file that it replaced.
func (b *blamer) file(ctx context.Context, v *fileVersion, last journal.Seq) error {
	for v != nil && b.left > 0 {
		h, err := b.w.historyOf(v.id, last)
		if err != nil {
			return err
		}
		var unit *journal.Record // newest record of the writing that v stands behind
		var old []*replaced      // what the file may have taken the place of, the newest first
		for i := len(h) - 1; i >= 0 && b.left > 0; i-- {
			if err := ctx.Err(); err != nil {
				return err
			}
			r := h[i]
			if p := replacedBy(r, v.id); p != nil {
				old = append(old, p)
			}
			if !writes(r, v) {
				v.back(r)
				continue
			}
			if slices.Contains(returning, r.Op) {
				if j := v.same(h[:i+1]); j >= 0 {
					for ; i > j; i-- {
						v.back(h[i])
					}
					v.back(h[i])
					continue
				}
			}
			if unit != nil && !sameWriter(unit, r) {
				b.step(unit, b.w.textOf(v))
				unit = nil
			}
			if unit == nil {
				unit = r
			}
			v.back(r)
		}
		if !v.made() {
			if unit != nil {
				b.step(unit, b.w.textOf(v))
			}
			return nil // the base
		}
		if v, last, err = b.w.before(old); err != nil {
			return err
		}
		if unit != nil {
			var text []byte
			if v != nil {
				text = b.w.textOf(v)
			}
			b.step(unit, text)
		}
	}
	return nil
}

// sameWriter reports whether two records are of one writing: of one command, or
// of one process outside of any.
func sameWriter(a, b *journal.Record) bool {
	if a.Actor.Exec != b.Actor.Exec {
		return false
	}
	return a.Actor.Exec != 0 || a.Actor.PID == b.Actor.PID && a.Actor.Comm == b.Actor.Comm
}

func (b *blamer) result(path string) (*BlameResult, error) {
	res := &BlameResult{Schema: "winkfs.blame/v1", Path: path, Lines: make([]BlameLine, 0, len(b.lines))}
	for i, text := range b.lines {
		l := BlameLine{Line: uint64(i + 1), Text: string(text)}
		if !utf8.Valid(text) {
			l.Text, l.Bytes = "", text
		}
		r := b.by[i]
		if l.Base = r == nil; !l.Base {
			l.Exec, l.Seq, l.Comm, l.Time = uint64(r.Actor.Exec), uint64(r.Seq), r.Actor.Comm, TimeOf(r.Time)
		}
		if l.Exec != 0 {
			x, err := b.w.exec(r.Actor.Exec)
			if err != nil {
				return nil, err
			}
			l.Command = x.Command
		}
		res.Lines = append(res.Lines, l)
	}
	return res, nil
}
