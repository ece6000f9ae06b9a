// Package groups judges why more concurrent flows carry less together, and the rungs of a ladder: both of these may
// have several causes.
package groups

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/hypervisor"
	"thru/internal/cause/nic"
	"thru/internal/cause/route"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Findings returns the findings of concurrent flows taken together, which no single flow shows.
func Findings(cat *diagnose.Catalogue, d *measure.Document) []measure.Finding {
	var all []measure.Finding
	for _, s := range diagnose.Sweeps(d) {
		for _, judge := range []func(*diagnose.Catalogue, *measure.Document, diagnose.Sweep) *measure.Finding{falls, route.SweepAtOneMember} {
			if x := judge(cat, d, s); x != nil && !diagnose.Repeated(all, *x) {
				all = append(all, *x)
			}
		}
	}
	for i := range d.Groups {
		if x := route.GroupOnOneMember(cat, d, &d.Groups[i]); x != nil && !diagnose.Repeated(all, *x) {
			all = append(all, *x)
		}
	}
	return all
}

// carry returns the verb for the flows of a group.
func carry(s diagnose.Sweep, i int) string {
	if s.Counts[i] == 1 {
		return "carries"
	}
	return "carry"
}

// falls judges an aggregate that falls with more flows. The fall is certain; its cause only as far as
// queues and CPUs show it.
func falls(cat *diagnose.Catalogue, d *measure.Document, s diagnose.Sweep) *measure.Finding {
	best, last := diagnose.BestOf(s), len(s.Groups)-1
	most, least := s.Groups[best].Aggregate, s.Groups[last].Aggregate
	if best == last || least.Value >= most.Value*(1-diagnose.FallBar/100.0) || least.High >= most.Low {
		return nil
	}
	x := fallCause(cat, d, s, last)
	x.Summary = diagnose.Line(fmt.Sprintf("%s %s %s together, %s %s: %s", s.Words(best), carry(s, best), unit.Rate(most.Value), s.Words(last), unit.Rate(least.Value), x.Summary))
	x.Evidence = append([]measure.Proof{diagnose.UnderBar(measure.Proof{Counter: "aggregate of " + s.Groups[last].Label, Value: least.Value, Unit: "bps",
		Note: "with " + s.Words(best) + " it is the threshold"}, most.Value)}, x.Evidence...)
	x.Evidence = diagnose.Numbers(x.Evidence)
	x.Effect = &measure.Effect{BoundBps: new(most.Value), CostPct: new(100 * (1 - least.Value/most.Value)), Text: s.Words(best) + " " + carry(s, best) + " " + unit.Rate(most.Value), From: "the same traffic with fewer flows"}
	x.Source = "A-05; methods.md, formula 10"
	return &x
}

// fallCause returns why more flows carry less: a rule that holds at one of the hosts, CPUs that are all full, or
// else a queue bottleneck, the usual cause, which the evidence leaves open.
func fallCause(cat *diagnose.Catalogue, d *measure.Document, s diagnose.Sweep, at int) measure.Finding {
	group := s.Groups[at]
	shared := false
	for _, c := range diagnose.CellsOf(d, group.Group) {
		f := diagnose.NewFlow(cat, d, c)
		if f == nil {
			continue
		}
		shared = shared || f.OnSameCPUs()
		for _, e := range []*diagnose.End{f.Receiver, f.Sender} {
			if x, ok := queueCause(f, e, len(diagnose.CellsOf(d, group.Group))*max(1, c.Streams)); ok {
				return x
			}
		}
	}
	for _, h := range group.Hosts {
		if h.CPU != nil && h.CPU.Pct > diagnose.FullBar {
			x := measure.Finding{Cause: "too-many-streams", Confidence: measure.Likely, Where: measure.Where{Place: measure.AtTool, EndPoint: h.Name},
				Summary: "all CPUs of " + h.Name + " are full", Next: "fewer streams for each end point",
				Evidence: []measure.Proof{diagnose.Above(measure.Proof{EndPoint: h.Name, Counter: "/proc/stat, all CPUs busy", Value: h.CPU.Pct, Unit: "pct"}, diagnose.FullBar)},
				Fix:      diagnose.Advise(nil, "use "+s.Words(diagnose.BestOf(s))+", or hosts with more CPUs")}
			if hostBusy(s, h.Name) > diagnose.FullBar { // they were full before the fall, too
				x.Confidence = measure.Possible
			}
			return x
		}
	}
	x := measure.Finding{Cause: "too-few-queues", Confidence: measure.Possible, Where: measure.Where{Place: measure.AtReceiver, EndPoint: busiestReceiver(group)},
		Summary: "a queue bottleneck is the usual reason, but no counter here shows it",
		Next:    "the packets of each receive queue (ethtool -S) and the CPUs that process them, with few and with many end points",
		Fix:     diagnose.Advise(nil, "set as many receive queues as CPUs, and a hash that spreads the flows over them (`thru check` shows both)")}
	if shared {
		x.Cause, x.Where = "too-many-streams", measure.Where{Place: measure.AtTool}
		x.Summary, x.Next = "its ends share the CPUs of one machine", "the same test on separate hosts"
		x.Fix = diagnose.Advise(nil, "use "+s.Words(diagnose.BestOf(s)))
	}
	return x
}

// hostBusy returns how busy a host was at the sweep's maximum, in percent.
func hostBusy(s diagnose.Sweep, name string) float64 {
	for _, h := range s.Groups[diagnose.BestOf(s)].Hosts {
		if h.Name == name && h.CPU != nil {
			return h.CPU.Pct
		}
	}
	return 0
}

// busiestReceiver returns the host of a group that receives most.
func busiestReceiver(g *measure.Group) string {
	name, most := "", -1.0
	for _, h := range g.Hosts {
		if h.ReceivedBps != nil && *h.ReceivedBps > most {
			name, most = h.Name, *h.ReceivedBps
		}
	}
	return name
}

// queueCause judges how packets reach the CPUs of one host. A cause that holds there is at most likely: that it
// accompanies a fall was seen once.
func queueCause(f *diagnose.Flow, e *diagnose.End, flows int) (measure.Finding, bool) {
	for _, j := range []struct {
		cause string
		judge func(*diagnose.End) *diagnose.Outcome
	}{{"rss-not-spreading", func(e *diagnose.End) *diagnose.Outcome { return nic.JudgeOneQueue(e, flows) }}, {"netqueue-off", hypervisor.JudgeNetqueueOff}, {"too-few-queues", nic.JudgeTooFewQueues}, {"irq-one-cpu", nic.JudgeIRQOneCPU}} {
		o := j.judge(e)
		if o == nil || o.State != diagnose.Holds || o.NotBinding {
			continue
		}
		o.Confidence = measure.Likely
		if o.Where.Place == "" {
			o.At(e.OnFace())
		}
		x := f.Finding(diagnose.Judged{Rule: diagnose.Rule{Cause: j.cause}, Outcome: o})
		x.Next = "the same test after the fix"
		return x, true
	}
	return measure.Finding{}, false
}
