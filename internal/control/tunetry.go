package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"thru/internal/knob"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/stat"
)

// try makes one change, and keeps it where it is shown to help. The error is one
// that ends the tuning; the attempt tells what came of it in any case.
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
		err = giveUp(&a, x.revert(ctx)) // also of one that is given up: it is in force where the last run was with it
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		a.Outcome, a.Reason = measure.Undone, "interrupted before it was judged"
	default:
		a.Outcome, a.Reason = measure.Failed, "the tuning ended: "+err.Error()
	}
	a.ElapsedNs = int64(time.Since(begin))
	return a, err
}

// giveUp notes in an attempt why it is given up, and returns an error that costs
// more than that attempt.
func giveUp(a *measure.Attempt, err error) error {
	f, up := givenUp(err)
	if !up {
		return err
	}
	a.Outcome = f.outcome
	a.Reason = strings.TrimPrefix(a.Reason+"; "+f.why, "; ")
	return nil
}

// declines asks whether the risk of a change is taken, and says why not; "" where it is.
func (x *tuning) declines(p measure.Proposal) string {
	switch {
	case !p.Cuts && (p.Risk == "" || x.Accept == nil):
		return ""
	case x.Accept == nil:
		return "nobody accepts its risk: " + cmp.Or(p.Risk, "it may cut the connection")
	}
	asked := time.Now()
	defer func() { x.until = x.until.Add(time.Since(asked)) }() // the budget is of tuning, not of thinking
	return x.Accept(p)
}

// givenUp tells whether an error costs a change alone: all that it wraps is of type
// fallen.
func givenUp(err error) (*fallen, bool) {
	switch e := err.(type) {
	case *fallen:
		return e, true
	case interface{ Unwrap() error }:
		return givenUp(e.Unwrap())
	case interface{ Unwrap() []error }:
		var first *fallen
		for _, part := range e.Unwrap() {
			f, ok := givenUp(part)
			if !ok {
				return nil, false
			}
			first = cmp.Or(first, f)
		}
		return first, first != nil
	}
	return nil, false
}

// judge compares the state with a change to that before it, and says whether the
// change is kept.
func (x *tuning) judge(ctx context.Context, a *measure.Attempt) error {
	c := x.contest(a, x.wayOf(&a.Proposal))
	defer c.strip()
	found, err := c.compare(ctx)
	if found.Pairs > 0 {
		a.Comparison = &found
	}
	if err != nil {
		return err
	}
	if found.Outcome == measure.NotCompared {
		return &fallen{measure.NotInUse, found.Reason}
	}
	a.Reason = found.Reason
	price := stat.Price(&found)
	switch {
	case found.Outcome != measure.Improved:
		a.Outcome = measure.Undone
		return nil
	case price != "":
		a.Outcome, a.Reason = measure.Undone, a.Reason+"; but "+price
		return nil
	}
	if other := x.otherWay(c.way); other != nil {
		harm, err := x.harms(ctx, a, other)
		if err != nil {
			return err
		}
		if harm != "" {
			a.Outcome, a.Reason = measure.Undone, a.Reason+"; but "+harm
			return nil
		}
	}
	if err := c.enter(ctx, true); err != nil {
		return err
	}
	x.keepChange(a)
	return nil
}

// keepChange has a change stand that is in force.
func (x *tuning) keepChange(a *measure.Attempt) {
	a.Outcome, a.Changed = measure.Kept, x.open
	x.stood = append(x.stood, a.Settings...)
	x.open = nil
	for _, w := range x.ways {
		w.step = w.step.With(x.optionsFor(&a.Proposal, w))
	}
}

// optionsFor are the options of a proposal in a direction: what is of the ends
// that send and receive changes sides in the other one.
func (x *tuning) optionsFor(p *measure.Proposal, w *way) *measure.TestOptions {
	s := w.step.Specs[0]
	if p.Test == nil || p.From == "" || p.From == s.From {
		return p.Test
	}
	o := *p.Test
	o.SenderCPU, o.ReceiverCPU = o.ReceiverCPU, o.SenderCPU
	return &o
}

// wayOf is the direction for whose sake a change is proposed, else the one that
// carries less of what it could.
func (x *tuning) wayOf(p *measure.Proposal) *way {
	for _, w := range x.ways {
		if s := w.step.Specs[0]; s.From == p.From && s.To == p.To {
			return w
		}
	}
	return slices.MinFunc(x.ways, func(a, b *way) int {
		switch d := x.share(a) - x.share(b); {
		case d < 0:
			return -1
		case d > 0:
			return 1
		}
		return 0
	})
}

// share is what a direction carries of its ceiling, else in bit/s.
func (x *tuning) share(w *way) float64 {
	c := &x.doc.Cells[w.cell]
	switch {
	case c.Goodput == nil:
		return 0
	case c.Ceiling != nil:
		return c.Ceiling.SharePct
	}
	return c.Goodput.Value
}

// otherWay is the direction that a change was not made for; nil where one alone is tuned.
func (x *tuning) otherWay(w *way) *way {
	for _, o := range x.ways {
		if o != w {
			return o
		}
	}
	return nil
}

// harmPct is how much the other direction may lose in one pair of runs before it
// is looked at closely, in percent. A loss above it is harm where it is certain at
// harmLevel: less than of a gain, since a doubt speaks against the change.
const (
	harmPct   = 10
	harmLevel = 0.95
)

// harms looks whether an improvement of one direction costs the other one.
func (x *tuning) harms(ctx context.Context, a *measure.Attempt, other *way) (string, error) {
	c := x.contest(a, other)
	defer c.strip()
	if err := c.pair(ctx, 0); err != nil {
		return "", err
	}
	before, with := c.cell(false), c.cell(true)
	if stat.Carried(with, 0) < (1-harmPct/100.0)*stat.Carried(before, 0) {
		for n := 1; n < x.out.Pairs; n++ {
			if time.Until(x.until) <= 0 {
				return "", &fallen{measure.NoTime, "the other direction may lose by it, and the budget does not hold the runs that would tell" + moreTime}
			}
			if err := c.pair(ctx, n); err != nil {
				return "", err
			}
		}
	}
	found := stat.AB(c.cell(false), c.cell(true), x.level)
	a.OtherWay = &found
	if found.Outcome == measure.Worse || found.Pairs > 1 && loses(stat.AB(c.cell(false), c.cell(true), harmLevel)) {
		return "the other direction loses by it: " + found.Reason, nil
	}
	return "", nil
}

// loses tells whether a direction loses more than harmPct, and surely something.
func loses(c measure.Comparison) bool {
	return c.ChangePct != nil && c.HighPct != nil && *c.ChangePct < -harmPct && *c.HighPct < 0
}

// contest is the comparison of two states of one direction.
type contest struct {
	*tuning
	attempt *measure.Attempt
	way     *way
	cells   map[bool]int // with the change, and without
	steps   map[bool]plan.Step
	stalls  bool          // runs without the change stall, too
	first   bool          // which state comes first in this pair
	path    *measure.Path // as it was probed with the change
}

func (x *tuning) contest(a *measure.Attempt, w *way) *contest {
	c := &contest{tuning: x, attempt: a, way: w, cells: map[bool]int{}, steps: map[bool]plan.Step{}}
	for _, with := range []bool{false, true} {
		step, variant := w.step, stat.Before
		if with {
			step, variant = w.step.With(x.optionsFor(&a.Proposal, w)), stat.With
		}
		step.Label = a.Title + ": " + variant
		step.Axes = append(slices.Clone(step.Axes), measure.Axis{Name: stat.VariantAxis, Value: variant})
		step.Specs = slices.Clone(step.Specs)
		step.Specs[0].Ramp = int64(plan.Ramp(step.Specs[0], idleRTT(&x.doc.Cells[w.cell]))) // the same with both
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

// isAlike tells of a comparison of the state with itself.
func (c *contest) isAlike() bool { return c.AA > 0 }

// compare makes pairs of runs until they tell enough. After the first one the
// change must have shown that it is in force.
func (c *contest) compare(ctx context.Context) (found measure.Comparison, err error) {
	for n := 0; ; n++ {
		if err = c.pair(ctx, n); err != nil {
			return stat.AB(c.cell(false), c.cell(true), c.level), err
		}
		if n == 0 {
			err = c.verify(stat.Tried{Before: c.cell(false), With: c.cell(true)})
		}
		found = stat.AB(c.cell(false), c.cell(true), c.level)
		if err != nil || c.enough(n+1, &found) {
			return found, err
		}
		if err = c.outOfTime(n + 1); err != nil {
			return found, err
		}
	}
}

// enough is the rule by which a comparison ends: at the least number of pairs for
// its level, or at twice that, where it is undecided and may be an improvement;
// before them where none of three pairs was better.
func (c *contest) enough(pairs int, found *measure.Comparison) bool {
	switch {
	case !c.isAlike() && pairs < c.out.Pairs && stat.Futile(c.cell(false), c.cell(true)):
		found.Reason = fmt.Sprintf("none of %d pairs of runs was better by more than %d%%", pairs, stat.EquivalencePct)
		return true
	case pairs < c.out.Pairs:
		return false
	case pairs == c.out.Pairs:
		return !stat.Promising(*found)
	}
	return pairs >= looks*c.out.Pairs
}

// pair makes a run of each state. The state that comes first is chosen at random
// for each block of two pairs, A B B A or B A A B (methods.md).
func (c *contest) pair(ctx context.Context, n int) error {
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
	return nil
}

// enter has the hosts be in a state. Where the MTU is changed, the path is probed
// before any traffic.
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
	return c.verify(stat.Tried{})
}

// verify notes whether the change does what it says. One that is shown not to is
// given up.
func (c *contest) verify(t stat.Tried) error {
	t.Proposal, t.PathNow = &c.attempt.Proposal, c.path
	if len(c.doc.Paths) > 0 {
		t.PathWas = &c.doc.Paths[0]
	}
	all := append(readBack(c.attempt.Changed), stat.InForce(t)...)
	c.attempt.Verified = all
	for _, v := range all {
		if v.Holds != nil && !*v.Holds {
			return &fallen{measure.NotInUse, fmt.Sprintf("%s: %s", v.What, v.Fact)}
		}
	}
	return nil
}

// readBack tells what the hosts had when they were read after the change. Whether
// that is what was asked for they have judged themselves, since a value may have
// parts that were not asked for; one that is still as it was is not.
func readBack(changed []measure.Changed) (all []measure.Verification) {
	for _, c := range changed {
		taken := alikeText(c.Found, c.Value) || !alikeText(c.Found, c.Before)
		all = append(all, measure.Verification{EndPoint: c.EndPoint, What: "read back", Holds: &taken, Fact: c.Knob + " " + c.Found})
	}
	return all
}

// run makes one run in a state. Traffic that fails twice does not survive the
// change; where it stalls without it too, that it carries nothing is its figure.
func (c *contest) run(ctx context.Context, with bool, n, done int) error {
	of := 2 * c.out.Pairs
	if done >= of {
		of *= looks
	}
	err := c.measure(ctx, c.steps[with], c.cells[with], n, done, of, c.stalls)
	if err != nil && with && ctx.Err() == nil && c.anyLost() == nil {
		return &fallen{measure.Failed, "the traffic does not survive it: " + err.Error()}
	}
	return err
}

// strip leaves of the runs of a comparison the figures, and of the first run of
// each state the whole evidence.
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
		e.Streams[i].Course, e.Streams[i].TCPStart, e.Streams[i].TCPEnd = nil, nil, nil
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

// alike compares the state with itself so many times, in turns of the directions:
// how often that comes out as a difference tells how far the method can be trusted.
func (x *tuning) alike(ctx context.Context) error {
	todo := x.todo()
	x.plan(todo, len(todo))
	differ := 0
	for k := range x.AA {
		p := measure.Proposal{
			ID: fmt.Sprintf("a-a-%d", k+1), Title: fmt.Sprintf("the state with itself, %d of %d", k+1, x.AA),
			Why: "to show how far the comparison can be trusted", Expect: "no difference",
		}
		s := x.ways[k%len(x.ways)].step.Specs[0]
		p.From, p.To = s.From, s.To
		x.Watch.Trying(p, k, x.AA, 0)
		begin := time.Now()
		a := measure.Attempt{Proposal: p, Outcome: measure.Settled}
		c := x.contest(&a, x.wayOf(&p))
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
	x.doc.Ended = fmt.Sprintf("%d of %d comparisons of the state with itself came out as a difference", differ, x.AA)
	return nil
}
