package report

import (
	"slices"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// judged is the flow that the verdict of a plan or ladder is about, and what to
// call it: the rung that is judged, the pair that fails its target, else the
// slowest pair under the setting that carried most. Nil of a test of two hosts,
// of which every main cell is shown.
func judged(d *measure.Document) (c *measure.Cell, name string) {
	switch {
	case isCheck(d) || isTuning(d):
		return nil, ""
	case d.Ladder != nil:
		return judgedRung(d)
	case d.Command == "ladder":
		if all := ladders(d); len(all) > 0 && all[0].Best != nil {
			c = all[0].Best.Source
			return c, doc.Join(all[0].Path, unit.Plural(c.Streams, "stream"), windowName(c.Window)+" window")
		}
		return nil, ""
	case !isFleet(d):
		return nil, ""
	}
	for i := range d.Targets {
		if t := &d.Targets[i]; !t.Pass {
			if c = ofTarget(d, t); c != nil {
				return c, doc.Join(pathName(c), setName(conditions(c.Axes), ""), "of which a target is not met")
			}
		}
	}
	if d.Verdict != nil && !d.Verdict.Pass {
		if c = worstShare(d); c != nil {
			return c, doc.Join(pathName(c), setName(conditions(c.Axes), ""), "the least of its link")
		}
	}
	s := best(newSets(d))
	if s == nil {
		return nil, ""
	}
	slowest := s.slowest()
	for _, p := range slowest { // one that failed has nothing to show
		if c = shownOf(p.Cells); c != nil {
			break
		}
	}
	if c == nil {
		return nil, ""
	}
	name = doc.Join(pathName(c), setName(conditions(c.Axes), ""))
	if len(slowest) > 1 {
		name += ", the slowest pair"
	}
	return c, name
}

// judgedRung is the best cell of the rung whose share the verdict has, else of the highest one.
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
		if x.Rung == of.Name && !x.Beside && !isExperiment(x) && stat.Measured(x) && (c == nil || amountOf(x) > amountOf(c)) {
			c = x
		}
	}
	if c == nil {
		return nil, ""
	}
	return c, doc.Join(doc.Clean(of.Name), pathName(c), unit.Plural(c.Streams, "stream"), windowName(c.Window)+" window")
}

// ofTarget is the flow that a target is about: that of the pair which decides it,
// else the slowest of its group.
func ofTarget(d *measure.Document, t *measure.Target) (least *measure.Cell) {
	for i := range d.Cells {
		c := &d.Cells[i]
		if c.Group != t.Group || c.Beside || isExperiment(c) || len(c.Runs) == 0 {
			continue
		}
		if t.From != "" && c.From == t.From && c.To == t.To {
			return c
		}
		if least == nil || amountOf(c) < amountOf(least) {
			least = c
		}
	}
	return least
}

// worstShare is the flow that carries least of what its link leaves for payload.
func worstShare(d *measure.Document) (least *measure.Cell) {
	for i := range d.Cells {
		c := &d.Cells[i]
		if c.Beside || isExperiment(c) || c.Ceiling == nil || len(c.Runs) == 0 {
			continue
		}
		if least == nil || c.Ceiling.SharePct < least.Ceiling.SharePct {
			least = c
		}
	}
	return least
}

// shownOf is the first of some cells that has anything to show.
func shownOf(cells []*measure.Cell) *measure.Cell {
	if i := slices.IndexFunc(cells, func(c *measure.Cell) bool { return len(c.Runs) > 0 }); i >= 0 {
		return cells[i]
	}
	return nil
}

// judgedDiagnosis is what the flow that is judged is held back by, with its evidence.
func judgedDiagnosis(d *measure.Document) []diagnosis {
	c, name := judged(d)
	if c == nil || len(c.Findings) == 0 {
		return nil
	}
	x := newDiagnosis(c.Diagnosis, capturedFlow(c))
	x.Way, x.OfMany = name, true
	return []diagnosis{x}
}

// tooMuch is the share of a ceiling, in percent, from which on a figure that
// passes has to be explained: no link carries more than it can.
const tooMuch = 101

// doubts are what keeps a verdict from being more than an indication: of the
// flows that it is about.
func doubts(d *measure.Document) (all []string) {
	if over := overText(d); over != "" {
		all = append(all, over)
	}
	first, back, _ := mainCells(d)
	var lines []string
	switch c, _ := judged(d); {
	case c != nil && d.Ladder == nil && d.Command != "ladder":
		lines = cellLines(d, doubtsOf)
	case c != nil:
		lines = doubtsOfAll(c)
	default:
		lines = doubtsOfAll(first, back)
	}
	for _, s := range lines {
		if !slices.Contains(all, s) && len(all) < maxSummary {
			all = append(all, s)
		}
	}
	return all
}

// doubtsOfAll are those of some cells, which may be nil, each once.
func doubtsOfAll(cells ...*measure.Cell) (lines []string) {
	var all sayings
	for _, c := range cells {
		if c == nil {
			continue
		}
		for _, w := range doubtsOf(c) {
			all.add("", w, c)
		}
	}
	for _, x := range all.joined() {
		lines = append(lines, x.text())
	}
	return lines
}

// doubtsOf are the warnings of a cell that a reader of the verdict has to know. What
// a busy host means stands among the warnings.
func doubtsOf(c *measure.Cell) (lines []string) {
	for _, w := range c.Coded {
		switch {
		case w.Code == measure.WindowCut, w.Code == measure.SingleRun && ofFile(c):
		case w.Code == measure.BusyHost:
			lines = append(lines, doc.Clean(w.Text))
		default:
			lines = append(lines, doc.Clean(w.String()))
		}
	}
	return lines
}

// overText says that what passes is more than its link can carry.
func overText(d *measure.Document) string {
	if v := d.Verdict; v == nil || !v.Pass || !(v.Share > tooMuch) {
		return ""
	}
	return overWords
}

// overWords say why a figure may be above its ceiling and pass.
const overWords = "more than the link can carry: what waited in queues before the measured time counts too where it is short (-t), or an assumption about link rate, MTU or accounting is wrong"
