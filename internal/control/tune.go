package control

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

	"thru/internal/cause"
	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
)

// Tuning says how a path is tuned.
type Tuning struct {
	Owner     string            // names it for somebody whom it keeps out
	Budget    time.Duration     // no change is begun, and no comparison goes on, that it does not hold
	TargetBps float64           // rate of each direction at which it ends; 0: none
	DryRun    bool              // measures and advises, and changes nothing
	AA        int               // instead of changes so many comparisons of the state with itself, whatever the budget is
	Try       []measure.Setting // are tried before all proposals; no EndPoint: at each end
	Only      []string          // ids of the knobs that may be changed; none: all
	Seed      uint64            // of the order of runs
	// Accept is asked of each change that has a risk (Proposal.Risk, Cuts), and says
	// why it is not made; "" makes it. nil declines those that may cut the connection.
	Accept func(measure.Proposal) (declined string)

	propose func(*measure.Document, advise.Seen) []measure.Proposal // nil: cause.Propose
}

// Tune changes one setting at a time at the end points of a plan's traffic, and
// keeps those that are shown to help. It reads the hosts and probes the path,
// measures the traffic as it is, and has the findings and gates propose changes.
// Each is applied, must show that it is in force, and is measured in turns with
// the state before it; what does not improve that is undone at once. After one
// that is kept all is measured and proposed anew. It ends when the target is met,
// nothing that is proposed helps, or the budget is spent.
//
// On an error, such as a lost end point, all is undone; an interrupt undoes what
// is under way, and leaves what was shown to help. The document is always usable.
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
		x.doc.Ended, err = endedInterrupted, fault.Failf(x.stays(), measure.Interrupted)
	}
	if err != nil && x.anyLost() != nil {
		x.doc.Ended = cmp.Or(x.doc.Ended, endedLost)
	}
	err = both(err, undoing)
	r.conclude(p, x.doc)
	x.sum()
	return finished(x.doc, begin, err)
}

// both is an error with one that came of it, whose hint counts more.
func both(err, then error) error {
	switch {
	case then == nil:
		return err
	case err == nil:
		return then
	}
	return fault.New(fault.Failed, cmp.Or(fault.Hint(then), fault.Hint(err)), "%w; and %w", err, then)
}

// tuning is one under way.
type tuning struct {
	*Runner
	Tuning
	doc        *measure.Document
	out        *measure.Tuning // of the document
	how        Probing
	repeat     int // runs of each state in each direction
	until      time.Time
	looked     time.Duration // what reading the hosts and the path took
	random     *rand.Rand
	facts      map[string]*measure.Facts
	directions []*direction
	level      float64 // of the interval of each comparison

	ours    []*EndPoint       // that this client tunes, this machine last
	hosts   map[string]string // their names, by what they call the host that they are
	not     map[string]string // why it does not tune the others, by name
	open    []measure.Changed // of the change that is in force on trial, in order
	stood   []measure.Setting // what was kept
	seen    advise.Seen
	taken   map[hostKnob]bool  // by somebody else, who changed it meanwhile: hands off
	pending []measure.Proposal // of Try, what has not had its turn
	// unsure is set where an answer did not come, so that nobody knows what is set.
	unsure     bool
	rolledBack bool // all of this tuning is undone
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

// carryOut does all but to give back what was taken.
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

// look reads the hosts anew, what can be set there, and the path between them. A
// probe or a gate that fails ends nothing: the traffic shows whether data passes.
func (x *tuning) look(ctx context.Context) error {
	now, begin := &measure.Document{}, time.Now()
	defer func() { x.looked = time.Since(begin) }()
	probing := &x.how
	if len(x.agents()) < 2 {
		probing = nil
	}
	facts, _, err := x.Runner.look(ctx, now, probing, x.directions[0].step.Specs[0])
	release(x.agents())
	if err != nil {
		return err
	}
	x.facts = facts
	x.doc.EndPoints, x.doc.Paths, x.doc.Gates, x.doc.Missing = now.EndPoints, now.Paths, now.Gates, now.Missing
	return x.readKnobs(ctx)
}

// stand measures the state as it is in each direction: a row of the journey.
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

// retire takes the cells of an earlier state out of what is judged now.
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

// add appends the cell of a step of one flow, and returns its index.
func (x *tuning) add(step plan.Step, experiment string, beside bool) int {
	c := cells(plan.Plan{Steps: []plan.Step{step}})[0]
	c.Group, c.Experiment, c.Baseline = len(x.doc.Cells), experiment, beside
	x.doc.Cells = append(x.doc.Cells, c)
	return c.Group
}

// measure makes the run of that number of a step, and adds it to its cell. One
// that fails is made again, once. Where the traffic may stall, that it carried
// nothing is its figure, and no failure.
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

// stalled tells of a run that failed although its connections were open, and
// both ends are there: then that it carried nothing is its figure.
func (x *tuning) stalled(ctx context.Context, runs []measure.Run) bool {
	return ctx.Err() == nil && x.anyLost() == nil && began(&measure.Cell{Runs: runs})
}

// met tells whether each direction has reached the target.
func (x *tuning) met() bool {
	for _, w := range x.directions {
		c := &x.doc.Cells[w.cell]
		if c.Goodput == nil || c.Goodput.Value < x.TargetBps {
			return false
		}
	}
	return x.TargetBps > 0
}

// fallen is why a change is given up; the tuning goes on.
type fallen struct{ outcome, why string }

func (f *fallen) Error() string { return f.why }

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
