package plan

import (
	"slices"
	"time"

	"thru/internal/measure"
)

// TuneTime is the default time of each run of a tuning, TuneRepeat the default number of runs of each state:
// many short alternating runs judge a change better than a few long ones.
const (
	TuneTime   = 2 * time.Second
	TuneRepeat = 3
)

// Tune returns the plan of the traffic that `thru tune` tunes: each direction by itself unless the request
// asks for one, with as many streams as `thru test`. The traffic is bulk TCP without a rate limit, since only
// that shows what the path can carry.
func Tune(r Request) (Plan, error) {
	if r.Duration == 0 {
		r.Duration = TuneTime
	}
	if r.Repeat == 0 {
		r.Repeat = TuneRepeat
	}
	if r.engine() != measure.Native {
		return Plan{}, Refuse("run thru serve there, or name it ssh://HOST: thru must read and set both ends", "thru tune does not work with an "+r.engine()+" end point")
	}
	if bad := r.untunable(); bad != "" {
		return Plan{}, Refuse("leave that out: it tunes TCP at full rate, one direction at a time", "thru tune does not go with "+bad)
	}
	p, err := Test(r)
	p.Command = "tune"
	p.Steps = slices.DeleteFunc(p.Steps, func(s Step) bool { return s.Baseline })
	return p, err
}

// untunable names the option that leaves nothing to tune; "" if there is none.
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

// With returns the step of one flow with other options, such as a proposal's. The CPUs are of the sender and
// of the receiver.
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
