package plan

import (
	"slices"
	"time"

	"thru/internal/measure"
)

// TuneTime is the measured time of each run of a tuning, and TuneRepeat how often
// each state that it comes to is measured, unless others are asked for: a change
// is judged by many short runs in turns, which tell more than a few long ones.
const (
	TuneTime   = 2 * time.Second
	TuneRepeat = 3
)

// Tune is the plan of the traffic that `thru tune` tunes: each direction by
// itself unless one is asked for, with as many streams as for `thru test`, since
// it is what the path carries that is tuned. It is bulk TCP as fast as it goes:
// nothing else tells what a path could carry.
func Tune(r Request) (Plan, error) {
	if r.Duration == 0 {
		r.Duration = TuneTime
	}
	if r.Repeat == 0 {
		r.Repeat = TuneRepeat
	}
	if r.engine() != measure.Native {
		return Plan{}, Refuse("both ends have to be read and set: run thru serve there, or name it ssh://HOST", "thru tune does not go to an "+r.engine()+" end point")
	}
	if bad := r.untunable(); bad != "" {
		return Plan{}, Refuse("it tunes TCP as fast as it goes, each direction by itself: leave that out", "thru tune does not go with "+bad)
	}
	p, err := Test(r)
	p.Command = "tune"
	p.Steps = slices.DeleteFunc(p.Steps, func(s Step) bool { return s.Baseline })
	return p, err
}

// untunable names the option with which there is nothing to tune; "" where there
// is none.
func (r Request) untunable() string {
	for _, c := range []struct {
		bad  bool
		name string
	}{
		{r.Protocol == measure.UDP, "{protocol=udp}"},
		{r.Traffic != measure.Bulk, "{kind=rr} and {kind=crr}"},
		{r.Bidir, "{direction=bidir}"},
		{r.limited(), "{bitrate}, {total_bitrate}, {bytes} and {blocks}"},
		{r.Latency, "{latency}"},
		{r.Capture > 0, "{capture}"},
		{r.Acceptance, "{acceptance}"},
		{r.PrecisionPct > 0, "{precision}"},
	} {
		if c.bad {
			return c.name
		}
	}
	return ""
}

// With is the step of one flow with other options: what a proposal changes of a
// test. CPUs are of the end that sends and of the one that receives.
func (s Step) With(o *measure.TestOptions) Step {
	if o == nil {
		return s
	}
	s.Specs = slices.Clone(s.Specs)
	for i := range s.Specs {
		x := &s.Specs[i]
		if o.Streams > 0 {
			x.Streams = o.Streams
		}
		if o.Window != nil {
			x.Window = *o.Window
		}
		if o.Length != nil {
			x.Length = *o.Length
		}
		if o.IO != "" {
			x.IO, x.IOForced = o.IO, false
		}
		if o.Congestion != "" {
			x.Congestion = o.Congestion
		}
		if o.SenderCPU != nil {
			x.SenderCPU = o.SenderCPU
		}
		if o.ReceiverCPU != nil {
			x.ReceiverCPU = o.ReceiverCPU
		}
	}
	return s
}
