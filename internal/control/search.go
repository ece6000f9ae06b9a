package control

import (
	"context"
	"fmt"
	"time"

	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Durations of the trials that search for the highest rate without loss.
const (
	trialTime   = 2 * time.Second
	confirmTime = 10 * time.Second
)

// searchLossless continues the search for a step's capacity with trials at fixed
// rates, until it finds the highest rate without loss.
func (r *Runner) searchLossless(ctx context.Context, step plan.Step, doc *measure.Document, group int) error {
	c := cellOf(doc, group)
	many := step.Independent && len(step.Specs) > 1 // a trial runs one pair alone
	if many || c == nil || !c.Spec.Search || c.Search == nil || c.Search.CapacityBps == nil {
		return nil
	}
	s := stat.NewLosslessSearch(*c.Search.CapacityBps)
	defer func() { s.Outcome(c.Search) }()
	for n := 1; ; n++ {
		rate, done := s.Next()
		if done {
			return nil
		}
		trial := trialAt(step, rate, s.Confirming())
		r.notify(StepBegun{fmt.Sprintf("trial at %s", unit.Rate(rate)), trial.Specs, n - 1, stat.MaxTrials})
		runs, err := r.runStep(ctx, trial, n)
		if err != nil {
			return err
		}
		t := stat.TrialOf(rate, &runs[0].Flows[0])
		s.Report(t)
		s.Outcome(c.Search)
		r.notify(Ran{c})
	}
}

// trialAt returns the step at a fixed rate.
func trialAt(step plan.Step, bps float64, confirming bool) plan.Step {
	spec := step.Specs[0]
	spec.Search, spec.Rate, spec.Duration = false, int64(bps), int64(trialTime)
	spec.Ramp, spec.NoRamp = 0, true
	if confirming {
		spec.Duration = max(spec.Duration, min(int64(confirmTime), step.Specs[0].Duration))
	}
	step.Specs = []measure.Spec{spec}
	return step
}

// cellOf returns the first cell of a group, nil where there is none.
func cellOf(doc *measure.Document, group int) *measure.Cell {
	if cells := cellsOf(doc, group); len(cells) > 0 {
		return &cells[0]
	}
	return nil
}
