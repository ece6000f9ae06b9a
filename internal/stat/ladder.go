package stat

import (
	"fmt"
	"slices"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Ladder fills d.Ladder if cells have a rung: the rungs in the order of their first appearance, the lowest first,
// each with its best cell and the loss against the rung below (methods.md, formula 13), with its interval. links
// returns the nominal rate of a rung's path, for cells without a ceiling; a RateBps of 0 is none. Call it after
// Groups; it sets d.Verdict to that of the rungs.
func Ladder(d *measure.Document, links func(rung string) Link) {
	if d.Ladder = nil; links == nil {
		links = func(string) Link { return Link{} }
	}
	l := &measure.Ladder{}
	for i := range d.Cells {
		if name := d.Cells[i].Rung; name != "" && !slices.ContainsFunc(l.Rungs, func(r measure.Rung) bool { return r.Name == name }) {
			l.Rungs = append(l.Rungs, rungOf(d, name, links))
		}
	}
	if len(l.Rungs) == 0 {
		return
	}
	var lower *measure.Rung
	level := rungLevel(d, l)
	for i := range l.Rungs {
		r := &l.Rungs[i]
		if lower != nil {
			compareRungs(l, lower, r, level, links)
		}
		if r.Best != nil { // an unmeasured one is skipped
			lower = r
		}
	}
	d.Ladder = l
	d.Verdict = ladderVerdict(l, links)
}

// rungLevel returns the level of the interval of a rung's loss against the one below. Both rates are the best of
// their steps, any of which may be best by chance: all steps of all rungs but the first share an error probability
// of 5%.
func rungLevel(d *measure.Document, l *measure.Ladder) float64 {
	most := 1
	for _, r := range l.Rungs {
		most = max(most, len(climbsOf(d, r.Name)))
	}
	return 1 - doubtful/float64(most*max(len(l.Rungs)-1, 1))
}

// climb is one step of a rung: what its flows carried together.
type climb struct {
	cell   *measure.Cell // the first of them
	figure *measure.Figure
	label  string
}

// rungOf returns a rung with its best step.
func rungOf(d *measure.Document, name string, links func(string) Link) measure.Rung {
	r := measure.Rung{Name: name}
	var best *climb
	for _, c := range climbsOf(d, name) {
		if r.From == "" {
			r.From, r.To = c.cell.From, c.cell.To
		}
		if c.figure != nil && (best == nil || c.figure.Value > best.figure.Value) {
			best = &c
		}
	}
	if best == nil {
		r.Error = rungError(d, name)
		return r
	}
	r.From, r.To, r.Best, r.Label = best.cell.From, best.cell.To, best.figure, best.label
	r.Ceiling = ceilingOf(best, links(name))
	r.Verdict = rungVerdict(&r, best.cell)
	return r
}

// climbsOf returns the steps of a rung. Several flows of one pair count together; flows of several pairs count
// separately.
func climbsOf(d *measure.Document, rung string) []climb {
	var all []climb
	done, cells := map[int]bool{}, byGroup(d)
	for i := range d.Cells {
		c := &d.Cells[i]
		if c.Rung != rung || c.Baseline || asks(c) {
			continue
		}
		if g := pairGroup(d, cells[c.Group]); g != nil {
			if !done[c.Group] {
				all = append(all, climb{c, g.Aggregate, g.Label})
			}
			done[c.Group] = true
			continue
		}
		all = append(all, climb{c, c.Goodput, stepLabel(c)})
	}
	return all
}

// pairGroup returns the group of cells that are several flows of one pair; else nil.
func pairGroup(d *measure.Document, cells []*measure.Cell) *measure.Group {
	other := func(c *measure.Cell) bool { return pairName(c) != pairName(cells[0]) }
	if len(cells) < 2 || slices.ContainsFunc(cells, other) {
		return nil
	}
	return groupOf(d, cells[0].Group)
}

// groupOf returns the group of that number; nil if there is none.
func groupOf(d *measure.Document, number int) *measure.Group {
	for i := range d.Groups {
		if d.Groups[i].Group == number {
			return &d.Groups[i]
		}
	}
	return nil
}

// stepLabel returns what distinguishes a cell from the others of its rung.
func stepLabel(c *measure.Cell) string {
	if c.Label != "" {
		return c.Label
	}
	return AxesText(c.Axes)
}

// rungError returns why nothing of a rung was measured.
func rungError(d *measure.Document, rung string) string {
	for i := range d.Cells {
		if c := &d.Cells[i]; c.Rung == rung && c.Error != nil {
			return c.Error.Message
		}
	}
	return "nothing was measured"
}

// ceilingOf returns the ceiling of the best cell, for what all its flows carried together; else that of the stated
// link at the MTU of the cell's route.
func ceilingOf(b *climb, link Link) *measure.Ceiling {
	if b.cell.Ceiling != nil {
		c := *b.cell.Ceiling
		c.SharePct = 100 * ratio(b.figure.Value, c.Bps)
		return &c
	}
	lent := *b.cell // changes here must not reach the document
	s := newSummary(&lent, nil, link)
	if link.RateBps <= 0 || s.mtu() == 0 && link.MTU == 0 {
		return nil
	}
	s.ceiling()
	if lent.Ceiling != nil {
		lent.Ceiling.SharePct = 100 * ratio(b.figure.Value, lent.Ceiling.Bps)
	}
	return lent.Ceiling
}

// isFull reports whether a share of a ceiling, in percent, is all that passes.
func isFull(c *measure.Ceiling) bool {
	return c != nil && c.SharePct >= PassPct && c.SharePct <= AboveCeilingPct
}

// GeneratorFor judges whether a generator that carries made without a link is fast enough to prove a link: 1.3
// times the link's ceiling or, if that is not known, 1.3 times what the link carried, since it may carry more. A
// full link is proved. against is the rate that made was compared with, in bit/s; 0 if there is none. c may be
// nil.
func GeneratorFor(made, carried float64, c *measure.Ceiling) (limited bool, against float64) {
	switch {
	case c != nil && c.Bps > 0 && isFull(c):
		return false, c.Bps
	case c != nil && c.Bps > 0:
		return GeneratorLimited(made, max(c.Bps, carried)), max(c.Bps, carried)
	}
	return carried > 0 && GeneratorLimited(made, carried), carried
}

// compareRungs fills a rung's loss against the one below, and whether that one was fast enough to prove it.
func compareRungs(l *measure.Ladder, lower, r *measure.Rung, level float64, links func(string) Link) {
	if r.Best == nil {
		return
	}
	if loss := Known(100 * LadderLoss(lower.Best.Value, r.Best.Value)); loss != nil {
		r.LossPct, r.LostBps = loss, new(lower.Best.Value-r.Best.Value)
		if d, found := figuresDiffer(lower.Best, r.Best, nil, level); found {
			r.LossLowPct, r.LossHighPct = Known(-PctOfLog(d.High)), Known(-PctOfLog(d.Low))
		}
		if *loss < -worthwhilePct {
			l.Notes = append(l.Notes, fmt.Sprintf("%s carries more than its baseline %s, %s against %s: %s",
				r.Name, lower.Name, unit.Rate(r.Best.Value), unit.Rate(lower.Best.Value), whyMore(r)))
		}
	}
	ceiling := r.Ceiling
	if link := links(r.Name); ceiling == nil && link.RateBps > 0 { // its MTU is not known: the rate itself is the bound
		ceiling = &measure.Ceiling{Bps: float64(link.RateBps), LinkBps: link.RateBps}
	}
	limited, against := GeneratorFor(lower.Best.Value, r.Best.Value, ceiling)
	r.Limited, r.Why = limited, limitText(lower, r, ceiling, limited, against)
	if v := r.Verdict; v != nil && limited && v.Share < PassPct {
		*v = openVerdict(*v, r.Why, "measure with more streams, or between faster hosts, until the baseline carries 1.3 times the rate")
	}
}

// whyMore says what it may mean that a rung carries more than the one below.
func whyMore(r *measure.Rung) string {
	if r.LossHighPct != nil && *r.LossHighPct < 0 {
		return "it does not include the baseline, or one of the two measurements was disturbed"
	}
	if isSingle(r.Best) {
		return "single runs differ by as much by chance (--repeat 5 would decide)"
	}
	return "runs with such a spread differ by as much by chance"
}

// limitText says what the rung below was compared with.
func limitText(lower, r *measure.Rung, c *measure.Ceiling, limited bool, against float64) string {
	times := fmt.Sprintf("%s carries %s, %.2f times", lower.Name, unit.Rate(lower.Best.Value), ratio(lower.Best.Value, against))
	of := "what " + r.Name + " carried (its link rate is not known)"
	if c != nil {
		of = "the ceiling of " + unit.Rate(c.Bps)
		if against > c.Bps {
			of = "what " + r.Name + " carried"
		}
	}
	switch {
	case limited && against > 0:
		return fmt.Sprintf("%s %s: %.1f times are needed to distinguish the path from the machine", times, of, GeneratorFactor)
	case isFull(c):
		return "the link is full: " + lower.Name + " was fast enough"
	case c == nil:
		return fmt.Sprintf("%s %s: it is not known whether it would fill the link", times, of)
	}
	return times + " " + of
}

// rungVerdict judges the best step of a rung by the ceiling of its link; nil if there is no link between the ends,
// its rate is not known, or the flow was not meant to fill it.
func rungVerdict(r *measure.Rung, cell *measure.Cell) *measure.Verdict {
	c := *cell
	c.Ceiling, c.Goodput = r.Ceiling, r.Best
	if r.From == r.To || !judgeable(c) || bounded(c) {
		return nil
	}
	v := judged(c)
	v.Reason = fmt.Sprintf("%s carries %s, %.2f%% of the ceiling of %s at MTU %d; %s is required",
		r.Name, unit.Rate(r.Best.Value), v.Share, unit.Rate(c.Ceiling.Bps), c.Ceiling.MTU, unit.Percent(PassPct))
	if AboveCeiling(&c) {
		v.Reason = fmt.Sprintf("%s shows %s, more than a link of %s can carry at MTU %d (%s): %s", r.Name, unit.Rate(r.Best.Value),
			unit.Rate(float64(c.Ceiling.LinkBps)), c.Ceiling.MTU, unit.Rate(c.Ceiling.Bps), wrongAssumption)
	}
	if d := c.Datagrams; d != nil && d.LossPct > MostLostPct {
		v.Reason = r.Name + " loses " + unit.Percent(d.LossPct) + " of the datagrams; at most " + unit.Percent(MostLostPct) + " is allowed"
	}
	v = settle(v, &c)
	return &v
}

// ladderVerdict returns the verdict of the rung that decides; nil if none was judged. A rung with a stated rate
// that could not be judged leaves open whether all pass.
func ladderVerdict(l *measure.Ladder, links func(string) Link) *measure.Verdict {
	var v *measure.Verdict
	judged, all, missing := 0, 0, ""
	for _, r := range l.Rungs {
		if r.From != r.To {
			all++
		}
		switch {
		case r.Verdict != nil:
			judged++
			if v == nil || worse(*r.Verdict, *v) {
				one := *r.Verdict
				v = &one
			}
		case missing == "" && r.From != r.To && links(r.Name).RateBps > 0:
			missing = r.Name
		}
	}
	if v == nil {
		return nil
	}
	if v.Pass && missing != "" {
		*v = openVerdict(*v, missing+" was not judged", "measure "+missing+" again, without a rate limit")
	}
	v.Judged, v.Rungs = judged, all
	return v
}
