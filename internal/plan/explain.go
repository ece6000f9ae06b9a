package plan

import (
	"slices"
	"time"

	"thru/internal/measure"
)

// Limits of the ramps of an explanation. Within the least one, slow start reaches the largest window at an RTT of
// up to 20 ms. Experiments are only compared with the base, and longer ramps would use up the time budget.
const (
	leastExplainRamp = 400 * time.Millisecond
	mostExplainRamp  = 3 * time.Second
)

// nearby is the RTT up to which the base ramps as its experiments do. Over longer paths the
// usual ramp leaves out more of what follows slow start.
const nearby = 25 * time.Millisecond

// BaseTraffic returns a step of the plan that Explain made, with the ramp of an experiment where the path is short.
// rtt is the round-trip time of the idle path.
func BaseTraffic(s Step, rtt time.Duration) Step {
	ramp := max(rampRTTs*rtt, leastExplainRamp)
	s.Specs = slices.Clone(s.Specs)
	for i := range s.Specs {
		if x := &s.Specs[i]; x.Ramp == 0 && !x.NoRamp && rtt <= nearby {
			x.Ramp = int64(ramp)
		}
	}
	return s
}

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
	switch {
	case s.Ramp > 0 || s.NoRamp:
	case rtt == 0:
		s.Ramp = int64(Ramp(s, rtt))
	default:
		s.Ramp = int64(min(max(rampRTTs*rtt, leastExplainRamp), mostExplainRamp))
	}
	return Step{Label: title, Specs: []measure.Spec{s}, Baseline: true}
}
