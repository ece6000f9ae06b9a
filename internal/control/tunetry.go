package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"thru/internal/cause/knob"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/stat"
	"thru/internal/unit"
)

// try makes one change, and keeps it if it is shown to help. An error ends the
// tuning; the attempt holds the outcome in any case.
func (x *tuning) try(ctx context.Context, p measure.Proposal) (a measure.Attempt, err error) {
	a = measure.Attempt{Proposal: p}
	declined := x.declines(p)
	begin := time.Now()
	if declined == "" {
		err = x.judge(ctx, &a)
	} else {
		a.Outcome, a.Reason = measure.Declined, declined
	}
	err = giveUp(&a, err)
	if err == nil && a.Outcome != measure.Kept {
		err = giveUp(&a, x.revert(ctx)) // also a change given up may still be in force from its last run
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		a.Outcome, a.Reason = measure.Undone, "interrupted before the decision"
	default:
		a.Outcome, a.Reason = measure.Failed, "the tuning ended: "+err.Error()
	}
	a.ElapsedNs = int64(time.Since(begin))
	return a, err
}

// giveUp records in an attempt why it is given up, and returns an error that
// costs more than that attempt.
func giveUp(a *measure.Attempt, err error) error {
	f, up := givenUp(err)
	if !up {
		return err
	}
	a.Outcome = f.outcome
	a.Reason = fault.Joined(a.Reason, f.why)
	return nil
}

// declines returns why the risk of a change is not accepted; "" where it is.
func (x *tuning) declines(p measure.Proposal) string {
	switch {
	case !p.Cuts && (p.Risk == "" || x.Accept == nil):
		return ""
	case x.Accept == nil:
		return "its risk is not accepted: " + cmp.Or(p.Risk, "it may cut the connection")
	}
	asked := time.Now()
	defer func() { x.until = x.until.Add(time.Since(asked)) }() // the time the user takes to answer is not part of the budget
	return x.Accept(p)
}

// judge compares the state with a change to the one before, and decides whether to
// keep it. A change for no particular direction is kept where either improves.
func (x *tuning) judge(ctx context.Context, a *measure.Attempt) error {
	var c, before *contest // before: the comparison in the first direction
	directions, said := x.directionsOf(&a.Proposal), ""
	for n, w := range directions {
		if n > 0 && time.Until(x.until) < x.wants(w) {
			return &fallen{measure.NoTime, "the time budget does not allow the runs of " + w.name() + moreTime}
		}
		before, c = c, x.contest(a, w)
		defer c.strip()
		better, err := c.judge(ctx)
		if err != nil {
			return err
		}
		if len(directions) > 1 {
			said = fault.Joined(said, w.name()+": "+a.Reason)
			a.Reason = said
		}
		switch {
		case better:
			return x.keepHarmless(ctx, c, before)
		case a.Outcome == measure.Undone:
			return nil
		}
	}
	a.Outcome = measure.Undone
	return nil
}

// judge compares in one direction, and reports whether it improves. A change that
// harms this direction is reverted even if the other improves.
func (c *contest) judge(ctx context.Context) (better bool, err error) {
	a := c.attempt
	found, err := c.compare(ctx)
	if found.Pairs > 0 {
		a.Comparison, a.OtherDirection = &found, a.Comparison
	}
	if err != nil {
		return false, err
	}
	if found.Outcome == measure.NotCompared {
		return false, &fallen{measure.NotInUse, found.Reason}
	}
	a.Reason = found.Reason
	switch price := stat.Price(&found); {
	case found.Outcome == measure.Worse:
		a.Outcome = measure.Undone
	case found.Outcome == measure.Improved && price != "":
		a.Outcome, a.Reason = measure.Undone, a.Reason+"; but "+price
	}
	return found.Outcome == measure.Improved && a.Outcome != measure.Undone, nil
}

// keepHarmless keeps a change that improves a direction if it does not harm the
// other one. before is the comparison in the other direction; nil: not yet made.
func (x *tuning) keepHarmless(ctx context.Context, c, before *contest) error {
	a, other := c.attempt, before
	if w := x.otherDirection(c.direction); w != nil && other == nil {
		other = x.contest(a, w)
		defer other.strip()
	}
	if other != nil {
		harm, err := other.harms(ctx)
		if err != nil {
			return err
		}
		if harm != "" {
			a.Outcome, a.Reason = measure.Undone, a.Reason+"; but "+harm
			return nil
		}
	}
	if err := c.confirm(ctx); err != nil {
		return err
	}
	if err := c.enter(ctx, true); err != nil {
		return err
	}
	x.keepChange(a)
	return nil
}

// confirm measures the gain of a change to keep with new runs: the runs that led to
// the decision are selected by it and overstate the gain. Where the budget does
// not hold them, no gain is reported.
func (c *contest) confirm(ctx context.Context) error {
	again := c.contest(c.attempt, c.direction)
	again.path = c.path
	defer again.strip()
	for again.pairs < stat.LeastPairs(stat.GainLevel) && time.Until(c.until) >= 2*c.timeOf(c.direction)+c.standTime() {
		if err := again.pair(ctx); err != nil {
			return err
		}
	}
	gain := stat.AB(again.cell(false), again.cell(true), stat.GainLevel)
	c.attempt.Gain = &gain
	if again.pairs == 0 {
		c.attempt.Reason = fmt.Sprintf("it improves the rate by more than %d%%; the time budget did not allow the runs that measure by how much", stat.EquivalencePct) + moreTime
		return nil
	}
	c.attempt.Reason += "; measured again: " + gain.Reason
	return nil
}

// keepChange keeps the change in force.
func (x *tuning) keepChange(a *measure.Attempt) {
	a.Outcome, a.Changed = measure.Kept, x.open
	x.stood = append(x.stood, a.Settings...)
	x.open = nil
	for _, w := range x.directions {
		w.step = w.step.With(x.optionsFor(&a.Proposal, w))
	}
}

// optionsFor returns the test options of a proposal in a direction: in the
// opposite direction sender and receiver options change places.
func (x *tuning) optionsFor(p *measure.Proposal, w *direction) *measure.TestOptions {
	s := w.step.Specs[0]
	if p.Test == nil || p.From == "" || p.From == s.From {
		return p.Test
	}
	o := *p.Test
	o.SenderCPU, o.ReceiverCPU = o.ReceiverCPU, o.SenderCPU
	return &o
}

// harmPct is the loss of the other direction in one pair of runs, in percent, that
// calls for a full comparison. A larger loss is harm if it is certain at
// harmLevel, a lower level than for gains: in doubt the change is reverted.
const (
	harmPct   = 10
	harmLevel = 0.95
)

// harms checks whether an improvement of the other direction costs this one.
func (c *contest) harms(ctx context.Context) (string, error) {
	if c.pairs == 0 {
		if err := c.pair(ctx); err != nil {
			return "", err
		}
	}
	before, with := c.cell(false), c.cell(true)
	if stat.Carried(with, 0) < (1-harmPct/100.0)*stat.Carried(before, 0) {
		for c.pairs < c.out.Pairs {
			if time.Until(c.until) <= 0 {
				return "", &fallen{measure.NoTime, "the other direction may become slower, and the time budget does not allow the runs to check it" + moreTime}
			}
			if err := c.pair(ctx); err != nil {
				return "", err
			}
		}
	}
	found := stat.AB(c.cell(false), c.cell(true), c.level)
	c.attempt.OtherDirection = &found
	if found.Outcome == measure.Worse || found.Pairs > 1 && loses(stat.AB(c.cell(false), c.cell(true), harmLevel)) {
		return "the other direction becomes slower: " + found.Reason, nil
	}
	return "", nil
}

// loses reports whether a direction loses more than harmPct, and significantly.
func loses(c measure.Comparison) bool {
	return c.ChangePct != nil && c.HighPct != nil && *c.ChangePct < -harmPct && *c.HighPct < 0
}

// contest is the comparison of two states of one direction.
type contest struct {
	*tuning
	attempt   *measure.Attempt
	direction *direction
	cells     map[bool]int // with and without the change
	steps     map[bool]plan.Step
	stalls    bool          // runs without the change stall too
	pairs     int           // pairs made
	first     bool          // which state comes first in this pair
	path      *measure.Path // path as probed with the change
}

func (x *tuning) contest(a *measure.Attempt, w *direction) *contest {
	c := &contest{tuning: x, attempt: a, direction: w, cells: map[bool]int{}, steps: map[bool]plan.Step{}}
	for _, with := range []bool{false, true} {
		step, variant := w.step, stat.Before
		if with {
			step, variant = w.step.With(x.optionsFor(&a.Proposal, w)), stat.With
		}
		step.Label = a.Title + ": " + variant
		step.Axes = append(slices.Clone(step.Axes), measure.Axis{Name: stat.VariantAxis, Value: variant})
		step.Specs = slices.Clone(step.Specs)
		step.Specs[0].Ramp = int64(plan.Ramp(step.Specs[0], idleRTT(&x.doc.Cells[w.cell]))) // the same for both states
		step.Specs[0].NoRamp = step.Specs[0].Ramp == 0
		c.steps[with] = step
		c.cells[with] = x.add(step, tuneTrial(len(x.out.Attempts)), true)
	}
	for _, r := range x.doc.Cells[w.cell].Runs {
		c.stalls = c.stalls || r.Error != nil
	}
	return c
}

func (c *contest) cell(with bool) *measure.Cell { return &c.doc.Cells[c.cells[with]] }

// isSelfComparison reports whether the state is compared with itself.
func (c *contest) isSelfComparison() bool { return c.AA > 0 }

// compare makes pairs of runs until they decide. After the first pair the change
// must have been verified.
func (c *contest) compare(ctx context.Context) (found measure.Comparison, err error) {
	for {
		if err = c.pair(ctx); err != nil {
			return stat.AB(c.cell(false), c.cell(true), c.level), err
		}
		if c.pairs == 1 {
			err = c.verify(knob.Tried{Before: c.cell(false), With: c.cell(true)})
		}
		found = stat.AB(c.cell(false), c.cell(true), c.level)
		if err != nil || c.enough(c.pairs, &found) {
			return found, err
		}
		if err = c.outOfTime(c.pairs); err != nil {
			return found, err
		}
	}
}

// enough reports whether a comparison ends. A comparison of the state with itself
// never ends before its first look.
func (c *contest) enough(pairs int, found *measure.Comparison) bool {
	if c.isSelfComparison() && pairs < c.out.Pairs {
		return false
	}
	return stat.Over(c.cell(false), c.cell(true), found, pairs, c.out.Pairs)
}

// pair makes a run of each state. The state that comes first is chosen at random
// for each block of two pairs, A B B A or B A A B (methods.md).
func (c *contest) pair(ctx context.Context) error {
	n := c.pairs
	if c.first = !c.first; n%2 == 0 {
		c.first = c.random.IntN(2) == 0
	}
	for i, with := range []bool{c.first, !c.first} {
		if err := c.enter(ctx, with); err != nil {
			return err
		}
		if err := c.run(ctx, with, n, 2*n+i); err != nil {
			return err
		}
	}
	c.pairs++
	return nil
}

// enter puts the hosts into a state: with the change, or without. After a change
// of the MTU it probes the path before any traffic.
func (c *contest) enter(ctx context.Context, with bool) error {
	switch {
	case len(c.attempt.Settings) == 0 || with == (len(c.open) > 0):
		return nil
	case !with:
		return c.revert(ctx)
	}
	if err := c.alter(ctx, &c.attempt.Proposal); err != nil {
		return err
	}
	c.attempt.Changed = c.open
	sizes := slices.ContainsFunc(c.attempt.Settings, func(s measure.Setting) bool { return s.Knob == knob.MTU })
	if !sizes || c.path != nil || len(c.agents()) < 2 {
		return nil
	}
	how := c.how
	how.Quick = true
	path, err := c.quickProbe(ctx, how, false)
	if err != nil {
		release(c.agents())
		return context.Cause(ctx) // the traffic shows whether data passes
	}
	c.path = path
	return c.verify(knob.Tried{})
}

// verify records whether the change has its effect. It gives up one that
// provably has none.
func (c *contest) verify(t knob.Tried) error {
	t.Proposal, t.PathNow = &c.attempt.Proposal, c.path
	if len(c.doc.Paths) > 0 {
		t.PathWas = &c.doc.Paths[0]
	}
	all := append(readBack(c.attempt.Changed), knob.InForce(t)...)
	c.attempt.Verified = all
	for _, v := range all {
		if v.Holds != nil && !*v.Holds {
			return &fallen{measure.NotInUse, fmt.Sprintf("%s: %s", v.What, v.Fact)}
		}
	}
	return nil
}

// readBack returns what the hosts read after the change. The hosts have compared it
// with the requested value themselves, since a value may have parts that were not
// requested; an unchanged value does not hold.
func readBack(changed []measure.Changed) (all []measure.Verification) {
	for _, c := range changed {
		taken := knob.Same(c.Found, c.Value) || !knob.Same(c.Found, c.Before)
		all = append(all, measure.Verification{EndPoint: c.EndPoint, What: "read back", Holds: &taken, Fact: c.Knob + " " + c.Found})
	}
	return all
}

// run makes one run in a state. A change whose runs fail twice is given up; where
// runs without it stall too, no data is a result.
func (c *contest) run(ctx context.Context, with bool, n, done int) error {
	of := 2 * c.out.Pairs
	if done >= of {
		of *= stat.Looks
	}
	err := c.measure(ctx, c.steps[with], c.cells[with], n, done, of, c.stalls)
	if err != nil && with && ctx.Err() == nil && c.anyLost() == nil {
		return &fallen{measure.Failed, "the test fails with this change: " + err.Error()}
	}
	return err
}

// strip drops the evidence of all runs of a comparison but the first of each state,
// and keeps their figures.
func (c *contest) strip() {
	for _, i := range c.cells {
		runs := c.doc.Cells[i].Runs
		for k := 1; k < len(runs); k++ {
			for f := range runs[k].Flows {
				stripEvidence(runs[k].Flows[f].Sender)
				stripEvidence(runs[k].Flows[f].Receiver)
			}
		}
	}
}

func stripEvidence(e *measure.Evidence) {
	if e == nil {
		return
	}
	e.PerSec, e.Base = nil, nil
	for i := range e.Streams {
		e.Streams[i].Timeline, e.Streams[i].TCPStart, e.Streams[i].TCPEnd = nil, nil, nil
	}
	for i := range e.Bins {
		e.Bins[i].TCP = nil
	}
	if e.Host != nil {
		e.Host.Proto, e.Host.Softnet, e.Host.IRQs = nil, nil, nil
		if e.Host.NIC != nil {
			e.Host.NIC.Driver = nil
		}
	}
}

// compareWithItself compares the state with itself AA times, alternating the
// directions: the share of differences found is the false-positive rate.
func (x *tuning) compareWithItself(ctx context.Context) error {
	todo := x.todo()
	x.plan(todo)
	differ := 0
	for k := range x.AA {
		p := measure.Proposal{
			ID: fmt.Sprintf("a-a-%d", k+1), Title: fmt.Sprintf("A/A comparison %d of %d", k+1, x.AA),
			Why: "to measure the false-positive rate of the comparison", Expect: "no difference",
		}
		s := x.directions[k%len(x.directions)].step.Specs[0]
		p.From, p.To = s.From, s.To
		x.notify(Trying{p, k, x.AA, 0})
		begin := time.Now()
		a := measure.Attempt{Proposal: p, Outcome: measure.Settled}
		c := x.contest(&a, x.directionsOf(&p)[0])
		found, err := c.compare(ctx)
		c.strip()
		if err != nil {
			return err
		}
		if a.Comparison, a.Reason = &found, found.Reason; found.Outcome == measure.Improved || found.Outcome == measure.Worse {
			differ++
		}
		a.ElapsedNs = int64(time.Since(begin))
		x.record(a)
	}
	x.doc.Ended = fmt.Sprintf("%d of %d A/A comparisons found a difference", differ, x.AA)
	return nil
}

// outOfTime gives a comparison up after so many pairs where the budget does not
// hold the rest.
func (c *contest) outOfTime(pairs int) error {
	left := time.Until(c.until)
	switch {
	case c.isSelfComparison():
		return nil
	case pairs == c.out.Pairs && left < c.wants(c.direction):
		return &fallen{measure.NoTime, fmt.Sprintf("%d pairs of runs do not show whether it helps, and the time budget does not allow as many again", pairs) + moreTime}
	case left <= 0:
		return &fallen{measure.NoTime, fmt.Sprintf("the time budget ended after %s of runs", unit.Plural(pairs, "pair")) + moreTime}
	}
	return nil
}
