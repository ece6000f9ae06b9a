package nic

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/hypervisor"
	"thru/internal/cause/knob"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/unit"
)

// RSSNotSpreading is the cause `rss-not-spreading`.
func RSSNotSpreading() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "rss-not-spreading", TCP: true, UDP: true, Unseen: diagnose.HostTime, Title: "all flows go to one queue", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(judgeRSSNotSpreading) },
			Seen:        "with several streams, 95% of the packets or more arrived in one of several receive queues; likely if a CPU is full of packets",
			Distinction: "the same test with other ports", Fix: "give all queues equal shares of the indirection table, and hash by ports", Effect: "5 to 6 of 9.5 Gb/s (A-02)",
			Source: "per-queue counters of ethtool -S; gates queue-spread, rss", Brings: []string{"irq-one-cpu", "receiver-cpu", "ring-overflow"},
		},
		Gates: []gate.Rule{
			{ID: "queue-spread", Receives: true, Title: "Traffic over the queues", About: "the packets of each receive queue since the driver was loaded",
				Warns:  "with 100 000 packets or more, all but one in 10 000 arrived in queue 0 of several",
				Why:    "with all traffic in queue 0 one CPU handles it all: 5 to 6 of 9.5 Gb/s",
				Source: "C-27, A-02", Fix: "spread RSS over all queues", Checklist: []string{"C-27", "C-35"}, Face: gateQueueSpread},
			{ID: "rss", Words: "indirection toeplitz", Receives: true, Title: "Receive side scaling", About: "the indirection table that spreads flows over queues, and whether the hash of UDP flows includes ports",
				Warns:  "all entries point to one of several queues, or one queue has four times the entries of another",
				Why:    "flows follow the table: a queue with four times the entries gets four times the flows",
				Source: "Linux scaling.rst", Fix: "set equal shares (`ethtool -X equal`)", Checklist: []string{"C-22", "C-27"}, Face: gateRSS},
		},
		Propose: []advise.Proposer{ProposeRSSNotSpreading},
	}
}

func judgeRSSNotSpreading(e *diagnose.End) *diagnose.Outcome {
	gates := hypervisor.Conditions(e.Flow, "rss-not-spreading", e.Name)
	queues := queuesUsed(e)
	if len(queues) < 2 {
		if len(gates) > 0 {
			return hypervisor.Condition(e, gates[0]).MarkNotBinding()
		}
		return hypervisor.GateOutcome(e, "rss-not-spreading")
	}
	q, most, share := busiestOf(queues)
	switch {
	case sharesQueue(e) != nil:
		return sharesQueue(e)
	case most < diagnose.ManyCounted || share < diagnose.OneShare:
		return diagnose.No("queue %d of the %s received %s of the packets", max(q, 0), e.Place, unit.Percent(100*share))
	}
	l := e.Load()
	o := hypervisor.Symptom(diagnose.Possible("%s of the %s's packets arrived in one of %d queues", unit.Percent(100*share), e.Place, len(queues)).At(e.OnFace()).
		By(diagnose.Above(e.Proof(fmt.Sprintf("ethtool -S packets of receive queue %d, share", q), 100*share, "pct"), 100*diagnose.OneShare)).
		AddFix(spreadFlows(e)), !e.Sends() && e.Flow.IsAll() == nil && l.Packet)
	if !o.NotBinding && !l.All && diagnose.Packets(l.Soft) > 90 {
		o.Confidence = measure.Certain
	}
	return o
}

// JudgeOneQueue judges whether several flows all arrived through one of several receive queues, by a CPU that is full
// of them.
func JudgeOneQueue(e *diagnose.End, flows int) *diagnose.Outcome {
	queues := queuesUsed(e)
	q, most, share := busiestOf(queues)
	if flows < 4 || len(queues) < 2 || most < diagnose.ManyCounted || share < diagnose.OneShare || e.Sends() || !e.Load().Packet {
		return nil
	}
	return diagnose.Likely("%s of the packets of %d flows arrived in one queue of %d, and they fill its CPU", unit.Percent(100*share), flows, len(queues)).At(e.OnFace()).
		By(diagnose.Above(e.Proof(fmt.Sprintf("ethtool -S packets of receive queue %d, share", q), 100*share, "pct"), 100*diagnose.OneShare)).
		AddFix(spreadFlows(e))
}

// queuesUsed returns the packets that each receive queue received in the measured time, by its number:
// rx_queue_3_packets, rx-3.packets, rx3_packets. A queue of the facts whose counter did not change received none.
func queuesUsed(e *diagnose.End) map[int]float64 {
	used := map[int]float64{}
	if e.NIC() == nil {
		return used
	}
	for name, n := range e.NIC().Driver {
		if q, ok := QueueOf(name); ok {
			used[q] += float64(n)
		}
	}
	if e.Face != nil && e.Face.Queues != nil && len(used) > 0 {
		for q := range min(max(*e.Face.Queues, 0), 256) {
			used[q] += 0
		}
	}
	return used
}

// QueueOf parses the number of a receive queue from the name of its packet counter.
func QueueOf(counter string) (int, bool) {
	var q int
	for _, form := range []string{"rx_queue_%d_packets", "rx-%d.packets", "rx%d_packets"} {
		if _, err := fmt.Sscanf(counter, form, &q); err == nil && fmt.Sprintf(form, q) == counter && q >= 0 {
			return q, true
		}
	}
	return 0, false
}

// ProposeRSSNotSpreading spreads the load over all queues: by the indirection table, then by the hashed fields.
func ProposeRSSNotSpreading(r advise.Request) []advise.Draft {
	h := r.Receiving()
	face := r.Here(h)
	var list []advise.Draft
	queues := 0
	for _, n := range counts(h.Value(knob.Channels, face)) {
		queues = max(queues, n)
	}
	table := h.State(knob.RSSTable, face)
	entries := len(strings.Fields(table.Value))
	if i := h.Facts.Interface(face); i != nil && i.RSS != nil && entries == 0 {
		entries = i.RSS.Table
	}
	if queues > 1 && entries >= queues && entries <= 4096 {
		each := make([]string, entries)
		for i := range each {
			each[i] = strconv.Itoa(i % queues)
		}
		if value := strings.Join(each, " "); !knob.Same(value, table.Value) {
			list = append(list, advise.Change(h, knob.RSSTable, face, value, "spread the flows to %s of %s over all %d queues", face, h.Name, queues))
		}
	}
	hash := h.State(knob.RSSHash, face)
	kinds, fields := advise.Pairs(hash.Value)
	var more []string
	for _, kind := range kinds {
		if fields[kind] != "sdfn" && (strings.HasPrefix(kind, "tcp") || strings.HasPrefix(kind, "udp")) {
			more = append(more, kind, "sdfn")
		}
	}
	if len(more) > 0 {
		list = append(list, advise.Change(h, knob.RSSHash, face, advise.With(hash.Value, more...), "%s of %s hashes flows by their ports too", face, h.Name))
	}
	return list
}

// counts returns the number of queues by kind.
func counts(value string) map[string]int {
	_, values := advise.Pairs(value)
	n := map[string]int{}
	for kind, text := range values {
		if c, err := strconv.Atoi(text); err == nil && c > 0 {
			n[kind] = c
		}
	}
	if len(n) == 0 { // one number stands for queues of both kinds
		n["combined"] = int(knob.Greatest(value))
	}
	return n
}

func gateQueueSpread(f *scene.Face) *gate.Finding {
	if !f.Device() || f.RxQueues() <= 1 {
		return nil
	}
	queues := perQueue(f)
	if len(queues) < 2 {
		return gate.Missing(f, "packets of each queue of "+f.Name, "queue_counters")
	}
	total := f.Received()
	if total < enoughPackets {
		return gate.NotChecked("whether traffic spreads over the queues of "+f.Name, "too few packets so far")
	}
	first := slices.IndexFunc(queues, func(c measure.QueueCounter) bool { return c.Queue == "rx-0" })
	if first >= 0 && float64(total)-float64(queues[first].Packets) < otherShare*float64(total) {
		return gate.Warn("%d of %d packets arrived in queue 0 of the %d queues of %s", queues[first].Packets, total, len(queues), f.Name).
			Do(spread(f, len(queues)))
	}
	used := unit.CountFunc(queues, func(c measure.QueueCounter) bool { return c.Packets > 0 })
	return gate.Pass("%d of the %d queues of %s have received packets", used, len(queues), f.Name)
}

// perQueue returns the packets of the receive queues by name, in the order of the facts.
func perQueue(f *scene.Face) []measure.QueueCounter {
	return unit.Filtered(f.Counters, func(c measure.QueueCounter) bool { return strings.HasPrefix(c.Queue, "rx") })
}

// Limits of queues and their counters.
const (
	enoughPackets = 100_000 // packets from which the queues' counters mean something
	otherShare    = 1e-4    // of the packets: the least that the queues after the first receive
	unevenTimes   = 4       // a queue with so many times the entries of another
)

func gateRSS(f *scene.Face) *gate.Finding {
	if !f.Device() || f.RxQueues() <= 1 {
		return nil
	}
	if f.RSS == nil || len(f.RSS.Queues) == 0 {
		if scene.IsTrue(f.Nominal) {
			return nil // the hypervisor spreads, and does not report how
		}
		return gate.Missing(f, "how "+f.Name+" spreads flows", "rss")
	}
	least, most, used := 0, 0, 0
	for _, n := range f.RSS.Queues {
		if n <= 0 {
			continue
		}
		used++
		if most = max(most, n); least == 0 || n < least {
			least = n
		}
	}
	switch {
	case used <= 1:
		return gate.Warn("all flows to %s go to one queue of %d", f.Name, f.RxQueues()).Do(spread(f, f.RxQueues()))
	case most >= unevenTimes*least:
		return gate.Warn("one queue of %s has %d entries of the indirection table, another %d", f.Name, most, least).Do(spread(f, f.RxQueues()))
	}
	return gate.Pass("%s spreads flows evenly over %d queues%s", f.Name, used, udpByAddress(f))
}

// udpByAddress reports that all UDP flows between two hosts go to one queue; "" if they do not.
func udpByAddress(f *scene.Face) string {
	fields, ok := f.RSS.Fields["udp4"]
	if !ok || slices.ContainsFunc(fields, func(s string) bool { return strings.Contains(s, "port") }) {
		return ""
	}
	return "; UDP over IPv4 by addresses only"
}

// spreadFlows makes the interface of an end spread flows over all its receive queues.
func spreadFlows(e *diagnose.End) *measure.Fix {
	f := e.Adapter()
	r := scene.Fix{}
	if n := f.RxQueues(); n > 1 {
		r = spread(f, n)
	}
	return f.Host.Fix(r.Or("set RSS of the interface to use all receive queues, and to hash ports as well as addresses"))
}

// spread makes RSS use all queues in turn, and hash ports as well as addresses.
func spread(f *scene.Face, queues int) scene.Fix {
	const most = 4096 // no adapter has more
	var table strings.Builder
	for q := range min(queues, most) {
		table.WriteString(strconv.Itoa(q) + " ")
	}
	return f.Set(knob.RSSTable, table.String()).And(f.Set(knob.RSSHash, "udp4 sdfn"))
}
