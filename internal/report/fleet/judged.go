package fleet

import (
	"slices"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/ladder"
	"thru/internal/report/result"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Judged returns the flow that the verdict of a plan or ladder judges, and its name: the judged rung, the
// pair that misses its target, else the slowest pair of the best set. It returns nil for a test of two hosts,
// which shows every main cell.
func Judged(d *measure.Document) (c *measure.Cell, name string) {
	switch {
	case result.IsCheck(d) || result.IsTuning(d):
		return nil, ""
	case d.Ladder != nil:
		return judgedRung(d)
	case d.Command == "ladder":
		if all := ladder.All(d); len(all) > 0 && all[0].Best != nil {
			c = all[0].Best.Source
			return c, doc.Join(all[0].Path, unit.Plural(c.Streams, "stream"), result.WindowName(c.Window)+" window")
		}
		return nil, ""
	case !Is(d):
		return nil, ""
	}
	for i := range d.Targets {
		if t := &d.Targets[i]; !t.Pass {
			if c = ofTarget(d, t); c != nil {
				return c, doc.Join(result.PathName(c), result.SetName(result.Conditions(c.Axes), ""), "which misses a target")
			}
		}
	}
	if d.Verdict != nil && !d.Verdict.Pass {
		if c = worstShare(d); c != nil {
			return c, doc.Join(result.PathName(c), result.SetName(result.Conditions(c.Axes), ""), "the lowest share of its link")
		}
	}
	s := Best(Sets(d))
	if s == nil {
		return nil, ""
	}
	slowest := s.slowest()
	for _, p := range slowest { // a failed pair has nothing to show
		if c = shownOf(p.Cells); c != nil {
			break
		}
	}
	if c == nil {
		return nil, ""
	}
	name = doc.Join(result.PathName(c), result.SetName(result.Conditions(c.Axes), ""))
	if len(slowest) > 1 {
		name += ", the slowest pair"
	}
	return c, name
}

// judgedRung returns the best cell of the rung whose share is in the verdict, else of the highest rung.
func judgedRung(d *measure.Document) (c *measure.Cell, name string) {
	var of *measure.Rung
	for i := range d.Ladder.Rungs {
		r := &d.Ladder.Rungs[i]
		if r.Best != nil {
			of = r
		}
	}
	for i := range d.Ladder.Rungs {
		if r := &d.Ladder.Rungs[i]; d.Verdict != nil && r.Best != nil && r.Verdict != nil && r.Verdict.Share == d.Verdict.Share && r.Verdict.Pass == d.Verdict.Pass {
			of = r
		}
	}
	if of == nil {
		return nil, ""
	}
	for i := range d.Cells {
		x := &d.Cells[i]
		if x.Rung == of.Name && !x.Baseline && !result.IsExperiment(x) && stat.Measured(x) && (c == nil || result.AmountOf(x) > result.AmountOf(c)) {
			c = x
		}
	}
	if c == nil {
		return nil, ""
	}
	return c, doc.Join(doc.Clean(of.Name), result.PathName(c), unit.Plural(c.Streams, "stream"), result.WindowName(c.Window)+" window")
}

// ofTarget returns the flow of a target: that of the pair which decides it, else the slowest of its group.
func ofTarget(d *measure.Document, t *measure.Target) (least *measure.Cell) {
	for i := range d.Cells {
		c := &d.Cells[i]
		if c.Group != t.Group || c.Baseline || result.IsExperiment(c) || len(c.Runs) == 0 {
			continue
		}
		if t.From != "" && c.From == t.From && c.To == t.To {
			return c
		}
		if least == nil || result.AmountOf(c) < result.AmountOf(least) {
			least = c
		}
	}
	return least
}

// worstShare returns the flow with the lowest share of its ceiling.
func worstShare(d *measure.Document) (least *measure.Cell) {
	for i := range d.Cells {
		c := &d.Cells[i]
		if c.Baseline || result.IsExperiment(c) || c.Ceiling == nil || len(c.Runs) == 0 {
			continue
		}
		if least == nil || c.Ceiling.SharePct < least.Ceiling.SharePct {
			least = c
		}
	}
	return least
}

// shownOf returns the first of some cells with anything to show.
func shownOf(cells []*measure.Cell) *measure.Cell {
	if i := slices.IndexFunc(cells, func(c *measure.Cell) bool { return len(c.Runs) > 0 }); i >= 0 {
		return cells[i]
	}
	return nil
}

// tooMuch is the share of a ceiling, in percent, from which a passing figure needs an explanation: no link
// carries more than its ceiling.
const tooMuch = 101

// overWords explains how a figure can be above its ceiling and pass.
const overWords = "more than the link can carry: in a short run (-t) data queued before the measured time counts too, or the link rate, MTU or accounting is wrong"

// OverText returns overWords if the verdict passes with more than the ceiling.
func OverText(d *measure.Document) string {
	if v := d.Verdict; v == nil || !v.Pass || !(v.Share > tooMuch) {
		return ""
	}
	return overWords
}
