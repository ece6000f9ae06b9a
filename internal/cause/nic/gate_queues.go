package nic

import (
	"slices"
	"strings"

	"thru/internal/cause/gate"
	"thru/internal/measure"
)

// Bounds of queues and their counters.
const (
	fastRate    = 10_000_000_000 // from here on one queue, that is one CPU, does not do
	enoughTold  = 100_000        // packets from which the counters of queues tell something
	otherShare  = 1e-4           // of the packets: what the queues beside the first have at least
	unevenTimes = 4              // a queue with so many times the entries of another
)

// QueueGates judge how the packets of an interface come to several CPUs.
func QueueGates() []gate.Rule {
	return []gate.Rule{
		{ID: "queues", Title: "Queues", About: "the receive queues that are set against those that are possible, and against the CPUs",
			Warns:  "one queue is set and more are possible, with more than one CPU; or the device has only one and 10 Gb/s or more are wanted",
			Why:    "one queue is one CPU: the rate grows with the queues until it is the CPUs that are full",
			Source: "C-22: queues = cores; Linux scaling.rst", Remedy: "as many queues as CPUs", Cause: "too-few-queues", Checklist: []string{"C-22", "C-27", "C-28", "B-19"}, Face: queuesOf},
		{ID: "queue-spread", Title: "Traffic over the queues", About: "the packets of each receive queue since the driver was loaded",
			Warns:  "of 100 000 packets or more, all but one in 10 000 came by queue 0 of several",
			Why:    "with all traffic in queue 0 one CPU takes it all: 5 to 6 of 9.5 Gb/s",
			Source: "C-27, A-02", Remedy: "RSS over all queues", Cause: "rss-not-spreading", Checklist: []string{"C-27", "C-35"}, Face: queueSpread},
		{ID: "rss", Title: "Receive side scaling", About: "the table that spreads flows over queues, and whether UDP flows are told apart by ports",
			Warns:  "all entries lead to one queue of several, or one queue has four times the entries of another",
			Why:    "flows follow the table: a queue with four times the entries gets four times the flows",
			Source: "Linux scaling.rst", Remedy: "equal shares (`ethtool -X equal`)", Cause: "rss-not-spreading", Checklist: []string{"C-22", "C-27"}, Face: rss},
	}
}

func queuesOf(f *gate.Face) *gate.Finding {
	if !f.Device() {
		return queuesOfSoftware(f)
	}
	set, cpus := f.RxQueues(), f.Host.CPUs()
	if set == 0 {
		return f.Missing("queues of "+f.Name, "channels")
	}
	return queuesSet(f, set, cpus)
}

// queuesSet compares what is set with what is possible.
func queuesSet(f *gate.Face, set, cpus int) *gate.Finding {
	want := max(f.Wanted(), f.Speed())
	switch c := f.Channels; {
	case set == 1 && cpus > 1 && c != nil && max(c.CombinedMax, c.RXMax) > 1:
		kind, most := "combined", c.CombinedMax
		if most <= 1 {
			kind, most = "rx", c.RXMax
		}
		return gate.Warn("%s has 1 queue of %d possible, for %d CPUs", f.Name, most, cpus).Do(gate.SetQueues(f, kind, min(most, cpus)))
	case set == 1 && cpus > 1 && want >= fastRate && len(f.RPS) == 0:
		return gate.Warn("%s has only 1 queue, for %d CPUs and %s", f.Name, cpus, gate.Rate(want)).
			Because("one CPU takes every packet; RPS or a device with several queues spreads them").Do(gate.PacketSteering(f))
	case c == nil:
		return gate.Pass("%s: receive queues %d, CPUs %d", f.Name, set, cpus)
	}
	return gate.Pass("%s: queues %d of %d possible, CPUs %d", f.Name, set, max(f.Channels.CombinedMax, f.Channels.RXMax, set), cpus)
}

// queuesOfSoftware: a veth moves packets on the CPU that sends them, whatever
// its queues, which is told and not judged; but with GRO each queue takes its
// packets itself, on one CPU, as a NIC's does (drivers/net/veth.c, veth_xmit).
func queuesOfSoftware(f *gate.Face) *gate.Finding {
	if f.KindName() != "veth" || f.RxQueues() == 0 {
		return nil
	}
	if f.Offloads["generic-receive-offload"] && f.Channels != nil {
		return queuesSet(f, f.RxQueues(), f.Host.CPUs())
	}
	return gate.Pass("%s: receive queues %d; packets stay on the CPU that sends them", f.Name, f.RxQueues())
}

// perQueue are the packets of the receive queues by name, in the order of the facts.
func perQueue(f *gate.Face) (list []measure.QueueCounter) {
	for _, c := range f.Counters {
		if strings.HasPrefix(c.Queue, "rx") {
			list = append(list, c)
		}
	}
	return list
}

func queueSpread(f *gate.Face) *gate.Finding {
	if !f.Device() || f.RxQueues() <= 1 {
		return nil
	}
	queues := perQueue(f)
	if len(queues) < 2 {
		return f.Missing("packets of each queue of "+f.Name, "queue_counters")
	}
	total := f.Received()
	if total < enoughTold {
		return gate.NotChecked("whether traffic spreads over the queues of "+f.Name, "too few packets so far to tell")
	}
	first := slices.IndexFunc(queues, func(c measure.QueueCounter) bool { return c.Queue == "rx-0" })
	if first >= 0 && float64(total)-float64(queues[first].Packets) < otherShare*float64(total) {
		return gate.Warn("%d of %d packets came by queue 0 of the %d of %s", queues[first].Packets, total, len(queues), f.Name).
			Do(gate.Spread(f, len(queues)))
	}
	used := 0
	for _, c := range queues {
		if c.Packets > 0 {
			used++
		}
	}
	return gate.Pass("%d of the %d queues of %s have received packets", used, len(queues), f.Name)
}

func rss(f *gate.Face) *gate.Finding {
	if !f.Device() || f.RxQueues() <= 1 {
		return nil
	}
	if f.RSS == nil || len(f.RSS.Queues) == 0 {
		if gate.IsTrue(f.Nominal) {
			return nil // the hypervisor spreads, and does not say how
		}
		return f.Missing("how "+f.Name+" spreads flows", "rss")
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
		return gate.Warn("all flows to %s go to one queue of %d", f.Name, f.RxQueues()).Do(gate.Spread(f, f.RxQueues()))
	case most >= unevenTimes*least:
		return gate.Warn("a queue of %s has %d entries of the table, another %d", f.Name, most, least).Do(gate.Spread(f, f.RxQueues()))
	}
	return gate.Pass("%s spreads flows evenly over %d queues%s", f.Name, used, udpByAddress(f))
}

// udpByAddress tells where UDP flows between two hosts all go to one queue.
func udpByAddress(f *gate.Face) string {
	fields, ok := f.RSS.Fields["udp4"]
	if !ok || slices.ContainsFunc(fields, func(s string) bool { return strings.Contains(s, "port") }) {
		return ""
	}
	return "; UDP over IPv4 by address only"
}
