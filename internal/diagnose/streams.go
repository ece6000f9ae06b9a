package diagnose

import (
	"fmt"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Bars of what other numbers of streams carry, as multiples of this one.
const (
	scaleBar = 1.3 // more streams: above it one stream is what binds
	fewerBar = 1.1 // fewer streams: above it these are too many
)

func singleFlow(f *flow) *outcome {
	if o := f.isAll(); o != nil {
		return o
	}
	if f.cell.Streams > 1 {
		return no("%d streams share the work", f.cell.Streams)
	}
	s, r := f.sender.load(), f.receiver.load()
	switch full := s.isFull() || r.isFull(); {
	case !full && !s.known:
		return f.sender.lacks("the time of its threads on a CPU")
	case !full && !r.known:
		return f.receiver.lacks("the time of its threads on a CPU")
	case !full:
		return no("no CPU is full that a second stream could relieve")
	}
	e, l := f.sender, s
	if !s.isFull() {
		e, l = f.receiver, r
	}
	if f.others(e, l) {
		return no("the %s's thread is slow for other programs' sake, which take its CPU", e.place)
	}
	most := f.withMost()
	if most == nil {
		return f.untried(eightStreams)
	}
	g := f.against(most)
	if g.Times < scaleBar {
		return no("%d streams carry %s, no more", most.Streams, unit.Rate(rateOf(most)))
	}
	o := likely("one stream is one CPU, which is full: %d streams carry %s", most.Streams, unit.Rate(rateOf(most)))
	rwnd, okWnd := f.rwndPct()
	again, okLoss := f.againPct()
	if g.Sure && okWnd && okLoss && rwnd < rwndBar && again <= 0.1 && !f.hasQueue() && (s.thread || r.thread || r.packet) {
		o.confidence = measure.Certain
	}
	o.at(e.onOwnCPU()).by(above(e.proof("busiest thread on a CPU or waiting for one", l.hot.run+l.hot.wait, "pct"), threadBar),
		inTurns(measure.Proof{Counter: fmt.Sprintf("goodput of %d streams over that of one", most.Streams)}, g, scaleBar))
	o.costs(rateOf(most), fmt.Sprintf("%d streams carry %s", most.Streams, unit.Rate(rateOf(most))), fmt.Sprintf("the same traffic with %d streams", most.Streams))
	return f.unlessPaced(o.mend(advise(nil, fmt.Sprintf("use several streams (-P %d) where the program can; for the one: MTU 9000, GRO and TSO on", most.Streams))))
}

func tooManyStreams(f *flow) *outcome {
	if o := f.isAll(); o != nil {
		return o
	}
	if f.cell.Streams <= 1 {
		return no("it is one stream")
	}
	var best *measure.Cell
	for _, c := range f.withStreams() {
		if c.Streams < f.cell.Streams && rateOf(c) > rateOf(best) {
			best = c
		}
	}
	if best == nil {
		return f.untried(oneStream)
	}
	g := f.against(best)
	if g.Times < fewerBar {
		return no("fewer streams carry no more: %s with %d", unit.Rate(rateOf(best)), best.Streams)
	}
	o := possible("%d streams are too many: %d carry %s", f.cell.Streams, best.Streams, unit.Rate(rateOf(best)))
	if g.Times > gainBar {
		o.confidence = measure.Likely
	}
	mine, okMine := switches(f.run)
	theirs, okTheirs := switches(runShown(best))
	if okMine && okTheirs {
		o.by(above(f.sender.proof("involuntary context switches of the workers", mine, "per_s"), theirs))
		if g.Sure && mine > theirs {
			o.confidence = measure.Certain
		}
	}
	return o.at(measure.Where{Place: measure.AtTool, EndPoint: f.sender.name}).
		by(inTurns(measure.Proof{Counter: fmt.Sprintf("goodput of %d streams over that of %d", best.Streams, f.cell.Streams)}, g, fewerBar)).
		costs(rateOf(best), fmt.Sprintf("%d streams carry %s", best.Streams, unit.Rate(rateOf(best))), fmt.Sprintf("the same traffic with %d streams", best.Streams)).
		mend(advise(nil, fmt.Sprintf("use %d streams; `thru ladder` finds the best number", best.Streams)))
}

// switches is how often threads of the workers of both ends had to give their
// CPU to another one, in a second.
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
