package plan

import (
	"slices"
	"time"

	"thru/internal/measure"
)

// mostExplainRamp bounds the ramp of an experiment: it is held against the
// base, and a budget is soon spent by waiting.
const mostExplainRamp = 3 * time.Second

// Explain is the plan of the base traffic of `thru explain`: each direction by
// itself, of one stream unless more are asked for, since one shows best what
// holds it back.
func Explain(r Request) (Plan, error) {
	if r.Streams == 0 {
		r.Streams = 1
	}
	p, err := Test(r)
	p.Command = "explain"
	p.Steps = slices.DeleteFunc(p.Steps, func(s Step) bool { return s.Baseline })
	return p, err
}

// Experiment is the step of one flow that differs from the base in one thing.
// rtt is that of the idle path, 0 where it is not known.
func Experiment(title string, s measure.Spec, rtt time.Duration) Step {
	if s.Ramp == 0 && !s.NoRamp {
		s.Ramp = int64(min(Ramp(s, rtt), mostExplainRamp))
	}
	return Step{Label: title, Specs: []measure.Spec{s}, Baseline: true}
}
