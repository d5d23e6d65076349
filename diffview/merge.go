package diffview

import "bytes"

// Range is a run of lines; Start counts from 0.
type Range struct{ Start, Lines int }

// Conflict is a place that both sides changed in different ways.
type Conflict struct {
	Base, Ours, Theirs             Range
	BaseText, OursText, TheirsText []byte
}

// Merged is the result of Merge.
type Merged struct {
	// Text is the merged text. Without a conflict it is complete; with one it
	// holds ours at each conflict and may not be written anywhere unseen.
	Text      []byte
	Conflicts []Conflict
}

// Merge merges two changes of base line by line (diff3). A change of one side
// is taken, equal changes of both are taken once, and changes that overlap or
// touch are a conflict. The caller checks that the texts are text (IsText).
func Merge(base, ours, theirs []byte) Merged {
	g := merger{base: splitLines(base), ours: splitLines(ours), theirs: splitLines(theirs)}
	g.eo, g.et = diffLines(g.base, g.ours), diffLines(g.base, g.theirs)
	for len(g.eo) > 0 || len(g.et) > 0 {
		g.step()
	}
	g.out.Text = append(g.out.Text, g.base.span(g.pos, g.base.len())...)
	return g.out
}

// IsText reports whether Merge and hunks make sense for the contents: they are
// not too large and hold no NUL.
func IsText(data []byte) bool {
	return len(data) <= MaxText && bytes.IndexByte(data, 0) < 0
}

// merger walks over the edits of both sides in the order of the base.
type merger struct {
	base, ours, theirs lines
	eo, et             []edit
	pos                int // base lines that are dealt with
	do, dt             int // lines by which ours and theirs are ahead of the base
	out                Merged
}

// step handles the next group of edits that overlap or touch.
func (g *merger) step() {
	lo, hi := g.first()
	no, nt := 0, 0
	for {
		grown := false
		for no < len(g.eo) && g.eo[no].A0 <= hi {
			hi, no, grown = max(hi, g.eo[no].A1), no+1, true
		}
		for nt < len(g.et) && g.et[nt].A0 <= hi {
			hi, nt, grown = max(hi, g.et[nt].A1), nt+1, true
		}
		if !grown {
			break
		}
	}
	g.out.Text = append(g.out.Text, g.base.span(g.pos, lo)...)
	o, do := side3(g.eo[:no], lo, hi, g.do)
	t, dt := side3(g.et[:nt], lo, hi, g.dt)
	g.take(Range{lo, hi - lo}, o, t, no, nt)
	g.eo, g.et, g.do, g.dt, g.pos = g.eo[no:], g.et[nt:], do, dt, hi
}

// first returns where the next edit begins, as an empty range.
func (g *merger) first() (lo, hi int) {
	switch {
	case len(g.eo) == 0:
		lo = g.et[0].A0
	case len(g.et) == 0:
		lo = g.eo[0].A0
	default:
		lo = min(g.eo[0].A0, g.et[0].A0)
	}
	return lo, lo
}

// side3 returns a side's lines for the base lines [lo, hi), and by how many
// lines the side is ahead behind them.
func side3(es []edit, lo, hi, ahead int) (Range, int) {
	start := lo + ahead
	for _, e := range es {
		ahead += (e.B1 - e.B0) - (e.A1 - e.A0)
	}
	return Range{start, hi + ahead - start}, ahead
}

func (g *merger) take(b, o, t Range, no, nt int) {
	ours := g.ours.span(o.Start, o.Start+o.Lines)
	theirs := g.theirs.span(t.Start, t.Start+t.Lines)
	switch {
	case no == 0:
		g.out.Text = append(g.out.Text, theirs...)
	case nt == 0 || bytes.Equal(ours, theirs):
		g.out.Text = append(g.out.Text, ours...)
	default:
		g.out.Text = append(g.out.Text, ours...)
		g.out.Conflicts = append(g.out.Conflicts, Conflict{
			Base: b, Ours: o, Theirs: t, OursText: ours, TheirsText: theirs,
			BaseText: g.base.span(b.Start, b.Start+b.Lines),
		})
	}
}
