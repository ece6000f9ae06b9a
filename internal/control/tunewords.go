package control

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/cause/knob"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/stat"
)

// Experiment names of the cells of a tuning: its comparisons, and its earlier
// states (docs/result.md).
func tuneTrial(attempt int) string { return fmt.Sprintf("%s%d", measure.OfTuning, attempt+1) }
func tuneState(n int) string       { return fmt.Sprintf("%sstate-%d", measure.OfTuning, n) }

// boundBy says what limits a direction, by its first finding.
func boundBy(c *measure.Cell) string {
	direction := measure.PairName(c.From, c.To)
	if len(c.Findings) == 0 {
		return direction + ": not known"
	}
	return direction + ": " + c.Findings[0].Summary
}

// causeOf returns the cause of that finding.
func causeOf(c *measure.Cell) string {
	if len(c.Findings) == 0 {
		return ""
	}
	return c.Findings[0].Cause
}

// nothingLeft returns the reason text for no change left to try.
func (x *tuning) nothingLeft() string {
	if x.ranOut() {
		return x.budgetSpent()
	}
	switch {
	case len(x.out.Attempts) == 0 && len(x.Only) > 0:
		return "no setting of --only would fix the findings"
	case len(x.out.Attempts) == 0:
		return "no setting would fix the findings"
	}
	return "no remaining proposal helps"
}

// keptTitles returns the titles of the kept changes.
func (x *tuning) keptTitles() (titles []string) {
	for _, a := range x.out.Attempts {
		if a.Outcome == measure.Kept {
			titles = append(titles, a.Title)
		}
	}
	return titles
}

// stays names the changes that an interrupted tuning leaves.
func (x *tuning) stays() string {
	titles := x.keptTitles()
	if len(titles) == 0 {
		return "no change is kept"
	}
	return "changes that helped are kept: " + strings.Join(titles, "; ") + " (revert them with thru tune --rollback)"
}

// allUndone marks the kept changes as reverted, except at the ends where they stay.
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
			a.Reason += "; reverted at " + a.Settings[n].EndPoint + ", because the tuning did not complete there"
		default:
			a.Outcome, a.Reason = measure.Undone, a.Reason+"; reverted, because the tuning did not complete"
		}
	}
	x.stood, x.rolledBack = slices.DeleteFunc(x.stood, gone), true
}

// stayError returns an error where changes stay at an end of a tuning that did not
// end at all ends; nil where none stay.
func (x *tuning) stayError(stays map[string]bool) error {
	for _, s := range x.stood {
		if stays[s.EndPoint] {
			return fault.Failf("revert them with thru tune --rollback "+s.EndPoint, "control: the kept changes at %s were not reverted", s.EndPoint)
		}
	}
	return nil
}

// nowhere returns why a setting of Try cannot be set at any end point.
func (x *tuning) nowhere(s measure.Setting) error {
	if s.EndPoint != "" {
		return fault.Usagef("name an end point of this tuning", "control: %s is not an end point of this tuning", s.EndPoint)
	}
	s.EndPoint = x.doc.EndPoints[0].Name
	_, err := x.mayTake(s)
	return err
}

// mayTake returns the state of a knob that the user wants to set, or why it cannot
// be set.
func (x *tuning) mayTake(s measure.Setting) (measure.KnobState, error) {
	now, known := x.state(s)
	switch {
	case x.not[s.EndPoint] != "":
		return now, fault.Failf("", "control: %s cannot be set at %s: %s", s.Knob, s.EndPoint, x.not[s.EndPoint])
	case !known:
		return now, fault.Usagef("list the settings: thru tune --list", "control: %s does not exist at %s", strings.TrimSpace(s.Knob+" "+s.Interface), s.EndPoint)
	case now.Refused != "":
		return now, fault.Failf("", "control: %s cannot be set at %s: %s", s.Knob, s.EndPoint, now.Refused)
	}
	return now, nil
}

// advise is the result of a dry run: the changes to try, in order, and the manual
// steps.
func (x *tuning) advise() {
	todo := x.todo()
	x.plan(todo)
	x.out.Advice = append(x.pending, x.propose(x.doc, x.seen)...)
	x.doc.Ended = "dry run: nothing was changed"
}

// sum adds the summary of a finished tuning: the manual steps left, how to make the
// kept changes persistent, and what limits the path now.
func (x *tuning) sum() {
	if len(x.out.Journey) == 0 || x.rolledBack && len(x.out.Journey) > 1 { // the last state is no longer in force
		return
	}
	left := slices.DeleteFunc(x.propose(x.doc, x.seen), func(p measure.Proposal) bool { return x.triedHere(&p) || x.takesBack(&p) || x.isSo(&p) })
	for _, w := range x.directions {
		c := &x.doc.Cells[w.cell]
		x.out.Remains = append(x.out.Remains, x.remains(c, left))
		if s := stat.ScatterOf(x.ofState(w)).String(); s != "" {
			x.doc.Warnings = append(x.doc.Warnings, measure.PairName(c.From, c.To)+": "+s)
		}
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
	for _, p := range left {
		if !tried[p.ID] {
			x.out.Advice = append(x.out.Advice, p)
		}
	}
	x.persistent()
}

// remains says what limits a direction after the tuning: its first finding that
// the attempts did not refute. left holds the remaining proposals.
func (x *tuning) remains(c *measure.Cell, left []measure.Proposal) string {
	n := slices.IndexFunc(c.Findings, func(f measure.Finding) bool { return !x.refuted(c, f.Cause, left) && !x.refuted(c, f.BecauseOf, left) })
	switch {
	case n == 0 || len(c.Findings) == 0:
		return boundBy(c)
	case n < 0:
		return boundBy(c) + "; but the changes tried against it did not help"
	}
	return fmt.Sprintf("%s: %s; also found, but the changes tried against it did not help: %s", measure.PairName(c.From, c.To), c.Findings[n].Summary, c.Findings[0].Summary)
}

// refuted reports whether a cause was shown not to limit a direction: all that was
// proposed for it was tried in the current state, without effect.
func (x *tuning) refuted(c *measure.Cell, cause string, left []measure.Proposal) bool {
	isFor := func(p measure.Proposal) bool {
		return cause != "" && p.Cause == cause && (p.From == "" || p.From == c.From)
	}
	if slices.ContainsFunc(left, isFor) {
		return false
	}
	tried := false
	for _, a := range x.out.Attempts {
		switch kept, undone := x.seen.Undone[a.ID]; {
		case !isFor(a.Proposal) || a.Outcome == measure.Kept || undone && kept < len(x.seen.Kept): // of another state
		case a.Outcome != measure.Undone || !broughtNothing(a.Comparison):
			return false
		default:
			tried = true
		}
	}
	return tried
}

// telling is the number of pairs of runs that show that a change has no effect: an
// interrupted comparison may have fewer.
const telling = 3

// broughtNothing reports whether a comparison found no effect.
func broughtNothing(c *measure.Comparison) bool {
	return c != nil && c.Pairs >= telling && c.Outcome != measure.Improved && !stat.Promising(*c)
}

// persistent adds how to keep the changes after a reboot, host by host.
func (x *tuning) persistent() {
	for _, e := range x.doc.EndPoints {
		x.out.Persistence = append(x.out.Persistence, knob.Persistent(knob.HostOf(e.Name, e.Facts), x.stood)...)
	}
}
