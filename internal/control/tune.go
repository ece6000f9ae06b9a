package control

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"thru/internal/cause"
	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
)

// Tuning holds the options of a tuning.
type Tuning struct {
	Owner     string            // name of this tuning in messages to clients that it locks out
	Budget    time.Duration     // no change begins, and no comparison continues, that does not fit in it
	TargetBps float64           // rate in each direction at which the tuning ends; 0: none
	DryRun    bool              // measures and advises, and changes nothing
	AA        int               // number of comparisons of the state with itself instead of changes, whatever the budget
	Try       []measure.Setting // changes to try before all proposals; no EndPoint: at each end
	Only      []string          // ids of the knobs that may be changed; none: all
	Seed      uint64            // of the order of runs
	// Accept is called for each change with a risk (Proposal.Risk, Cuts), and returns
	// why it is declined; "" accepts it. nil declines those that may cut the connection.
	Accept func(measure.Proposal) (declined string)

	propose func(*measure.Document, advise.Seen) []measure.Proposal // nil: cause.Propose
}

// Tune changes one setting at a time at the end points of a plan's traffic, and
// keeps the changes that are shown to help. It reads the hosts and probes the
// path, measures the traffic, and takes proposals from the findings and gates.
// It applies each change, verifies that it is in force, and alternates runs with
// it and without. It reverts at once a change that does not improve. After a kept
// change it measures and proposes anew. It ends when the target is met, no
// proposal helps, or the budget is spent.
//
// On an error, such as a lost end point, it reverts all changes; on an interrupt
// only the change on trial. The document is usable on error too.
func (r *Runner) Tune(ctx context.Context, p plan.Plan, how Probing, t Tuning) (*measure.Document, error) {
	begin := time.Now()
	x := newTuning(r, p, how, t, begin)
	err := r.allowed(p)
	if err == nil {
		err = x.carryOut(ctx)
	}
	interrupted := ctx.Err() != nil
	undoing := x.finish(ctx, x.unsure || err != nil && !interrupted)
	if interrupted {
		x.doc.Ended, err = endedInterrupted, fmt.Errorf("%w: %s", fault.ErrInterrupted, x.stays())
	}
	if err != nil && x.anyLost() != nil {
		x.doc.Ended = cmp.Or(x.doc.Ended, endedLost)
	}
	err = both(err, undoing)
	r.conclude(p, x.doc)
	x.sum()
	return finished(x.doc, begin, err)
}

// both joins an error with one that followed from it; the hint of the second wins.
func both(err, then error) error {
	switch {
	case then == nil:
		return err
	case err == nil:
		return then
	}
	return fault.New(fault.Failed, cmp.Or(fault.Hint(then), fault.Hint(err)), "%w; and %w", err, then)
}

// tuning is the state of one Tune.
type tuning struct {
	*Runner
	Tuning
	doc        *measure.Document
	out        *measure.Tuning // of the document
	how        Probing
	repeat     int // runs of each state in each direction
	until      time.Time
	looked     time.Duration // time that reading the hosts and the path took
	random     *rand.Rand
	facts      map[string]*measure.Facts
	directions []*direction
	level      float64 // confidence level of each comparison's interval

	ours    []*EndPoint       // end points that this client tunes, this machine last
	hosts   map[string]string // their names, by host id
	not     map[string]string // why the others are not tuned, by name
	open    []measure.Changed // settings of the change on trial, in order
	stood   []measure.Setting // kept settings
	seen    advise.Seen
	taken   map[hostKnob]bool  // knobs that somebody else changed meanwhile: left alone
	pending []measure.Proposal // changes of Try not yet tried
	// unsure is set where an agent's answer was lost, so that the setting is unknown.
	unsure     bool
	rolledBack bool // all changes of this tuning are reverted
}

// hostKnob is one knob of one host.
type hostKnob struct{ end, knob, face string }

func hostKnobOf(s measure.Setting) hostKnob { return hostKnob{s.EndPoint, s.Knob, s.Interface} }

func newTuning(r *Runner, p plan.Plan, how Probing, t Tuning, begin time.Time) *tuning {
	x := &tuning{
		Runner: r, Tuning: t, how: how, repeat: max(p.Repeat.Max, 1), until: begin.Add(t.Budget), random: rand.New(rand.NewPCG(t.Seed, t.Seed)),
		doc: r.document(p.Command, begin), out: &measure.Tuning{DryRun: t.DryRun, TargetBps: t.TargetBps, Only: t.Only},
		not: map[string]string{}, taken: map[hostKnob]bool{},
		seen: advise.Seen{Undone: map[string]int{}, Never: map[string]bool{}, Only: t.Only},
	}
	x.doc.Tuning = x.out
	if x.propose == nil {
		x.propose = cause.Propose
	}
	for _, s := range p.Steps {
		x.directions = append(x.directions, &direction{step: s})
	}
	return x
}

// carryOut does the whole tuning except finish.
func (x *tuning) carryOut(ctx context.Context) error {
	if err := x.begin(ctx); err != nil {
		return err
	}
	if err := x.look(ctx); err != nil {
		return err
	}
	if err := x.stand(ctx, "as it was found", nil); err != nil {
		return err
	}
	var err error
	if x.pending, err = x.manualChanges(); err != nil {
		return err
	}
	switch {
	case x.AA > 0:
		return x.compareWithItself(ctx)
	case x.DryRun:
		x.advise()
		return nil
	}
	return x.improve(ctx)
}

// look reads the hosts, their knobs, and the path again. A failed probe or gate
// ends nothing: the traffic shows whether data passes.
func (x *tuning) look(ctx context.Context) error {
	now, begin := &measure.Document{}, time.Now()
	defer func() { x.looked = time.Since(begin) }()
	probing := &x.how
	if len(x.agents()) < 2 {
		probing = nil
	}
	facts, _, err := x.Runner.look(ctx, now, loadTime, probing, x.directions[0].step.Specs[0])
	release(x.agents())
	if err != nil {
		return err
	}
	x.facts = facts
	x.doc.EndPoints, x.doc.Paths, x.doc.Gates, x.doc.Missing = now.EndPoints, now.Paths, now.Gates, now.Missing
	return x.readKnobs(ctx)
}

// stand measures the current state in each direction: a row of the journey.
func (x *tuning) stand(ctx context.Context, title string, attempt *int) error {
	m := measure.Milestone{Title: title, Attempt: attempt}
	x.retire()
	for _, w := range x.directions {
		w.cell, w.pace = x.add(w.step, diagnose.Base, false), pace{}
		m.Cells = append(m.Cells, w.cell)
		for n := range x.repeat {
			if err := x.measure(ctx, w.step, w.cell, n, n, x.repeat, true); err != nil {
				return err
			}
		}
	}
	cause.Diagnose(x.doc)
	var cells []measure.Cell
	for _, w := range x.directions {
		c := x.doc.Cells[w.cell]
		m.Findings, m.Causes = append(m.Findings, boundBy(&c)), append(m.Causes, causeOf(&c))
		cells = append(cells, c)
	}
	x.out.Journey = append(x.out.Journey, m)
	x.notify(Stands{m, cells})
	return nil
}

// retire excludes the cells of an earlier state from the current diagnosis.
func (x *tuning) retire() {
	n := len(x.out.Journey)
	if n == 0 {
		return
	}
	for _, i := range x.out.Journey[n-1].Cells {
		c := &x.doc.Cells[i]
		c.Experiment, c.Baseline = tuneState(n-1), true
	}
}

// add appends the cell of a step with one flow, and returns its index.
func (x *tuning) add(step plan.Step, experiment string, baseline bool) int {
	c := cells(plan.Plan{Steps: []plan.Step{step}})[0]
	c.Group, c.Experiment, c.Baseline = len(x.doc.Cells), experiment, baseline
	x.doc.Cells = append(x.doc.Cells, c)
	return c.Group
}

// measure makes run n of a step and adds it to its cell. It repeats a failed run
// once. With mayStall a run without data counts as a result, not as a failure.
func (x *tuning) measure(ctx context.Context, step plan.Step, cell, n, done, of int, mayStall bool) error {
	begin := time.Now()
	defer func() { x.ran(step, time.Since(begin)) }()
	for again := true; ; again = false {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		x.notify(StepBegun{step.Label, step.Specs, done, of})
		runs, err := x.runStep(ctx, step, n)
		if err == nil || mayStall && x.stalled(ctx, runs) {
			x.keep(x.doc, cell, runs, x.facts, x.Link)
			return nil
		}
		if gone := cmp.Or(x.anyLost(), context.Cause(ctx)); gone != nil {
			return gone
		}
		if !again {
			return err
		}
	}
}

// stalled reports whether a run failed although its connections were open and
// both ends are reachable: that it carried nothing is then its result.
func (x *tuning) stalled(ctx context.Context, runs []measure.Run) bool {
	return ctx.Err() == nil && x.anyLost() == nil && began(&measure.Cell{Runs: runs})
}

// met reports whether each direction has reached the target.
func (x *tuning) met() bool {
	for _, w := range x.directions {
		c := &x.doc.Cells[w.cell]
		if c.Goodput == nil || c.Goodput.Value < x.TargetBps {
			return false
		}
	}
	return x.TargetBps > 0
}

// fallen is the error of a change that is given up; the tuning goes on.
type fallen struct{ outcome, why string }

func (f *fallen) Error() string { return f.why }

// givenUp reports whether an error costs only the change: all that it wraps is of
// type fallen.
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
