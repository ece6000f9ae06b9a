package plan

import (
	"slices"
	"time"

	"thru/internal/measure"
)

// mostExplainRamp limits the ramp of an experiment: experiments are only compared with the base, and long
// ramps use up the time budget.
const mostExplainRamp = 3 * time.Second

// Explain returns the plan of the base traffic of `thru explain`: each direction by itself, with one stream
// by default, since one stream shows best what limits it.
func Explain(r Request) (Plan, error) {
	if r.Streams == 0 {
		r.Streams = 1
	}
	p, err := Test(r)
	p.Command = "explain"
	p.Steps = slices.DeleteFunc(p.Steps, func(s Step) bool { return s.Baseline })
	return p, err
}

// Experiment returns the step of one flow that differs from the base in one option. rtt is the round-trip
// time of the idle path, 0 if unknown.
func Experiment(title string, s measure.Spec, rtt time.Duration) Step {
	if s.Ramp == 0 && !s.NoRamp {
		s.Ramp = int64(min(Ramp(s, rtt), mostExplainRamp))
	}
	return Step{Label: title, Specs: []measure.Spec{s}, Baseline: true}
}
