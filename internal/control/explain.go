package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"thru/internal/cause"
	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Reasons why an explanation ends (Document.Ended). A spent budget has its own
// text (spent).
const (
	endedCertain     = "the cause is certain"
	endedNothingLeft = "no remaining experiment would narrow it down"
	endedInterrupted = "interrupted"
	endedLost        = "an end point was lost"
)

// pathStep is the id of the step that reads the hosts and probes the path.
const pathStep = "path"

// Explain finds by experiment what limits the traffic of a plan. It reads the
// hosts and probes the path, measures the plan's steps (the base), and then makes
// experiments that distinguish the causes that the evidence leaves open, until
// one is certain, nothing is left to try, or the budget is spent. Path and base
// are measured whatever the budget.
//
// Traffic that stalls is a case to explain, not an error. The document is usable
// on error too: it holds the results until then.
func (r *Runner) Explain(ctx context.Context, p plan.Plan, how Probing, budget time.Duration) (*measure.Document, error) {
	begin := time.Now()
	doc := r.document(p.Command, begin)
	x := &explanation{Runner: r, doc: doc, budget: budget, until: begin.Add(budget)}
	err := r.allowed(p)
	if err == nil {
		err = x.look(ctx, how, p.Steps[0].Specs[0])
	}
	if err == nil {
		r.placeEnds(ctx, doc, false)
		r.watchGuests(ctx, doc)
		err = x.measure(ctx, p)
	}
	if err == nil {
		err = x.makeExperiments(ctx)
	}
	if ctx.Err() != nil {
		doc.Ended, err = endedInterrupted, interruption(doc)
	}
	r.fetchCounters(ctx, doc)
	r.conclude(p, doc)
	x.judge()
	return finished(doc, begin, err)
}

// explanation is the state of one Explain.
type explanation struct {
	*Runner
	doc    *measure.Document
	facts  map[string]*measure.Facts
	budget time.Duration
	until  time.Time // when the budget is spent
	bases  []*base
}

// base is the traffic of one direction to explain.
type base struct {
	cell int      // index in the document
	made []string // names of the trials made
}

// look reads the hosts and probes the path. A failed probe ends nothing: the
// traffic shows whether data passes.
func (x *explanation) look(ctx context.Context, how Probing, planned measure.Spec) error {
	begin := time.Now()
	probing := &how
	if len(x.agents()) < len(x.Ends) {
		probing = nil
	}
	facts, unprobed, err := x.Runner.look(ctx, x.doc, explainLoad, probing, planned)
	release(x.agents())
	if err != nil {
		return err
	}
	x.facts = facts
	s := measure.Step{
		Experiment: pathStep, Title: "facts of both hosts, and a probe of the path between them",
		Figure: pathFigure(x.doc), ElapsedNs: int64(time.Since(begin)),
	}
	if len(x.agents()) == 1 {
		s.Title = "facts of this host"
	}
	if unprobed != nil {
		s.Error = unprobed.Error()
	}
	x.addStep(s)
	return nil
}

// measure measures the base traffic of each direction.
func (x *explanation) measure(ctx context.Context, p plan.Plan) error {
	rtt, known := x.pathRTT()
	for _, step := range p.Steps {
		begin := time.Now()
		if known {
			step = plan.BaseTraffic(step, rtt)
		}
		n := x.add(step, diagnose.Base)
		err := x.run(ctx, n, step)
		if err != nil && (ctx.Err() != nil || x.gone() || !began(&x.doc.Cells[n])) {
			return err
		}
		b := &base{cell: n}
		x.bases = append(x.bases, b)
		cause.Diagnose(x.doc)
		s := x.stepOf(b, n, measure.Diagnosis{}, err)
		s.RuledOut = nil // most of the catalogue, and the cell has it too
		s.Title, s.ElapsedNs = baseTitle(x.doc.Cells[n]), int64(time.Since(begin))
		x.addStep(s)
	}
	return nil
}

// pathRTT returns the round-trip time of the probed path; 0 within one host.
func (x *explanation) pathRTT() (rtt time.Duration, known bool) {
	if len(x.Ends) == 1 {
		return 0, true
	}
	if len(x.doc.Paths) == 0 || x.doc.Paths[0].RTT == nil {
		return 0, false
	}
	return time.Duration(x.doc.Paths[0].RTT.P50), true
}

// began reports whether a failed run opened connections, so that there is
// something to diagnose.
func began(c *measure.Cell) bool {
	for _, r := range c.Runs {
		for _, f := range r.Flows {
			for _, e := range []*measure.Evidence{f.Sender, f.Receiver} {
				if e != nil && len(e.Streams) > 0 {
					return true
				}
			}
		}
	}
	return false
}

// makeExperiments makes the experiments of the first direction within half of
// the time left, then those of the other, then of the first with what remains.
func (x *explanation) makeExperiments(ctx context.Context) error {
	turns := x.bases
	if len(turns) > 1 {
		turns = append(slices.Clone(turns), turns[0])
	}
	ended := map[*base]string{}
	for i, b := range turns {
		until := x.until
		if i < len(turns)-2 {
			until = time.Now().Add(time.Until(x.until) / 2)
		}
		if w, tried := ended[b]; tried && w != x.spent() {
			continue
		}
		var err error
		if ended[b], err = x.direction(ctx, b, until); err != nil {
			x.doc.Ended = ended[b]
			return err
		}
	}
	x.doc.Ended = endedCertain
	for _, why := range []string{endedNothingLeft, x.spent()} {
		for _, b := range x.bases {
			if ended[b] == why {
				x.doc.Ended = why
			}
		}
	}
	return nil
}

// spent returns the reason text of a spent budget.
func (x *explanation) spent() string {
	return fmt.Sprintf("the time budget of %s is spent", unit.Duration(int64(x.budget)))
}

// direction makes the experiments of one direction and returns why it stopped. It
// replaces an experiment that takes too long by a shorter one. The error is that
// of a lost end point.
func (x *explanation) direction(ctx context.Context, b *base, until time.Time) (string, error) {
	var tooLong []string
	for {
		if ctx.Err() != nil {
			return endedInterrupted, context.Cause(ctx)
		}
		t, more := cause.Next(x.doc, b.cell, slices.Concat(b.made, tooLong))
		switch {
		case diagnose.Settled(&x.doc.Cells[b.cell]):
			return endedCertain, nil
		case !more && len(tooLong) > 0:
			return x.spent(), nil
		case !more:
			return endedNothingLeft, nil
		}
		step := plan.Experiment(t.Title, t.Spec, idleRTT(&x.doc.Cells[b.cell]))
		if time.Until(until) < t.Rest+step.Time() {
			tooLong = append(tooLong, t.Name())
			continue
		}
		err := x.try(ctx, b, t, step)
		if err != nil && x.gone() {
			return endedLost, err
		}
		if err != nil || !t.Again {
			b.made = append(b.made, t.Name())
		}
	}
}

// try makes one experiment and adds its result. It may take longer than planned,
// until the budget is spent.
func (x *explanation) try(ctx context.Context, b *base, t diagnose.Trial, step plan.Step) error {
	begin := time.Now()
	before := x.doc.Cells[b.cell].Diagnosis
	n := t.Cell
	if n < 0 {
		n = x.add(step, t.ID)
	}
	within, cancel := context.WithDeadlineCause(ctx, x.until, errSpent)
	defer cancel()
	err := rest(within, t.Rest)
	if err == nil {
		err = x.run(within, n, step)
	}
	cause.Diagnose(x.doc)
	s := x.stepOf(b, n, before, err)
	s.Title, s.Asked, s.ElapsedNs = t.Title, t.Causes, int64(time.Since(begin))
	if base := x.doc.Cells[b.cell].Goodput; base != nil {
		s.BaseBps = &base.Value
	}
	x.addStep(s)
	return err
}

// rest waits without traffic.
func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// errSpent is the error of an experiment cut off at the end of the budget.
var errSpent = errors.New("the time budget ended before it did")

// add appends the cell of a step with one flow, and returns its index.
func (x *explanation) add(step plan.Step, experiment string) int {
	c := cells(plan.Plan{Steps: []plan.Step{step}})[0]
	c.Group, c.Experiment = len(x.doc.Cells), experiment
	x.doc.Cells = append(x.doc.Cells, c)
	return c.Group
}

// run measures the cell at an index once more.
func (x *explanation) run(ctx context.Context, cell int, step plan.Step) error {
	x.notify(StepBegun{step.Label, step.Specs, len(x.doc.Steps), 0})
	x.experiment = x.doc.Cells[cell].Experiment
	runs, err := x.runStep(ctx, step, len(x.doc.Cells[cell].Runs))
	x.keep(x.doc, cell, runs, x.facts, x.Link)
	return err
}

// addStep adds a step that has ended.
func (x *explanation) addStep(s measure.Step) {
	x.doc.Steps = append(x.doc.Steps, s)
	x.notify(Explained{s})
}

// gone reports whether an end point is lost.
func (x *explanation) gone() bool { return x.anyLost() != nil }

// idleRTT returns the idle RTT of a cell; 0 where unknown.
func idleRTT(c *measure.Cell) time.Duration {
	if c.RTTIdle == nil {
		return 0
	}
	return time.Duration(*c.RTTIdle)
}

// judge adds the verdict of traffic that did not finish: a required rate is then
// not met.
func (x *explanation) judge() {
	if x.doc.Verdict != nil || x.Link.RateBps == 0 {
		return
	}
	for _, b := range x.bases {
		if c := &x.doc.Cells[b.cell]; c.Error != nil {
			if x.doc.Verdict = x.unseen(x.doc); x.doc.Verdict != nil {
				return
			}
			x.doc.Verdict = &measure.Verdict{
				Required: stat.PassPct, Reason: fmt.Sprintf("%s to %s: %s", c.From, c.To, c.Error.Message),
			}
			return
		}
	}
}
