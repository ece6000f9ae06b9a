package cpu

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Bars of what other numbers of streams carry, as multiples of this one.
const (
	scaleBar = 1.3 // more streams: above it one stream is what binds
	fewerBar = 1.1 // fewer streams: above it these are too many
)

func singleFlow(f *diagnose.Flow) *diagnose.Outcome {
	if o := f.IsAll(); o != nil {
		return o
	}
	if f.Cell.Streams > 1 {
		return diagnose.No("%d streams share the work", f.Cell.Streams)
	}
	s, r := f.Sender.Load(), f.Receiver.Load()
	switch full := s.IsFull() || r.IsFull(); {
	case !full && !s.Known:
		return f.Sender.Lacks("the time of its threads on a CPU")
	case !full && !r.Known:
		return f.Receiver.Lacks("the time of its threads on a CPU")
	case !full:
		return diagnose.No("no CPU is full that a second stream could relieve")
	}
	e, l := f.Sender, s
	if !s.IsFull() {
		e, l = f.Receiver, r
	}
	if others(f, e, l) {
		return diagnose.No("the %s's thread is slow for other programs' sake, which take its CPU", e.Place)
	}
	most := f.WithMost()
	if most == nil {
		return f.Untried(diagnose.EightStreams)
	}
	g := f.Against(most)
	if g.Times < scaleBar {
		return diagnose.No("%d streams carry %s, no more", most.Streams, unit.Rate(diagnose.RateOf(most)))
	}
	o := diagnose.Likely("one stream is one CPU, which is full: %d streams carry %s", most.Streams, unit.Rate(diagnose.RateOf(most)))
	rwnd, okWnd := f.RwndPct()
	again, okLoss := f.AgainPct()
	if g.Sure && okWnd && okLoss && rwnd < diagnose.RwndBar && again <= 0.1 && !f.HasQueue() && (s.Thread || r.Thread || r.Packet) {
		o.Confidence = measure.Certain
	}
	o.At(onOwnCPU(e)).By(diagnose.Above(e.Proof("busiest thread on a CPU or waiting for one", l.Hot.Run+l.Hot.Wait, "pct"), diagnose.ThreadBar),
		diagnose.InTurns(measure.Proof{Counter: fmt.Sprintf("goodput of %d streams over that of one", most.Streams)}, g, scaleBar))
	o.Costs(diagnose.RateOf(most), fmt.Sprintf("%d streams carry %s", most.Streams, unit.Rate(diagnose.RateOf(most))), fmt.Sprintf("the same traffic with %d streams", most.Streams))
	return unlessPaced(f, o.Mend(diagnose.Advise(nil, fmt.Sprintf("use several streams (-P %d) where the program can; for the one: MTU 9000, GRO and TSO on", most.Streams))))
}

func tooManyStreams(f *diagnose.Flow) *diagnose.Outcome {
	if o := f.IsAll(); o != nil {
		return o
	}
	if f.Cell.Streams <= 1 {
		return diagnose.No("it is one stream")
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
	o := diagnose.Possible("%d streams are too many: %d carry %s", f.Cell.Streams, best.Streams, unit.Rate(diagnose.RateOf(best)))
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
		By(diagnose.InTurns(measure.Proof{Counter: fmt.Sprintf("goodput of %d streams over that of %d", best.Streams, f.Cell.Streams)}, g, fewerBar)).
		Costs(diagnose.RateOf(best), fmt.Sprintf("%d streams carry %s", best.Streams, unit.Rate(diagnose.RateOf(best))), fmt.Sprintf("the same traffic with %d streams", best.Streams)).
		Mend(diagnose.Advise(nil, fmt.Sprintf("use %d streams; `thru ladder` finds the best number", best.Streams)))
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
