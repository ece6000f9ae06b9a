// Package groups holds the causes that only concurrent flows show together, and the rungs of a ladder.
package groups

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/hypervisor"
	"thru/internal/cause/mtu"
	"thru/internal/cause/nic"
	"thru/internal/cause/route"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Findings returns the findings of concurrent flows taken together, which no single flow shows.
func Findings(cat *diagnose.Catalogue, d *measure.Document) []measure.Finding {
	var all []measure.Finding
	for _, s := range diagnose.Sweeps(d) {
		for _, judge := range []func(*diagnose.Catalogue, *measure.Document, diagnose.Sweep) *measure.Finding{falls, staysAtOne} {
			if x := judge(cat, d, s); x != nil && !diagnose.Repeated(all, *x) {
				all = append(all, *x)
			}
		}
	}
	for i := range d.Groups {
		if x := oneMemberOf(cat, d, &d.Groups[i]); x != nil && !diagnose.Repeated(all, *x) {
			all = append(all, *x)
		}
	}
	return all
}

// many words a number on the axis of a sweep.
func many(s diagnose.Sweep, i int) string {
	what := "streams"
	if s.Axis == "end_points" {
		what = "end points a host"
	}
	if s.Counts[i] == 1 {
		what = strings.Replace(strings.Replace(what, "streams", "stream", 1), "points", "point", 1)
	}
	return fmt.Sprintf("%d %s", s.Counts[i], what)
}

// carry returns the verb that goes with many.
func carry(s diagnose.Sweep, i int) string {
	if s.Counts[i] == 1 {
		return "carries"
	}
	return "carry"
}

// Thresholds of groups.
const (
	flatOver  = 6  // percent by which the aggregates of a sweep may differ and count as equal
	memberLow = 90 // percent of one LAG member that a group must fill
)

// falls judges an aggregate that falls with more flows. The fall is certain; its cause only as far as
// queues and CPUs show it.
func falls(cat *diagnose.Catalogue, d *measure.Document, s diagnose.Sweep) *measure.Finding {
	best := 0
	for i, g := range s.Groups {
		if g.Aggregate.Value > s.Groups[best].Aggregate.Value {
			best = i
		}
	}
	last := len(s.Groups) - 1
	most, least := s.Groups[best].Aggregate, s.Groups[last].Aggregate
	if best == last || least.Value >= most.Value*(1-diagnose.FallBar/100.0) || least.High >= most.Low {
		return nil
	}
	x := fallCause(cat, d, s, last)
	x.Summary = diagnose.Line(fmt.Sprintf("%s %s %s together, %s %s: %s", many(s, best), carry(s, best), unit.Rate(most.Value), many(s, last), unit.Rate(least.Value), x.Summary))
	x.Evidence = append([]measure.Proof{diagnose.UnderBar(measure.Proof{Counter: "aggregate of " + s.Groups[last].Label, Value: least.Value, Unit: "bps",
		Note: "with " + many(s, best) + " it is the threshold"}, most.Value)}, x.Evidence...)
	x.Evidence = diagnose.Numbers(x.Evidence)
	x.Effect = &measure.Effect{BoundBps: new(most.Value), CostPct: new(100 * (1 - least.Value/most.Value)), Text: many(s, best) + " " + carry(s, best) + " " + unit.Rate(most.Value), From: "the same traffic with fewer flows"}
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
				Fix:      diagnose.Advise(nil, "use "+many(s, diagnose.BestOf(s))+", or hosts with more CPUs")}
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
		x.Fix = diagnose.Advise(nil, "use "+many(s, diagnose.BestOf(s)))
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
	}{{"rss-not-spreading", func(e *diagnose.End) *diagnose.Outcome { return oneQueueOf(e, flows) }}, {"netqueue-off", hypervisor.JudgeNetqueueOff}, {"too-few-queues", nic.JudgeTooFewQueues}, {"irq-one-cpu", nic.JudgeIRQOneCPU}} {
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

// oneQueueOf judges whether several flows all arrived through one of several receive queues, by a CPU that is full
// of them.
func oneQueueOf(e *diagnose.End, flows int) *diagnose.Outcome {
	queues := nic.QueuesUsed(e)
	q, most, share := nic.BusiestOf(queues)
	if flows < 4 || len(queues) < 2 || most < diagnose.ManyCounted || share < diagnose.OneShare || e.Sends() || !e.Load().Packet {
		return nil
	}
	return diagnose.Likely("%s of the packets of %d flows arrived in one queue of %d, and they fill its CPU", unit.Percent(100*share), flows, len(queues)).At(e.OnFace()).
		By(diagnose.Above(e.Proof(fmt.Sprintf("ethtool -S packets of receive queue %d, share", q), 100*share, "pct"), 100*diagnose.OneShare)).
		AddFix(nic.SpreadFlows(e))
}

// staysAtOne judges a sweep whose aggregate stays at the same whole fraction of the link's known rate, whatever
// the number of flows: they may all share one LAG member. Another link of that rate looks the same.
func staysAtOne(cat *diagnose.Catalogue, d *measure.Document, s diagnose.Sweep) *measure.Finding {
	cells := diagnose.CellsOf(d, s.Groups[len(s.Groups)-1].Group)
	if len(cells) == 0 || cells[0].Ceiling == nil || !(cells[0].Ceiling.Bps > 0) {
		return nil
	}
	least, most := math.Inf(1), 0.0
	for _, g := range s.Groups {
		least, most = min(least, g.Aggregate.Value), max(most, g.Aggregate.Value)
	}
	c := cells[0].Ceiling
	members := math.Round(c.Bps / most)
	if most > least*(1+flatOver/100.0) || members < 2 || members > 16 || math.Abs(c.Bps/most/members-1) > flatOver/100.0 || s.Counts[len(s.Counts)-1] < 2*s.Counts[0] {
		return nil
	}
	if f := diagnose.NewFlow(cat, d, cells[0]); f == nil || f.OnOneMachine() || f.Sender.IsFull() || f.Receiver.IsFull() {
		return nil
	}
	return &measure.Finding{
		Cause: "lag-one-member", Confidence: measure.Possible, Where: measure.Where{Place: measure.AtPath, From: cells[0].From, To: cells[0].To},
		Summary: diagnose.Line(fmt.Sprintf("%s to %s carry the same %s, 1/%.0f of what the link should carry: they may all share one member of a bundle",
			many(s, 0), many(s, len(s.Counts)-1), unit.Rate(most), members)),
		Evidence: diagnose.Numbers([]measure.Proof{diagnose.Above(measure.Proof{Counter: "ceiling of the link relative to the aggregate", Value: c.Bps / most}, 2-flatOver/100.0)}),
		Effect:   &measure.Effect{BoundBps: new(most), Text: "one member carries " + unit.Rate(most), From: "link rate: " + c.LinkFrom},
		Next:     "a test with flows of other hosts and ports; the counters of the members",
		Fix:      diagnose.Advise(nil, "have the bundle choose a member by address and port (layer3+4) at both of its ends"), Source: "IEEE 802.1AX, 5.2.4; A-09",
	}
}

// oneMemberOf judges several flows over a bond of known members that together carry what one member does.
func oneMemberOf(cat *diagnose.Catalogue, d *measure.Document, g *measure.Group) *measure.Finding {
	cells := diagnose.CellsOf(d, g.Group)
	if len(cells) < 2 || diagnose.IsRateLimitedGroup(d, g.Group) {
		return nil
	}
	for _, c := range cells {
		f := diagnose.NewFlow(cat, d, c)
		if f == nil || f.OnOneMachine() {
			continue
		}
		for _, e := range f.Ends() {
			if x := sharedMember(e, g, len(cells)); x != nil {
				return x
			}
		}
	}
	return nil
}

// sharedMember judges the bond of one host by what it sent or received in a group.
func sharedMember(e *diagnose.End, g *measure.Group, flows int) *measure.Finding {
	speed, n := diagnose.MemberSpeed(e.Face)
	i := slices.IndexFunc(g.Hosts, func(h measure.Share) bool { return h.Name == e.Name })
	if n < 2 || i < 0 || g.Hosts[i].Flows < 2 {
		return nil
	}
	bps := g.Hosts[i].ReceivedBps
	if e.Sends() {
		bps = g.Hosts[i].SentBps
	}
	size := mtu.UsualMTU
	if e.Face.MTU != nil && *e.Face.MTU > 0 {
		size = *e.Face.MTU
	}
	most := stat.MaxGoodput(stat.Link{RateBps: int64(speed), MTU: size, Timestamps: true})
	if bps == nil || !(most > 0) || *bps < most*memberLow/100 || *bps > most*(1+flatOver/100.0) {
		return nil
	}
	return &measure.Finding{
		Cause: "lag-one-member", Confidence: measure.Likely, Where: e.OnFace(),
		Summary: diagnose.Line(fmt.Sprintf("%d flows carry %s together, which is what one of the %d members of %s carries: they all share it",
			g.Hosts[i].Flows, unit.Rate(*bps), n, diagnose.Word(e.FaceName()))),
		Evidence: diagnose.Numbers([]measure.Proof{diagnose.Above(e.Proof("goodput of all flows relative to one member's ceiling", 100**bps/most, "pct"), memberLow)}),
		Effect:   &measure.Effect{BoundBps: new(most * float64(n)), Text: fmt.Sprintf("%d members carry %s", n, unit.Rate(most*float64(n))), From: "speeds of the members"},
		Next:     "the counters of the members (ip -s link)", Fix: route.BundleFix(e.Flow), Source: "IEEE 802.1AX, 5.2.4; A-09",
	}
}
