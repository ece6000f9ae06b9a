package control

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/fault"
	"thru/internal/knob"
	"thru/internal/measure"
)

// Experiments of the cells that a tuning leaves behind: what it compared, and the
// states that it has come from (docs/result.md).
func tuneTrial(attempt int) string { return fmt.Sprintf("%s%d", measure.OfTuning, attempt+1) }
func tuneState(n int) string       { return fmt.Sprintf("%sstate-%d", measure.OfTuning, n) }

// boundBy says what holds a direction, by its first finding.
func boundBy(c *measure.Cell) string {
	way := measure.PairName(c.From, c.To)
	if len(c.Findings) == 0 {
		return way + ": not known"
	}
	return way + ": " + c.Findings[0].Summary
}

// causeOf is the cause of that finding.
func causeOf(c *measure.Cell) string {
	if len(c.Findings) == 0 {
		return ""
	}
	return c.Findings[0].Cause
}

// nothingLeft words that no change is left to try.
func (x *tuning) nothingLeft() string {
	if x.ranOut() {
		return x.budgetSpent()
	}
	if len(x.out.Attempts) == 0 {
		return "nothing was found that a setting would mend"
	}
	return "nothing that is proposed helps any more"
}

// keptTitles names the changes that stand.
func (x *tuning) keptTitles() (titles []string) {
	for _, a := range x.out.Attempts {
		if a.Outcome == measure.Kept {
			titles = append(titles, a.Title)
		}
	}
	return titles
}

// stays is the hint of an interrupted tuning.
func (x *tuning) stays() string {
	titles := x.keptTitles()
	if len(titles) == 0 {
		return "nothing was changed that stays"
	}
	return "what was shown to help stays: " + strings.Join(titles, "; ") + " (thru tune --rollback undoes it)"
}

// allUndone says of what was kept that it stands no more, but at the ends where it stays.
func (x *tuning) allUndone(stays map[string]bool) {
	gone := func(s measure.Setting) bool { return !stays[s.EndPoint] }
	for i := range x.out.Attempts {
		a := &x.out.Attempts[i]
		if a.Outcome != measure.Kept {
			continue
		}
		n := slices.IndexFunc(a.Settings, gone)
		switch {
		case len(a.Settings) > 0 && n < 0:
			continue
		case slices.ContainsFunc(a.Settings, func(s measure.Setting) bool { return stays[s.EndPoint] }):
			a.Reason += "; undone all the same at " + a.Settings[n].EndPoint + ", where the tuning did not come to its end"
		default:
			a.Outcome, a.Reason = measure.Undone, a.Reason+"; undone all the same, since the tuning did not come to its end"
		}
	}
	x.stood, x.rolledBack = slices.DeleteFunc(x.stood, gone), true
}

// stayError says where something of a tuning stays that did not come to its end
// everywhere; nil where nothing does.
func (x *tuning) stayError(stays map[string]bool) error {
	for _, s := range x.stood {
		if stays[s.EndPoint] {
			return fault.Failf("thru tune --rollback "+s.EndPoint+" undoes it", "control: what was kept at %s stays", s.EndPoint)
		}
	}
	return nil
}

// nowhere says why a setting that was asked for by hand has no place.
func (x *tuning) nowhere(s measure.Setting) error {
	if s.EndPoint != "" {
		return fault.Usagef("name one of those that are tuned", "control: %s is no end point of this tuning", s.EndPoint)
	}
	s.EndPoint = x.doc.EndPoints[0].Name
	_, err := x.mayTake(s)
	return err
}

// mayTake is what an end point says of a knob that is to be set by hand, or why
// that cannot be.
func (x *tuning) mayTake(s measure.Setting) (measure.KnobState, error) {
	now, known := x.state(s)
	switch {
	case x.not[s.EndPoint] != "":
		return now, fault.Failf("", "control: %s cannot be set at %s: %s", s.Knob, s.EndPoint, x.not[s.EndPoint])
	case !known:
		return now, fault.Usagef("thru tune --list shows what there is", "control: there is no %s at %s", strings.TrimSpace(s.Knob+" "+s.Interface), s.EndPoint)
	case now.Refused != "":
		return now, fault.Failf("", "control: %s cannot be set at %s: %s", s.Knob, s.EndPoint, now.Refused)
	}
	return now, nil
}

// advise is the whole of a dry run: what would be tried, in order, and what is
// left to the reader.
func (x *tuning) advise() {
	todo := x.todo()
	x.plan(todo, len(todo))
	x.out.Advice = append(x.hand, x.propose(x.doc, x.seen)...)
	x.doc.Ended = "advice alone: nothing was changed"
}

// sum adds what is said of a tuning that is over: what is left to the reader, how
// what was kept is made to last, and what holds the path now.
func (x *tuning) sum() {
	if len(x.out.Journey) == 0 || x.rolledBack && len(x.out.Journey) > 1 { // the last state stands no more
		return
	}
	for _, w := range x.ways {
		x.out.Remains = append(x.out.Remains, boundBy(&x.doc.Cells[w.cell]))
	}
	if x.DryRun || x.AA > 0 {
		return
	}
	tried := map[string]bool{}
	for _, a := range x.out.Attempts {
		if tried[a.ID] = true; a.Outcome == measure.Declined || a.Outcome == measure.NoTime {
			x.out.Advice = append(x.out.Advice, a.Proposal)
		}
	}
	for _, p := range x.propose(x.doc, x.seen) {
		if !tried[p.ID] && !x.isSo(&p) {
			x.out.Advice = append(x.out.Advice, p)
		}
	}
	x.lasting()
}

// lasting says how what was kept outlives a boot, host by host.
func (x *tuning) lasting() {
	for _, e := range x.doc.EndPoints {
		x.out.Lasting = append(x.out.Lasting, knob.Lasting(knob.HostOf(e.Name, e.Facts), x.stood)...)
	}
}
