package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// ofGroups are the findings of what ran at the same time, taken together: what
// no flow shows by itself.
func ofGroups(d *measure.Document) []measure.Finding {
	var all []measure.Finding
	for _, s := range sweeps(d) {
		for _, judge := range []func(*measure.Document, sweep) *measure.Finding{falls, staysAtOne} {
			if x := judge(d, s); x != nil && !told(all, *x) {
				all = append(all, *x)
			}
		}
	}
	for i := range d.Groups {
		if x := oneMemberOf(d, &d.Groups[i]); x != nil && !told(all, *x) {
			all = append(all, *x)
		}
	}
	return all
}

// sweep are the groups of a plan that differ only in how many flows they have,
// the fewest first.
type sweep struct {
	axis   string // "end_points" or "streams"
	groups []*measure.Group
	counts []int // of each
}

// sweeps of a document, with at least two groups that have an aggregate. A group
// of which a pair was lost carries less for another reason, and is left out.
func sweeps(d *measure.Document) []sweep {
	var all []sweep
	for _, axis := range []string{"end_points", "streams"} {
		var keys []string
		found := map[string]*sweep{}
		for i := range d.Groups {
			g := &d.Groups[i]
			n, rest, ok := countOn(g.Axes, axis)
			if !ok || g.Aggregate == nil || len(g.Failed) > 0 || isHeldGroup(d, g.Group) {
				continue
			}
			key := g.Rung + "\n" + stat.AxesText(rest) + "\n" + directions(d, g.Group)
			if found[key] == nil {
				keys, found[key] = append(keys, key), &sweep{axis: axis}
			}
			found[key].groups, found[key].counts = append(found[key].groups, g), append(found[key].counts, n)
		}
		for _, k := range keys {
			if s := found[k]; len(s.groups) > 1 {
				s.sort()
				all = append(all, *s)
			}
		}
	}
	return all
}

// countOn parts the number on an axis from the other axes.
func countOn(axes []measure.Axis, axis string) (n int, rest []measure.Axis, ok bool) {
	for _, a := range axes {
		if a.Name != axis {
			rest = append(rest, a)
		} else if x, err := strconv.Atoi(a.Value); err == nil && x > 0 {
			n, ok = x, true
		}
	}
	return n, rest, ok
}

// directions of the flows of a group, each once.
func directions(d *measure.Document, group int) string {
	var all []string
	for _, c := range cellsOf(d, group) {
		all = append(all, c.From+" -> "+c.To)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "\n")
}

// cellsOf are the flows of data of a group that were measured.
func cellsOf(d *measure.Document, group int) []*measure.Cell {
	var all []*measure.Cell
	for i := range d.Cells {
		if c := &d.Cells[i]; c.Group == group && !c.Beside && c.Spec.Traffic == measure.Bulk && rateOf(c) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// isHeldGroup tells whether a rate was asked for of any of its flows.
func isHeldGroup(d *measure.Document, group int) bool {
	return slices.ContainsFunc(cellsOf(d, group), func(c *measure.Cell) bool { return c.Spec.Rate > 0 || c.Spec.MaxRate > 0 })
}

func (s *sweep) sort() {
	order := make([]int, len(s.groups))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.counts[a], s.counts[b]) })
	groups, counts := slices.Clone(s.groups), slices.Clone(s.counts)
	for i, at := range order {
		s.groups[i], s.counts[i] = groups[at], counts[at]
	}
}

// many words a number on the axis of a sweep.
func (s sweep) many(i int) string {
	what := "streams"
	if s.axis == "end_points" {
		what = "end points a host"
	}
	if s.counts[i] == 1 {
		what = strings.Replace(strings.Replace(what, "streams", "stream", 1), "points", "point", 1)
	}
	return fmt.Sprintf("%d %s", s.counts[i], what)
}

// carry is the verb of many.
func (s sweep) carry(i int) string {
	if s.counts[i] == 1 {
		return "carries"
	}
	return "carry"
}

// Bars of groups.
const (
	fallBar   = 5  // percent by which more flows must carry less
	flatOver  = 6  // percent by which the aggregates of a sweep may differ and be the same
	memberLow = 90 // percent of one member of a bundle that a group must fill
)

// falls judges an aggregate that more flows make less. That it falls is
// certain; what by is said as far as queues and CPUs show it.
func falls(d *measure.Document, s sweep) *measure.Finding {
	best := 0
	for i, g := range s.groups {
		if g.Aggregate.Value > s.groups[best].Aggregate.Value {
			best = i
		}
	}
	last := len(s.groups) - 1
	most, least := s.groups[best].Aggregate, s.groups[last].Aggregate
	if best == last || least.Value >= most.Value*(1-fallBar/100.0) || least.High >= most.Low {
		return nil
	}
	x := fallCause(d, s, last)
	x.Summary = line(fmt.Sprintf("%s %s %s together, %s %s: %s", s.many(best), s.carry(best), unit.Rate(most.Value), s.many(last), unit.Rate(least.Value), x.Summary))
	x.Evidence = append([]measure.Proof{below(measure.Proof{Counter: "aggregate of " + s.groups[last].Label, Value: least.Value, Unit: "bps",
		Note: "with " + s.many(best) + " it is the bar"}, most.Value)}, x.Evidence...)
	x.Evidence = numbers(x.Evidence)
	x.Effect = &measure.Effect{BoundBps: new(most.Value), CostPct: new(100 * (1 - least.Value/most.Value)), Text: s.many(best) + " " + s.carry(best) + " " + unit.Rate(most.Value), From: "the same traffic with fewer flows"}
	x.Source = "A-05; methods.md, formula 10"
	return &x
}

// fallCause is what makes more flows carry less: a rule that holds at one of
// the hosts, CPUs that are all full, or else a queue bottleneck as the usual
// one, which the evidence leaves open.
func fallCause(d *measure.Document, s sweep, at int) measure.Finding {
	group := s.groups[at]
	shared := false
	for _, c := range cellsOf(d, group.Group) {
		f := newFlow(d, c)
		if f == nil {
			continue
		}
		shared = shared || f.onSameCPUs()
		for _, e := range []*end{f.receiver, f.sender} {
			if x, ok := queueCause(f, e, len(cellsOf(d, group.Group))*max(1, c.Streams)); ok {
				return x
			}
		}
	}
	for _, h := range group.Hosts {
		if h.CPU != nil && h.CPU.Pct > fullBar {
			x := measure.Finding{Cause: "too-many-streams", Confidence: measure.Likely, Where: measure.Where{Place: measure.AtTool, EndPoint: h.Name},
				Summary: "all CPUs of " + h.Name + " are full", Next: "fewer streams for each end point",
				Evidence: []measure.Proof{above(measure.Proof{EndPoint: h.Name, Counter: "/proc/stat, all CPUs busy", Value: h.CPU.Pct, Unit: "pct"}, fullBar)},
				Remedy:   advise(nil, "use "+s.many(bestOf(s))+", or hosts with more CPUs")}
			if hostBusy(s, h.Name) > fullBar { // they were full before it fell, too
				x.Confidence = measure.Possible
			}
			return x
		}
	}
	x := measure.Finding{Cause: "too-few-queues", Confidence: measure.Possible, Where: measure.Where{Place: measure.AtReceiver, EndPoint: busiestReceiver(group)},
		Summary: "a queue bottleneck is the usual reason, which no counter here shows",
		Next:    "the packets of each receive queue (ethtool -S) and the CPUs that take them, with few and with many end points",
		Remedy:  advise(nil, "as many receive queues as CPUs, and a hash that spreads the flows over them (thru check shows both)")}
	if shared {
		x.Cause, x.Where = "too-many-streams", measure.Where{Place: measure.AtTool}
		x.Summary, x.Next = "its ends share the CPUs of one machine", "the same on hosts of their own"
		x.Remedy = advise(nil, "use "+s.many(bestOf(s)))
	}
	return x
}

// bestOf is which of a sweep carries most.
func bestOf(s sweep) int {
	best := 0
	for i, g := range s.groups {
		if g.Aggregate.Value > s.groups[best].Aggregate.Value {
			best = i
		}
	}
	return best
}

// hostBusy is how busy a host was where the sweep carried most, in percent.
func hostBusy(s sweep, name string) float64 {
	for _, h := range s.groups[bestOf(s)].Hosts {
		if h.Name == name && h.CPU != nil {
			return h.CPU.Pct
		}
	}
	return 0
}

// busiestReceiver is the host of a group that takes in most.
func busiestReceiver(g *measure.Group) string {
	name, most := "", -1.0
	for _, h := range g.Hosts {
		if h.ReceivedBps != nil && *h.ReceivedBps > most {
			name, most = h.Name, *h.ReceivedBps
		}
	}
	return name
}

// queueCause asks one host how its packets reach its CPUs. What holds there is
// likely to be what makes the aggregate fall, and no more: that it goes along
// with it was seen once.
func queueCause(f *flow, e *end, flows int) (measure.Finding, bool) {
	for _, j := range []struct {
		cause string
		judge func(*end) *outcome
	}{{"rss-not-spreading", func(e *end) *outcome { return e.oneQueueOf(flows) }}, {"netqueue-off", netQueue}, {"too-few-queues", fewQueues}, {"irq-one-cpu", oneCPU}} {
		o := j.judge(e)
		if o == nil || o.state != holds || o.aside {
			continue
		}
		o.confidence = measure.Likely
		if o.where.Place == "" {
			o.at(e.onFace())
		}
		x := f.finding(judged{rule: Rule{Cause: j.cause}, outcome: o})
		x.Next = "the same after the remedy"
		return x, true
	}
	return measure.Finding{}, false
}

// oneQueueOf judges whether several flows all came by one receive queue of
// several, by a CPU that is full of them.
func (e *end) oneQueueOf(flows int) *outcome {
	queues := e.queuesUsed()
	q, most, share := busiestOf(queues)
	if flows < 4 || len(queues) < 2 || most < manyCounted || share < oneShare || e.sends() || !e.load().packet {
		return nil
	}
	return likely("%s of the packets of %d flows came by one queue of %d, and its CPU is full of them", unit.Percent(100*share), flows, len(queues)).at(e.onFace()).
		by(above(e.proof(fmt.Sprintf("ethtool -S packets of receive queue %d, share", q), 100*share, "pct"), 100*oneShare)).
		mend(e.remedy(e.mender().Spread(e.faceName())))
}

// staysAtOne judges a sweep whose aggregate stays the same whole part of the
// link's known rate, however many flows there are: they may all share one
// member of a bundle. Another link of that rate looks the same.
func staysAtOne(d *measure.Document, s sweep) *measure.Finding {
	cells := cellsOf(d, s.groups[len(s.groups)-1].Group)
	if len(cells) == 0 || cells[0].Ceiling == nil || !(cells[0].Ceiling.Bps > 0) {
		return nil
	}
	least, most := math.Inf(1), 0.0
	for _, g := range s.groups {
		least, most = min(least, g.Aggregate.Value), max(most, g.Aggregate.Value)
	}
	c := cells[0].Ceiling
	members := math.Round(c.Bps / most)
	if most > least*(1+flatOver/100.0) || members < 2 || members > 16 || math.Abs(c.Bps/most/members-1) > flatOver/100.0 || s.counts[len(s.counts)-1] < 2*s.counts[0] {
		return nil
	}
	if f := newFlow(d, cells[0]); f == nil || f.onOneMachine() || f.sender.isFull() || f.receiver.isFull() {
		return nil
	}
	return &measure.Finding{
		Cause: "lag-one-member", Confidence: measure.Possible, Where: measure.Where{Place: measure.AtPath, From: cells[0].From, To: cells[0].To},
		Summary: line(fmt.Sprintf("%s to %s carry the same %s, 1/%.0f of what the link should: all of them may share one member of a bundle",
			s.many(0), s.many(len(s.counts)-1), unit.Rate(most), members)),
		Evidence: numbers([]measure.Proof{above(measure.Proof{Counter: "ceiling of the link over the aggregate", Value: c.Bps / most}, 2-flatOver/100.0)}),
		Effect:   &measure.Effect{BoundBps: new(most), Text: "one member carries " + unit.Rate(most), From: "link rate: " + c.LinkFrom},
		Next:     "flows of other hosts and ports; the counters of the members",
		Remedy:   advise(nil, "have the bundle choose a member by address and port (layer3+4) at both of its ends"), Source: "IEEE 802.1AX, 5.2.4; A-09",
	}
}

// oneMemberOf judges several flows by a bond of known members that together
// carry what one member does.
func oneMemberOf(d *measure.Document, g *measure.Group) *measure.Finding {
	cells := cellsOf(d, g.Group)
	if len(cells) < 2 || isHeldGroup(d, g.Group) {
		return nil
	}
	for _, c := range cells {
		f := newFlow(d, c)
		if f == nil || f.onOneMachine() {
			continue
		}
		for _, e := range f.ends() {
			if x := e.sharedMember(g, len(cells)); x != nil {
				return x
			}
		}
	}
	return nil
}

// sharedMember judges the bond of one host by what it sent or received in a group.
func (e *end) sharedMember(g *measure.Group, flows int) *measure.Finding {
	speed, n := memberSpeed(e.face)
	i := slices.IndexFunc(g.Hosts, func(h measure.Share) bool { return h.Name == e.name })
	if n < 2 || i < 0 || g.Hosts[i].Flows < 2 {
		return nil
	}
	bps := g.Hosts[i].ReceivedBps
	if e.sends() {
		bps = g.Hosts[i].SentBps
	}
	mtu := usualMTU
	if e.face.MTU != nil && *e.face.MTU > 0 {
		mtu = *e.face.MTU
	}
	most := stat.MaxGoodput(stat.Link{RateBps: int64(speed), MTU: mtu, Timestamps: true})
	if bps == nil || !(most > 0) || *bps < most*memberLow/100 || *bps > most*(1+flatOver/100.0) {
		return nil
	}
	return &measure.Finding{
		Cause: "lag-one-member", Confidence: measure.Likely, Where: e.onFace(),
		Summary: line(fmt.Sprintf("%d flows carry %s together, which is what one of the %d members of %s carries: they all share it",
			g.Hosts[i].Flows, unit.Rate(*bps), n, word(e.faceName()))),
		Evidence: numbers([]measure.Proof{above(e.proof("goodput of all flows of one member's ceiling", 100**bps/most, "pct"), memberLow)}),
		Effect:   &measure.Effect{BoundBps: new(most * float64(n)), Text: fmt.Sprintf("%d members carry %s", n, unit.Rate(most*float64(n))), From: "speeds of the members"},
		Next:     "the counters of the members (ip -s link)", Remedy: e.flow.bundleRemedy(), Source: "IEEE 802.1AX, 5.2.4; A-09",
	}
}

// usualMTU is that of Ethernet.
const usualMTU = 1500

// memberSpeed is the speed of the members of a bond in bit/s, where all have
// the same, and how many carry traffic at a time.
func memberSpeed(i *measure.Interface) (bps float64, n int) {
	if i == nil || i.Bond == nil || i.Bond.Active != "" || i.Bond.Mode == "active-backup" {
		return 0, 0
	}
	for _, m := range i.Bond.Members {
		if !m.Up {
			continue
		}
		if n++; m.SpeedBps == nil || *m.SpeedBps <= 0 || bps > 0 && float64(*m.SpeedBps) != bps {
			return 0, 0
		}
		bps = float64(*m.SpeedBps)
	}
	return bps, n
}
