package cpu

import (
	"fmt"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/rule"
	"thru/internal/measure"
	"thru/internal/unit"
)

// TooManyStreams is the cause `too-many-streams`.
func TooManyStreams() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "too-many-streams", TCP: true, Unseen: diagnose.HostTime, Title: "more streams than the CPUs can handle", Judge: judgeTooManyStreams,
			Seen:        "fewer streams carry 1.1 times the rate or more; or the total rate falls as end points are added, and all CPUs of a host are full",
			Distinction: "the same test with one stream, and with half of the streams",
			Fix:         "use half as many streams as CPUs, then sweep (thru ladder)", Effect: "about 10%",
			Source: "methods.md, formula 10; context switches of the worker (getrusage(2))", Tests: []string{diagnose.OneStream},
		},
		Propose: []advise.Proposer{ProposeTooManyStreams},
	}
}

func judgeTooManyStreams(f *diagnose.Flow) *diagnose.Outcome {
	if o := f.IsAll(); o != nil {
		return o
	}
	if f.Cell.Streams <= 1 {
		return diagnose.No("the test has one stream")
	}
	var best *measure.Cell
	for _, c := range f.WithStreams() {
		if c.Streams < f.Cell.Streams && diagnose.RateOf(c) > diagnose.RateOf(best) {
			best = c
		}
	}
	if best == nil {
		return f.Untried(diagnose.OneStream)
	}
	g := f.Against(best)
	if g.Times < fewerBar {
		return diagnose.No("fewer streams carry no more: %s with %d", unit.Rate(diagnose.RateOf(best)), best.Streams)
	}
	o := diagnose.Possible("%d streams are too many: %d streams carry %s", f.Cell.Streams, best.Streams, unit.Rate(diagnose.RateOf(best)))
	if g.Times > diagnose.GainBar {
		o.Confidence = measure.Likely
	}
	mine, okMine := switches(f.Run)
	theirs, okTheirs := switches(diagnose.RunShown(best))
	if okMine && okTheirs {
		o.By(diagnose.Above(f.Sender.Proof("involuntary context switches of the workers", mine, "per_s"), theirs))
		if g.Sure && mine > theirs {
			o.Confidence = measure.Certain
		}
	}
	return o.At(measure.Where{Place: measure.AtTool, EndPoint: f.Sender.Name}).
		By(diagnose.InTurns(measure.Proof{Counter: fmt.Sprintf("goodput with %d streams over that with %d", best.Streams, f.Cell.Streams)}, g, fewerBar)).
		Costs(diagnose.RateOf(best), fmt.Sprintf("%d streams carry %s", best.Streams, unit.Rate(diagnose.RateOf(best))), fmt.Sprintf("the same traffic with %d streams", best.Streams)).
		AddFix(diagnose.Advise(nil, fmt.Sprintf("use %d streams; `thru ladder` finds the best number", best.Streams)))
}

// fewerBar is the least gain of fewer streams that proves these too many.
const fewerBar = 1.1

// switches returns how often per second the workers' threads of both ends had to yield their CPU to another
// thread.
func switches(r *measure.Run) (perSecond float64, known bool) {
	if len(r.Flows) == 0 {
		return 0, false
	}
	for _, e := range []*measure.Evidence{r.Flows[0].Sender, r.Flows[0].Receiver} {
		if e != nil && e.Worker != nil && e.Worker.Involuntary != nil && *e.Worker.Involuntary >= 0 && e.MeasuredNs > 0 {
			perSecond += float64(*e.Worker.Involuntary) / (float64(e.MeasuredNs) / 1e9)
			known = true
		}
	}
	return perSecond, known
}

// ProposeTooManyStreams proposes fewer streams.
func ProposeTooManyStreams(r advise.Request) []advise.Draft {
	c := r.Direction.Cell
	if c == nil || c.Streams <= 1 {
		return nil
	}
	if x := r.Direction.Best(func(x *measure.Cell) bool { return x.Streams < c.Streams && x.Streams > 0 }); x != nil {
		if x.Goodput.Value < diagnose.GroupGainBar*r.Direction.Goodput() {
			return nil
		}
		return []advise.Draft{Streams(r.Direction, x.Streams, x)}
	}
	return []advise.Draft{Streams(r.Direction, max(1, c.Streams/2), nil)}
}
