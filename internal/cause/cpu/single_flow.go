package cpu

import (
	"fmt"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/rule"
	"thru/internal/measure"
	"thru/internal/unit"
)

// SingleFlow is the cause `single-flow`.
func SingleFlow() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "single-flow", TCP: true, Unseen: diagnose.HostTime, Title: "one stream uses only one CPU", Judge: judgeSingleFlow,
			Seen:        "with one stream, a CPU is full at one end, and more streams carry 1.3 times the rate or more",
			Distinction: "limits by window or loss also gain from more streams, but leave the CPUs idle",
			Fix:         "use more streams; for a single one jumbo frames, GRO or LRO", Effect: "35 to 52 Gb/s between namespaces with 4 streams on 2 CPUs",
			Source: "methods.md, formula 10", Tests: []string{diagnose.EightStreams}, Brings: []string{"sender-cpu", "receiver-cpu"},
		},
		Propose: []advise.Proposer{Jumbo, MoreStreams},
	}
}

func judgeSingleFlow(f *diagnose.Flow) *diagnose.Outcome {
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
		return diagnose.No("no CPU is full")
	}
	e, l := f.Sender, s
	if !s.IsFull() {
		e, l = f.Receiver, r
	}
	if others(f, e, l) {
		return diagnose.No("other programs use the CPU of the %s's thread", e.Place)
	}
	most := f.WithMost()
	if most == nil {
		return f.Untried(diagnose.EightStreams)
	}
	g := f.Against(most)
	if g.Times < scaleBar {
		return diagnose.No("%d streams carry no more: %s", most.Streams, unit.Rate(diagnose.RateOf(most)))
	}
	o := diagnose.Likely("one stream uses only one CPU, which is full; %d streams carry %s", most.Streams, unit.Rate(diagnose.RateOf(most)))
	rwnd, okWnd := f.RwndPct()
	again, okLoss := f.AgainPct()
	if g.Sure && okWnd && okLoss && rwnd < diagnose.RwndBar && again <= 0.1 && !f.HasQueue() && (s.Thread || r.Thread || r.Packet) {
		o.Confidence = measure.Certain
	}
	o.At(onOwnCPU(e)).By(diagnose.Above(e.Proof("busiest thread on a CPU or waiting for one", l.Hot.Run+l.Hot.Wait, "pct"), diagnose.ThreadBar),
		diagnose.InTurns(measure.Proof{Counter: fmt.Sprintf("goodput with %d streams over that with one", most.Streams)}, g, scaleBar))
	o.Costs(diagnose.RateOf(most), fmt.Sprintf("%d streams carry %s", most.Streams, unit.Rate(diagnose.RateOf(most))), fmt.Sprintf("the same traffic with %d streams", most.Streams))
	return unlessPaced(f, o.AddFix(diagnose.Advise(nil, fmt.Sprintf("use several streams (-P %d) if the program can; for one stream: MTU 9000, GRO and TSO on", most.Streams))))
}

// others reports whether programs unrelated to the test use the CPUs that the end needs: while no test ran, and
// during the test more than its own threads account for.
func others(f *diagnose.Flow, e *diagnose.End, l diagnose.Load) bool {
	if e.Seen == nil || e.Seen.Base == nil || e.Seen.Host == nil || l.Hot.Wait <= diagnose.SharedBar {
		return false
	}
	bound := diagnose.BoundTo(e)
	idle, taken := 0.0, 0.0
	for _, c := range e.Seen.Base.CPUs {
		if bound == nil || *bound == c.Core {
			idle += diagnose.Busy(c)
		}
	}
	for _, c := range e.Seen.Host.CPUs {
		if bound == nil || *bound == c.Core {
			taken += diagnose.Busy(c) - diagnose.Packets(c)
		}
	}
	taken -= l.Ran
	if f.OnSameCPUs() && (bound == nil || diagnose.Equal(bound, diagnose.BoundTo(e.Other()))) {
		taken -= e.Other().Load().Ran
	}
	return idle > diagnose.SharedBar && taken > diagnose.SharedBar
}

// scaleBar is the least gain of more streams that proves that one stream was the limit.
const scaleBar = 1.3

// onOwnCPU returns the place of a cause at this end, with the CPU of its busiest thread if that is bound to one.
func onOwnCPU(e *diagnose.End) measure.Where {
	if cpu := diagnose.BoundTo(e); cpu != nil {
		return e.OnCPU(*cpu)
	}
	return e.Where()
}
